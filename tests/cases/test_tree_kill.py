"""Faults of the kind "the caller was told that it is over, and it was not"."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from proctor import EndedBy, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Script

    from proctor import Record, SyncProctor
    from proctor.testing import Marker

SLACK_S = 2.0
GRACE_S = 0.5


def assert_timed_out_and_gone(record: Record, marker: Marker) -> None:
    """See that the record claims a proved ending by timeout, and that the witness agrees at this very moment."""
    assert marker.commands() == []
    assert (record.status, record.ended_by, record.timed_out) == (Status.TIMED_OUT, EndedBy.TIMEOUT, True)
    assert record.tree is not None
    assert record.tree.proved
    assert record.tree.survivors == ()


@pytest.mark.requirement("O-TK-01")
def test_a_timeout_ends_the_worker_below_the_shell_before_the_call_returns(host: SyncProctor, work: Path, marker: Marker) -> None:
    inner = """python3 -c 'import subprocess; subprocess.run(["sh","-c","echo up > up.txt; sleep 4; echo late > late.txt"])'; echo done"""
    began = time.monotonic()
    record = host.run(inner, timeout=1)
    assert time.monotonic() - began < 1 + SLACK_S
    assert_timed_out_and_gone(record, marker)  # nobody is left who could write it
    assert (work / "up.txt").exists()
    assert not (work / "late.txt").exists()


@pytest.mark.requirement("O-TK-02", "I2-timeout-json")
@pytest.mark.parametrize(
    "command",
    [
        "setsid sleep 43212 & wait",
        "setsid setsid sleep 43212 & setsid -f sleep 43213; wait; sleep 43212",
        "(setsid sleep 43212 >/dev/null 2>&1 </dev/null &) ; sleep 43212",
        "set -m; sleep 43212 & sleep 43213 & wait",
    ],
    ids=["setsid", "forked twice", "detached by hand", "own groups"],
)
def test_a_descendant_in_another_session_or_group_is_ended_too(command: str, host: SyncProctor, marker: Marker) -> None:
    began = time.monotonic()
    record = host.run(command, timeout=0.5)
    assert time.monotonic() - began < 0.5 + SLACK_S
    assert_timed_out_and_gone(record, marker)
    assert record.tree is not None
    assert not record.tree.escalated


@pytest.mark.requirement("O-TK-03")
def test_who_ignores_term_is_killed_after_the_grace_and_the_record_says_so(host: SyncProctor, marker: Marker) -> None:
    began = time.monotonic()
    record = host.run("trap '' TERM INT HUP; while :; do sleep 43214; done", timeout=0.5, grace=GRACE_S)
    took = time.monotonic() - began
    assert 0.5 + GRACE_S <= took < 0.5 + GRACE_S + 1
    assert_timed_out_and_gone(record, marker)
    assert record.tree is not None
    assert record.tree.escalated
    assert record.tree.signals == ("TERM", "CONT", "KILL")


@pytest.mark.requirement("O-TK-04")
def test_a_stopped_shell_is_woken_to_hear_the_term_and_its_later_words_are_no_success(host: SyncProctor, marker: Marker) -> None:
    began = time.monotonic()
    record = host.run("sh -c 'sleep 43215 & kill -STOP $$'; echo woke", timeout=0.5, grace=GRACE_S)
    assert time.monotonic() - began < 0.5 + GRACE_S + 1
    assert_timed_out_and_gone(record, marker)


@pytest.mark.requirement("O-TK-04")
def test_a_stopped_grandchild_in_its_own_session_acts_on_term_within_the_grace(host: SyncProctor, marker: Marker, work: Path) -> None:
    record = host.run("setsid sh -c 'trap \"echo heard > heard; exit\" TERM; kill -STOP $$; sleep 43215 & wait' & wait", timeout=0.5)
    assert_timed_out_and_gone(record, marker)
    assert record.tree is not None
    assert not record.tree.escalated
    assert (work / "heard").exists()


@pytest.mark.requirement("O-TK-05")
@pytest.mark.parametrize("way", ["timeout", "stop"])
def test_git_gets_to_remove_its_lock(way: str, host: SyncProctor, work: Path) -> None:
    editor = work / "ed"
    editor.write_text("#!/bin/sh\necho editing > ../opened\nsleep 60\n")
    editor.chmod(0o755)
    git = "git -c user.name=t -c user.email=t@example.invalid"
    made = host.run(f"git init -q r && cd r && echo 0 > f && git add f && {git} commit -qm x && echo 1 >> f")
    assert made.exit_code == 0, made.output.text
    commit = f"GIT_EDITOR={shlex.quote(str(editor))} {git} commit -a"
    if way == "timeout":
        record = host.run(commit, cwd=work / "r", timeout=1)
        assert record.status is Status.TIMED_OUT
    else:
        with host.start(f"mkfifo ../gate; (cat ../gate >/dev/null; echo open) & {commit}", cwd=work / "r") as execution:
            _await_file(host, work / "opened")
            assert execution.stop().status is Status.CANCELLED
    assert (work / "opened").exists()
    assert not (work / "r" / ".git" / "index.lock").exists()


def _await_file(host: SyncProctor, path: Path) -> None:
    waited = host.run(["sh", "-c", 'until test -e "$0"; do sleep 0.02; done', str(path)], timeout=5)
    assert waited.exit_code == 0


HOST_THAT_RUNS = """
with proctor.open_sync(home=home) as p:
    if sys.argv[2] == "call":
        print("calling")
        p.run(sys.argv[3], timeout=600)
    else:
        p.start(sys.argv[3])
        print("calling")
        sys.stdin.read()
