"""INT, TERM and HUP at ``proctor run``: what the command notices, how long it takes, what is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor.testing import Marker

DEAF = 'trap "" TERM; echo up; while :; do sleep 0.1; done'
POLITE = 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.1; done'


def up(run: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert run.stdout is not None
    assert run.stdout.readline() == "up\n"
    return run


@pytest.mark.requirement("I2-run-signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_first_signal_stops_with_grace_and_the_last_words_are_passed_on(
    number: signal.Signals, code: int, begin: Callable[..., subprocess.Popen[str]], marker: Marker
) -> None:
    run = up(begin("run", "--no-login", "--", POLITE))
    run.send_signal(number)
    out, errors = run.communicate(timeout=20)
    assert (run.returncode, out) == (code, "bye\n")
    assert f"[stopped by person: proctor run received {number.name}]" in errors
    assert not marker.gone_within(2)


@pytest.mark.requirement("I2-run-signals")
def test_a_deaf_tree_has_its_whole_grace_after_one_signal_and_none_after_two(
    begin: Callable[..., subprocess.Popen[str]], marker: Marker
) -> None:
    patient = up(begin("run", "--no-login", "--grace", "1", "--", DEAF))
    began = time.monotonic()
    patient.send_signal(signal.SIGTERM)
    assert patient.wait(20) == 143
    assert 1.0 <= time.monotonic() - began < 3.0

    pressed = up(begin("run", "--no-login", "--grace", "30", "--", DEAF))
    began = time.monotonic()
    pressed.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        pressed.wait(0.3)
    pressed.send_signal(signal.SIGTERM)
    assert pressed.wait(20) == 130
    assert time.monotonic() - began < 5.0
    assert not marker.gone_within(2)


@pytest.mark.requirement("I2-run-signals", "I2-run-json")
def test_an_interrupted_run_still_gives_its_record(begin: Callable[..., subprocess.Popen[str]]) -> None:
    run = begin("run", "--no-login", "--json", "--session", "s1", "--", "echo up; sleep 100")
    waited = subprocess.run([sys.executable, "-m", "proctor", "ps", "--json"], capture_output=True, check=False)
    while not json.loads(waited.stdout) or json.loads(waited.stdout)[0]["status"] != "running":
        waited = subprocess.run([sys.executable, "-m", "proctor", "ps", "--json"], capture_output=True, check=False)
    run.send_signal(signal.SIGHUP)
    record = json.loads(run.communicate(timeout=20)[0])
    assert run.returncode == 129
    assert (record["status"], record["ended_by"], record["cancelled"]) == ("cancelled", "caller_cancelled", True)
    assert (record["stop"]["by"], record["tree"]["proved"]) == ("person", True)


@pytest.mark.requirement("I2-run-signals")
def test_a_reader_that_takes_nothing_does_not_keep_an_interrupted_run_alive(
    begin: Callable[..., subprocess.Popen[str]], marker: Marker
) -> None:
    run = begin("run", "--", "yes")
    assert run.stdout is not None
    assert run.stdout.readline() == "y\n"
    began = time.monotonic()
    run.send_signal(signal.SIGTERM)  # its pipe is full, and nobody reads from it any more
    assert run.wait(20) == 143
    assert time.monotonic() - began < 8
    assert not marker.gone_within(2)


@pytest.mark.requirement("I2-run-signals")
def test_a_signal_that_was_ignored_when_it_began_stays_ignored(begin: Callable[..., subprocess.Popen[str]]) -> None:
    run = up(
        begin(
            "run",
            "--no-login",
            "--timeout",
            "1",
            "--",
            "echo up; sleep 60",
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
    )
    run.send_signal(signal.SIGHUP)
    assert run.wait(20) == 124


@pytest.mark.requirement("I2-lifetime")
def test_a_killed_command_line_leaves_no_process_of_its_command(begin: Callable[..., subprocess.Popen[str]], marker: Marker) -> None:
    run = up(begin("run", "--no-login", "--", DEAF))
    run.kill()
    run.wait()
    assert not marker.gone_within(3, commands_only=True)
