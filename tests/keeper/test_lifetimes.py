"""Lifetimes with real deaths: who goes with the host, who stays, and what is written about it."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import EndedBy, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Script

    from proctor import Record, SyncProctor
    from proctor.testing import Marker

STARTER = """
p = proctor.open_sync(home=home)
lifetime = sys.argv[2]
options = {"session": "mine"} if lifetime == "session" else {}
execution = p.start(sys.argv[3], lifetime=lifetime, login=False, **options)
print(execution.id, p.runtime._zygote.pid, execution.record.keeper_pid, flush=True)
sys.stdin.read()
"""


def _started(script: Callable[..., Script], lifetime: str, text: str = "sleep 60") -> tuple[Script, str, int, int]:
    running = script(STARTER, lifetime, text)
    name, zygote, keeper = running.line().split()
    return running, name, int(zygote), int(keeper)


def _ended(home: str, name: str) -> Record:
    with proctor.open_sync(home=home) as p, p.attach(name) as execution:
        return execution.wait(timeout=10)


@pytest.mark.requirement("I2-lifetime", "O-TK-06")
@pytest.mark.parametrize("lifetime", ["call", "host"])
@pytest.mark.parametrize("text", ["sleep 60", "trap '' TERM HUP; setsid sleep 60 & sleep 60; sleep 60"])
def test_what_is_bound_to_a_killed_host_ends_within_three_seconds_and_says_why(
    lifetime: str, text: str, home: str, script: Callable[..., Script], marker: Marker
) -> None:
    running, name, _, _ = _started(script, lifetime, text)
    running.kill()
    assert marker.gone_within(3, commands_only=True) == []
    record = _ended(home, name)
    assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.OWNER_GONE)
    assert record.tree is not None
    assert record.tree.proved


@pytest.mark.requirement("I2-lifetime")
@pytest.mark.parametrize("lifetime", ["session", "detached"])
def test_what_is_not_bound_lives_on_and_is_there_for_the_next_host(
    lifetime: str, home: str, script: Callable[..., Script], marker: Marker
) -> None:
    running, name, _, _ = _started(script, lifetime)
    running.kill()
    with proctor.open_sync(home=home) as p:
        assert [record.id for record in p.unfinished()] == [name]
        record = p.show(name)
        assert (record.status, record.lifetime.effective, record.second_net) == (Status.RUNNING, lifetime, True)
        assert len(marker.commands()) == 1
        stopped = p.stop(name)
    assert stopped is not None
    assert (stopped.status, stopped.ended_by) == (Status.CANCELLED, EndedBy.STOP)


@pytest.mark.requirement("I2-lifetime")
def test_a_host_that_ends_in_good_order_takes_along_what_is_bound_to_it(home: str, script: Callable[..., Script], marker: Marker) -> None:
    running, name, _, _ = _started(script, "host")
    assert running.process.stdin is not None
    running.process.stdin.close()
    running.process.stdin = None
    running.process.wait(10)
    assert marker.gone_within(3, commands_only=True) == []
    assert _ended(home, name).ended_by is EndedBy.OWNER_GONE


@pytest.mark.requirement("I2-lifetime")
def test_closing_the_runtime_touches_nothing_while_the_process_lives(home: str, host: SyncProctor, marker: Marker) -> None:
    with proctor.open_sync(home=home) as first:
        execution = first.start(["sleep", "60"])
        execution.close()
    assert len(marker.commands()) == 1
    stopped = host.stop(execution.id)
    assert stopped is not None
    assert stopped.status is Status.CANCELLED


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("lifetime", ["host", "detached"])
def test_a_keeper_runs_on_without_its_zygote_and_says_that_nobody_stands_behind_it(
    lifetime: str, home: str, script: Callable[..., Script]
) -> None:
    _, name, zygote, _ = _started(script, lifetime)
    os.kill(zygote, signal.SIGKILL)
    with proctor.open_sync(home=home) as p:
        until = time.monotonic() + 5
        while p.show(name).second_net is not False:
            assert time.monotonic() < until
            select.select([], [], [], 0.01)  # the death of another's child has no event for us
        stopped = p.stop(name)
    assert stopped is not None
    assert stopped.tree is not None
    assert (stopped.status, stopped.tree.proved) == (Status.CANCELLED, True)


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("lifetime", ["host", "detached"])
@pytest.mark.parametrize("text", ["sleep 60", "trap '' TERM HUP; setsid sleep 60 & (sleep 60 &); sleep 60; sleep 60"])
def test_the_tree_of_a_killed_keeper_is_ended_by_the_zygote_which_writes_the_ending(
    lifetime: str, text: str, home: str, script: Callable[..., Script], marker: Marker
) -> None:
    _, name, _, keeper = _started(script, lifetime, text)
    os.kill(keeper, signal.SIGKILL)
    assert marker.gone_within(5, commands_only=True) == []
    record = _ended(home, name)
    assert (record.status, record.ended_by, record.exit_code) == (Status.LOST, EndedBy.KEEPER_LOST, None)
    assert record.tree is not None
    assert record.tree.proved


@pytest.mark.requirement("I2-faults")
def test_the_commands_of_other_keepers_are_not_touched_when_one_is_killed(host: SyncProctor, marker: Marker) -> None:
    others = [host.start("setsid sleep 60 & (sleep 60 &); sleep 60; true") for _ in range(3)]
    victim = host.start("setsid sleep 60 & (sleep 60 &); sleep 60; true")
    until = time.monotonic() + 5
    while len([process for process in marker.commands() if process.command == "sleep 60"]) < 12:
        assert time.monotonic() < until
    assert victim.record.keeper_pid is not None
    os.kill(victim.record.keeper_pid, signal.SIGKILL)
    lost = victim.wait(timeout=10)
    assert (lost.status, lost.tree.proved if lost.tree else None) == (Status.LOST, True)
    assert {process.execution for process in marker.commands()} == {other.id for other in others}
    for other in others:
        stopped = other.stop()
        assert (stopped.status, stopped.tree.proved if stopped.tree else None) == (Status.CANCELLED, True)
        other.close()
    victim.close()
    assert marker.commands() == []


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("lifetime", ["host", "detached"])
def test_without_keeper_and_zygote_the_next_host_tells_what_is_left_and_ends_what_was_bound(
    lifetime: str, home: str, script: Callable[..., Script], marker: Marker
) -> None:
    running, name, zygote, keeper = _started(script, lifetime)
    deaths = [os.pidfd_open(pid) for pid in (zygote, keeper)]
    for pid in (zygote, keeper):
        os.kill(pid, signal.SIGSTOP)
    running.kill()
    for pid in (zygote, keeper):
        os.kill(pid, signal.SIGKILL)
    for death in deaths:
        assert select.select([death], [], [], 5)[0]
        os.close(death)
    with proctor.open_sync(home=home) as p:
        record = p.show(name)
        if lifetime == "host":
            assert (record.status, record.ended_by) == (Status.LOST, EndedBy.KEEPER_LOST)
            assert marker.commands() == []
            return
        assert record.status is Status.UNRESOLVED
        assert record.tree is not None
        assert [member.pid for member in record.tree.survivors] == [process.pid for process in marker.commands()]
        assert not record.tree.proved
        stopped = p.stop(name)
        assert marker.commands() == []
        assert stopped is not None
        assert stopped.status in {Status.LOST, Status.CANCELLED}
        assert stopped.exit_code is None


@pytest.mark.requirement("I2-shutdown")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_keeper_told_to_go_ends_its_tree_and_writes_the_ending_first(
    number: int, home: str, script: Callable[..., Script], marker: Marker
) -> None:
    _, name, _, keeper = _started(script, "detached")
    os.kill(keeper, number)
    record = _ended(home, name)
    assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.SHUTDOWN)
    assert record.tree is not None
    assert record.tree.proved
    assert marker.commands() == []


@pytest.mark.requirement("I2-keeper-lock")
def test_the_lock_is_held_from_before_the_spawn_to_the_end(host: SyncProctor, home: str, work: Path) -> None:
    import fcntl

    os.mkfifo(work / "go")

    def held(name: str) -> bool:
        descriptor = os.open(os.path.join(home, "runs", name, "lock"), os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    with host.start("cat go; ls -l /proc/self/fd >&2") as execution:
        assert held(execution.id)
        (work / "go").write_text("")
        record = execution.wait()
        until = time.monotonic() + 5
        while held(execution.id):  # the ending is told before the keeper is gone
            assert time.monotonic() < until
    assert "lock" not in (record.output.stderr or "")
