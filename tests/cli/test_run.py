"""``proctor run`` through real processes: exit codes, live output, JSON, what is given to the command."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proctor.testing import Marker


@pytest.mark.requirement("I2-run-exit-codes", "O-SQ-09")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["true"], 0),
        (["exit 7"], 7),
        (["kill -KILL $$"], 137),
        (["sh", "-c", "exit 3"], 3),
        (["echo", "a  b", "--", "--json"], 0),
    ],
)
def test_the_exit_code_is_the_commands(words: list[str], code: int, cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--no-login", "--", *words) if len(words) == 1 else cli("run", "--", *words)
    assert done.returncode == code


def test_several_words_are_a_program_and_its_arguments_and_one_is_a_text(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert cli("run", "--", "printf", "%s|", "a b", "$HOME", "--", "--json").stdout == "a b|$HOME|--|--json|"
    assert cli("run", "--no-login", "--", "printf '%s|' 'a b' $((1+1))").stdout == "a b|2|"
    assert cli("run", "--shell", "none", "--", "true").returncode == 0


def test_both_streams_come_out_where_they_belong_and_a_success_says_nothing(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--no-login", "--", "echo out; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "err\n")


@pytest.mark.requirement("I2-run-exit-codes")
def test_a_timeout_is_124_and_names_its_limit(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--no-login", "--timeout", "0.3", "--", "echo before; sleep 60")
    assert (done.returncode, done.stdout, done.stderr) == (124, "before\n", "[timed out after 0.3 s]\n")


@pytest.mark.requirement("I2-timeout-json")
def test_a_tree_that_ignores_term_is_told_within_its_bounds(cli: Callable[..., subprocess.CompletedProcess[str]], marker: Marker) -> None:
    text = 'trap "" TERM; setsid sh -c "sleep 300" & echo out; wait'
    began = time.monotonic()
    done = cli("run", "--no-login", "--timeout", "1", "--grace", "0.5", "--json", "--", text)
    assert time.monotonic() - began < 1 + 0.5 + 1.5
    record = json.loads(done.stdout)
    assert (record["status"], record["output"]["text"], done.returncode) == ("timed_out", "out\n", 124)
    assert record["tree"]["proved"]
    assert record["tree"]["escalated"]
    assert not marker.gone_within(2)


@pytest.mark.requirement("I2-leftover", "I2-run-json")
def test_what_a_command_leaves_is_stopped_and_listed(cli: Callable[..., subprocess.CompletedProcess[str]], marker: Marker) -> None:
    done = cli("run", "--no-login", "--json", "--", "sleep 300 & echo hi")
    record = json.loads(done.stdout)
    assert (record["status"], record["output"]["text"]) == ("exited", "hi\n")
    assert [member["command"] for member in record["lingering"]] == ["sleep 300"]
    assert not marker.gone_within(2)


def test_a_person_is_told_that_leftovers_were_stopped(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--no-login", "--", "sleep 300 & echo hi")
    assert done.returncode == 0
    assert "stopped what the command left" in done.stderr
    assert "sleep 300" in done.stderr


@pytest.mark.requirement("I2-leftover")
def test_a_kept_leftover_lingers_is_listed_and_can_be_stopped(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--no-login", "--on-linger", "keep", "--", "sleep 300 & echo hi")
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "sleep 300" in done.stderr
    assert "[still running: " in done.stderr
    (listed,) = json.loads(cli("ps", "--json").stdout)
    assert (listed["status"], listed["lifetime"]) == ("lingering", {"requested": "call", "effective": "detached"})
    stopped = cli("stop", listed["id"])
    assert (stopped.returncode, "proved" in stopped.stdout) == (0, True)
    assert json.loads(cli("ps", "--json").stdout) == []


@pytest.mark.requirement("I2-chatty-leftover")
@pytest.mark.parametrize("on_linger", ["stop", "keep"])
def test_a_leftover_that_goes_on_writing_does_not_hold_up_the_result(
    on_linger: str, cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    began = time.monotonic()
    text = "(while :; do echo x; sleep 0.1; done) & exit 0"
    done = cli("run", "--no-login", "--on-linger", on_linger, "--grace", "0.3", "--json", "--", text)
    assert time.monotonic() - began < 4
    assert json.loads(done.stdout)["exit_code"] == 0
    cli("stop", "-")


@pytest.mark.requirement("I2-yes")
def test_an_endless_writer_under_a_timeout_is_gone_with_exact_counts(
    cli: Callable[..., subprocess.CompletedProcess[str]], marker: Marker
) -> None:
    record = json.loads(cli("run", "--timeout", "0.5", "--json", "--", "yes", "endlessly").stdout)
    output = record["output"]
    assert record["status"] == "timed_out"
    assert output["bytes"] == output["kept_bytes"] + output["dropped_bytes"] > 0
    assert not marker.gone_within(2)


@pytest.mark.requirement("I2-background-returns")
def test_a_background_start_returns_at_once_inside_a_command_substitution(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    began = time.monotonic()
    script = f'x=$({sys.executable} -m proctor run --background -- sleep 100); echo "got $x"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert time.monotonic() - began < 5
    (listed,) = json.loads(cli("ps", "--json").stdout)
    assert done.stdout == f"got {listed['id']}\n"
    assert (listed["status"], listed["lifetime"]["effective"]) == ("running", "detached")
    assert cli("stop", "-").returncode == 0


@pytest.mark.requirement("I2-run-live")
def test_output_is_there_while_the_command_still_runs(begin: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    run = begin("run", "--no-login", "--", f"echo first; echo problem >&2; cat {gate}; echo last")
    assert run.stdout is not None
    assert run.stderr is not None
    assert run.stdout.readline() == "first\n"
    assert run.stderr.readline() == "problem\n"
    assert run.poll() is None
    gate.write_text("let through\n")
    assert run.communicate(timeout=20) == ("let through\nlast\n", "")


@pytest.mark.requirement("I2-run-live", "I2-huge-output")
def test_a_slow_reader_loses_nothing_of_an_output_larger_than_what_is_kept(begin: Callable[..., Any]) -> None:
    amount = 150_000_000
    run = begin("run", "--", "head", "-c", str(amount), "/dev/zero", text=False)
    begun = run.stdout.read(1)  # the command writes on, until it has to wait for us
    probe = subprocess.run([sys.executable, "-m", "proctor", "wait", "-", "--for", "idle=0.4"], capture_output=True, check=False)
    assert probe.returncode == 0
    digest = hashlib.sha256(begun)
    while part := run.stdout.read(1 << 20):
        digest.update(part)
    assert run.wait(20) == 0
    assert run.stderr.read() == b""
    expected = hashlib.sha256()
    for _ in range(150):
        expected.update(bytes(1_000_000))
    assert digest.digest() == expected.digest()


@pytest.mark.requirement("I2-run-live")
def test_the_order_of_arrival_is_kept_where_both_streams_go_to_one_place(begin: Callable[..., subprocess.Popen[str]]) -> None:
    text = "for i in 1 2 3 4 5; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done"
    run = begin("run", "--no-login", "--", text, stderr=subprocess.STDOUT)
    out, _ = run.communicate(timeout=20)
    assert out == "".join(f"out{number}\nerr{number}\n" for number in range(1, 6))


@pytest.mark.requirement("I2-run-live")
def test_a_program_gets_the_bytes_and_a_terminal_gets_no_control_sequence(home: str) -> None:
    del home
    command = [sys.executable, "-m", "proctor", "run", "--", "printf", r"\033[31mred\033[0m \303\244 \033]0;title\007end\n"]
    piped = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert piped.stdout == b"\x1b[31mred\x1b[0m \xc3\xa4 \x1b]0;title\x07end\n"
    ours, theirs = pty.openpty()
    shown = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    assert shown.wait(20) == 0
    assert os.read(ours, 4096).replace(b"\r\n", b"\n") == "red ä end\n".encode()
    os.close(ours)


@pytest.mark.requirement("I2-run-live")
def test_a_reader_that_goes_away_stops_the_tree_and_gives_141(begin: Callable[..., subprocess.Popen[str]], marker: Marker) -> None:
    run = begin("run", "--no-login", "--", "yes & yes; wait")
    assert run.stdout is not None
    assert run.stdout.readline() == "y\n"
    run.stdout.close()
    assert run.wait(20) == 141
    assert not marker.gone_within(2)


def test_a_full_disk_behind_standard_output_stops_the_command_and_says_so(begin: Callable[..., subprocess.Popen[str]]) -> None:
    with open("/dev/full", "w") as full:
        run = begin("run", "--no-login", "--", "echo hello; sleep 60", stdout=full)
        _, errors = run.communicate(timeout=20)
    assert run.returncode == 125
    assert "No space left" in errors


@pytest.mark.requirement("I2-run-json")
def test_json_is_the_record_alone_on_standard_output_also_when_nothing_could_be_started(
    cli: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = cli("run", "--no-login", "--json", "--reason", "a test", "--", "echo out; echo err >&2; exit 5")
    record = json.loads(done.stdout)
    assert done.returncode == 5
    assert (record["schema"], record["exit_code"], record["reason"]) == (1, 5, "a test")
    assert (record["output"]["stdout"], record["output"]["stderr"]) == ("out\n", "err\n")
    refused = json.loads(cli("run", "--json", "--tty", "--", "true").stdout)
    assert refused["error"]["code"] == "unsupported_here"


def test_nothing_is_taken_from_standard_input_unless_it_was_asked_for(begin: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("from a file\n")
    with given.open() as file:
        assert begin("run", "--", "cat", stdin=file).communicate(timeout=20) == ("", "")
        assert file.tell() == 0
        assert begin("run", "--stdin", "-", "--", "cat", stdin=file).communicate(timeout=20) == ("from a file\n", "")
    assert begin("run", "--stdin", str(given), "--", "cat").communicate(timeout=20) == ("from a file\n", "")


def test_variables_come_from_flags_and_files_and_a_secret_only_by_name(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "hidden")
    listing = tmp_path / "variables"
    listing.write_text("# a comment\nFIRST=from file = here\nSECOND=from file\n\n")
    text = 'printf "%s|" "$FIRST" "$SECOND" "$DEPLOY_TOKEN"'
    files = ("--env-file", str(listing), "--env", "SECOND=flag")
    assert cli("run", "--no-login", *files, "--", text).stdout == "from file = here|flag||"
    assert cli("run", "--no-login", "--env", "DEPLOY_TOKEN", "--", text).stdout == "||hidden|"
    assert cli("run", "--env", "NOT_SET_ANYWHERE", "--", "true").returncode == 2


@pytest.mark.requirement("I2-config")
def test_settings_of_environment_and_workspace_hold_and_flags_win(
    cli: Callable[..., subprocess.CompletedProcess[str]], work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_TIMEOUT_S", "30")
    (work / ".proctor").mkdir()
    (work / ".proctor" / "config.toml").write_text("timeout_s = 20\nmaximum_timeout_s = 25\n")
    limits = [
        json.loads(cli("run", "--json", *flags, "--", "true", "x").stdout)["limits"]
        for flags in ([], ["--timeout", "9"], ["--timeout", "60"])
    ]
    assert [limit["timeout_s"] for limit in limits] == [25, 9, 25]
    assert limits[2]["clamped"] == ["timeout_s: 60 -> 25"]


def test_a_run_without_the_sandbox_it_asked_for_says_so_in_its_record(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--sandbox", "read-only", "--allow-unsandboxed", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.startswith("[this run had no OS isolation: ")
    assert "no OS isolation" in json.loads(cli("show", "-", "--json").stdout)["notices"][0]


def test_an_output_limit_stops_the_command(cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = cli("run", "--output-limit", "1000", "--", "yes")
    assert done.returncode not in {0, 124, 125}
    assert "[output ended at 1 KB, command stopped]" in done.stderr