"""


@pytest.mark.requirement("O-TK-06")
@pytest.mark.parametrize("lifetime", ["call", "host"])
def test_a_host_killed_with_sigkill_takes_its_work_along(lifetime: str, script: Callable[..., Script], marker: Marker, work: Path) -> None:
    os.mkfifo(work / "up")
    running = script(HOST_THAT_RUNS, lifetime, "trap '' TERM HUP; sleep 43251 & setsid sleep 43252 & echo up > up; wait; sleep 43251")
    assert running.line() == "calling"
    (work / "up").read_text()  # until the command is up
    assert len(marker.commands()) >= 3
    running.kill()
    assert marker.gone_within(3, commands_only=True) == []


@pytest.mark.requirement("O-TK-06")
@pytest.mark.parametrize("round_number", range(7))
def test_a_host_killed_right_after_the_spawn_leaves_nothing(round_number: int, script: Callable[..., Script], marker: Marker) -> None:
    running = script(HOST_THAT_RUNS, "call", "sleep 43251 & sleep 43252")
    assert running.line() == "calling"
    select.select([], [], [], round_number / 60)  # the moment of the kill is what varies
    running.kill()
    assert marker.gone_within(3) == []


@pytest.mark.requirement("O-TK-06")
def test_detached_work_is_exempt_and_says_so_in_its_record(host: SyncProctor, script: Callable[..., Script], marker: Marker) -> None:
    running = script('p = proctor.open_sync(home=home); print(p.start(["sleep", "43251"], lifetime="detached").id); sys.stdin.read()')
    name = running.line()
    running.kill()
    record = host.show(name)
    assert (record.status, record.lifetime.effective) == (Status.RUNNING, "detached")
    assert len(marker.commands()) == 1
    stopped = host.stop(name)
    assert stopped is not None
    assert (stopped.status, stopped.ended_by) == (Status.CANCELLED, EndedBy.STOP)
    assert marker.commands() == []


COMET = """
import os, sys, time
until = time.monotonic() + 60
while time.monotonic() < until:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.02)
"""


@pytest.mark.requirement("O-TK-07")
@pytest.mark.parametrize("comets", [1, 30])
def test_a_process_that_forks_and_exits_for_ever_is_caught(comets: int, host: SyncProctor, marker: Marker, work: Path) -> None:
    (work / "comet.py").write_text(COMET)
    start = "python3 comet.py comet43219 & " * comets
    began = time.monotonic()
    record = host.run(f"ulimit -u $(( $(ps -eLf | wc -l) + 2000 )); {start} sleep 30", timeout=1, grace=GRACE_S)
    assert time.monotonic() - began < 1 + GRACE_S + 5
    assert_timed_out_and_gone(record, marker)


@pytest.mark.requirement("O-TK-07")
def test_a_bystander_of_the_same_user_is_never_signalled(host: SyncProctor) -> None:
    told = "import signal; [signal.signal(n, lambda n, _: print(n, flush=True)) for n in (1, 2, 15, 18)]; print('up', flush=True); input()"
    bystander = subprocess.Popen(["python3", "-c", told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert bystander.stdout is not None
    assert bystander.stdout.readline() == "up\n"
    record = host.run("trap '' TERM; setsid sleep 43212 & sleep 43212; sleep 43212", timeout=0.3, grace=0.2)
    assert record.status is Status.TIMED_OUT
    assert not bystander.communicate("\n", timeout=5)[0]
    assert bystander.returncode == 0


HEARTBEAT = """
import subprocess, sys, time
child = "import time\\nfor _ in range(150):\\n open('beat', 'a').write('x'); time.sleep(0.2)\\nopen('end', 'w').write('end')"
subprocess.Popen([sys.executable, "-c", child])
time.sleep(30)
"""


@pytest.mark.requirement("I2-heartbeat", "I2-heartbeat-shell", "I2-root-group")
@pytest.mark.parametrize("shape", ["python", "sh -c 'sleep & wait'"])
@pytest.mark.parametrize("way", ["timeout", "stop"])
def test_the_heartbeat_falls_silent(shape: str, way: str, host: SyncProctor, work: Path, marker: Marker) -> None:
    (work / "parent.py").write_text(HEARTBEAT)
    beat = "for i in $(seq 150); do printf x >> beat; sleep 0.2; done; echo end > end"
    text = "python3 parent.py" if shape == "python" else f"sh -c 'sleep 30 & ({beat}) & wait'"
    began = time.monotonic()
    with host.start(text, timeout=1.5 if way == "timeout" else None) as execution:
        assert execution.record.pid is not None
        assert os.getpgid(execution.record.pid) == execution.record.pid
        if way == "timeout":
            record = execution.wait()
            assert (record.status, record.ended_by) == (Status.TIMED_OUT, EndedBy.TIMEOUT)
        else:
            _await_file(host, work / "beat")
            record = execution.stop(reason="seen enough")
            assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.STOP)
            assert record.stop is not None
            assert record.stop.reason == "seen enough"
    assert time.monotonic() - began < 15
    assert marker.commands() == []
    beats = (work / "beat").stat().st_size
    assert beats > 0
    select.select([], [], [], 0.7)  # silence is the absence of an event: three beats' worth of it
    assert (work / "beat").stat().st_size == beats
    assert not (work / "end").exists()


@pytest.mark.requirement("I2-stop-of-nothing")
def test_stopping_nothing_an_ended_and_a_never_started_execution_raises_nothing(host: SyncProctor) -> None:
    assert host.stop(None) is None
    with host.start(["true"], cwd="/") as ended:
        assert ended.wait().status is Status.EXITED
        again = ended.stop()
        assert (again.status, again.exit_code, again.stop) == (Status.EXITED, 0, None)
        by_name = host.stop(ended.id)
        assert by_name is not None
        assert by_name.status is Status.EXITED
    with host.start(["/no/such/prog"]) as never:
        stopped = never.stop()
        assert (stopped.status, stopped.ended_by) == (Status.FAILED, EndedBy.START_ERROR)
