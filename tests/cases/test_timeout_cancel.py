"""Faults of the kind "the limit was not the limit": too late, without what was said before it, told as a success, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import EndedBy, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Script

    from proctor import SyncProctor
    from proctor.testing import Marker


@pytest.mark.requirement("O-TC-01")
@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize(
    "text",
    [
        "(sleep 20; true) & sleep 20; echo x",
        "sleep 20 2>&1 >/dev/null & sleep 20",
        "setsid sleep 20 & sleep 20",
        "exec 5>&1 >/dev/null; sleep 20 & exec sleep 20",
    ],
)
def test_a_limit_is_the_limit_whoever_holds_the_pipes(text: str, shell: str, host: SyncProctor, marker: Marker) -> None:
    record = host.run(text, timeout=0.4, shell=shell)
    assert (record.status, record.timed_out) == (Status.TIMED_OUT, True)
    assert record.duration_s is not None
    assert record.duration_s < 2.4
    assert marker.commands() == []


@pytest.mark.requirement("O-TC-01")
def test_a_limit_is_the_limit_in_asyncio_too(home: str, marker: Marker) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p:
            began = time.monotonic()
            records = await asyncio.gather(*(p.run("(sleep 20; true) & sleep 20; echo x", timeout=0.4) for _ in range(5)))
            assert time.monotonic() - began < 3
            assert [record.status for record in records] == [Status.TIMED_OUT] * 5

    asyncio.run(main())
    assert marker.commands() == []


STRANGER_HOLDS_THE_PIPE = """
import array, os, socket, sys, time
a, b = socket.socketpair()
if os.fork() == 0:
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
    socket.send_fds(s, [b"x"], [1]); s.recv(1); os._exit(0)
os.wait()
print("given away")
"""


@pytest.mark.requirement("O-TC-01")
def test_a_pipe_held_by_a_stranger_outside_the_tree_does_not_hold_the_result(host: SyncProctor, work: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("stranger")
        listener.listen()
        (work / "give.py").write_text(STRANGER_HOLDS_THE_PIPE)
        with host.start(["/usr/bin/env", "python3", "give.py", "stranger"]) as execution:
            peer, _ = listener.accept()
            with peer:
                _, descriptors, _, _ = socket.recv_fds(peer, 1, 1)
                peer.send(b"x")
                record = execution.wait(timeout=5)
                os.close(descriptors[0])
    assert (record.status, record.exit_code, record.output.stdout) == (Status.EXITED, 0, "given away\n")


@pytest.mark.requirement("O-TC-02")
def test_what_was_said_before_the_limit_is_in_the_result(host: SyncProctor) -> None:
    record = host.run("echo step-1; echo warn >&2; printf 'no newline yet'; sleep 30", timeout=0.6)
    assert record.timed_out
    assert (record.output.stdout, record.output.stderr) == ("step-1\nno newline yet", "warn\n")


@pytest.mark.requirement("O-TC-02")
def test_what_is_said_in_answer_to_the_limit_is_in_the_result_too(host: SyncProctor) -> None:
    record = host.run("trap 'echo tidying; exit 3' TERM; sleep 30 & wait", timeout=0.4)
    assert (record.status, record.exit_code, record.output.stdout) == (Status.TIMED_OUT, 3, "tidying\n")


@pytest.mark.requirement("O-TC-03")
@pytest.mark.parametrize("limit", ["timeout", "idle_timeout"])
def test_exit_zero_in_answer_to_the_signal_is_no_success(limit: str, host: SyncProctor) -> None:
    options = {limit: 0.4}
    record = host.run("trap 'exit 0' TERM; sleep 60 & wait", **options)  # type: ignore[arg-type]
    assert (record.status, record.exit_code, record.timed_out, record.cancelled) == (Status.TIMED_OUT, 0, True, False)
    assert record.ended_by == limit


@pytest.mark.requirement("O-TC-03")
def test_exit_zero_in_answer_to_a_stop_is_no_success(host: SyncProctor, work: Path) -> None:
    os.mkfifo(work / "up")
    with host.start("trap 'exit 0' TERM; echo > up; sleep 60 & wait") as execution:
        (work / "up").read_text()
        record = execution.stop()
    assert (record.status, record.exit_code, record.timed_out, record.cancelled) == (Status.CANCELLED, 0, False, True)


@pytest.mark.requirement("O-TC-03")
def test_a_command_that_ends_by_itself_before_the_limit_is_no_timeout(host: SyncProctor) -> None:
    record = host.run("sleep 0.2; exit 7", timeout=20)
    assert (record.status, record.exit_code, record.timed_out, record.stop) == (Status.EXITED, 7, False, None)


@pytest.mark.requirement("O-TC-04")
def test_cancelled_before_the_start_is_never_started(home: str, work: Path) -> None:
    async def main() -> float:
        async with proctor.open(home=home) as p:
            task = asyncio.ensure_future(p.run("touch started.txt; sleep 5"))
            task.cancel()  # it has not had a turn yet
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            took = time.monotonic() - began
            assert await p.unfinished() == []
            return took

    assert asyncio.run(main()) < 0.1
    assert not (work / "started.txt").exists()


@pytest.mark.requirement("O-TC-04", "I2-cancel")
@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.003, 0.006, 0.01, 0.03, 0.1])
def test_cancelling_the_awaiting_task_stops_the_tree_before_the_cancellation_goes_on(delay_s: float, home: str, marker: Marker) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p:
            task = asyncio.ensure_future(p.run("setsid sleep 43216 & sleep 43217"))
            await asyncio.sleep(delay_s)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert marker.commands() == []
            assert await p.unfinished() == []

    asyncio.run(main())


@pytest.mark.requirement("I2-cancel")
def test_a_second_cancellation_during_the_stop_waits_for_the_proof_too(home: str, marker: Marker, work: Path) -> None:
    os.mkfifo(work / "up")

    async def main() -> None:
        async with proctor.open(home=home) as p:
            task = asyncio.ensure_future(p.run("trap '' TERM; echo > up; sleep 43216; sleep 43216", grace=0.5))
            await asyncio.to_thread((work / "up").read_text)
            task.cancel()
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert marker.commands() == []

    asyncio.run(main())


@pytest.mark.requirement("I2-cancel")
def test_an_outer_limit_of_asyncio_stops_the_tree_and_is_recorded_as_cancelled(home: str, marker: Marker) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.4):
                    await p.run("sleep 43216")
            assert marker.commands() == []
            record = await p.show("-")
            assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.CALLER_CANCELLED)

    asyncio.run(main())


INTERRUPTED = """
import signal, threading
with proctor.open_sync(home=home) as p:
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        p.run("setsid sleep 43218 & sleep 43218")
    except KeyboardInterrupt:
        print(os.popen("pgrep -fc '^sleep 43218$'").read().strip())
        print(p.show("-").status)
"""


@pytest.mark.requirement("I2-cancel")
def test_ctrl_c_in_a_script_stops_the_tree_before_it_is_raised(script: Callable[..., Script], marker: Marker) -> None:
    running = script(INTERRUPTED)
    assert [running.line(), running.line()] == ["0", "cancelled"]
    assert marker.commands() == []


@pytest.mark.requirement("O-TC-05")
@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_the_wall_clock_ends_nothing_and_prolongs_nothing(step_s: float, host: SyncProctor, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + step_s)
    monkeypatch.setattr(time, "time_ns", lambda: int((real() + step_s) * 1e9))
    fine = host.run("sleep 0.5; echo fine", timeout=10)
    assert (fine.output.stdout, fine.status) == ("fine\n", Status.EXITED)
    began = time.monotonic()
    late = host.run("sleep 20", timeout=0.5)
    assert late.status is Status.TIMED_OUT
    assert 0.5 <= time.monotonic() - began < 2
    with host.start("sleep 20") as execution:
        began = time.monotonic()
        with pytest.raises(proctor.ExecutionError):
            execution.wait(timeout=0.3)
        assert 0.3 <= time.monotonic() - began < 1
        execution.stop()


@pytest.mark.requirement("O-TC-05")
def test_a_machine_that_did_not_sleep_has_no_suspended_time(host: SyncProctor) -> None:
    record = host.run("sleep 0.2")
    assert record.suspended_s == pytest.approx(0, abs=0.05)
    assert record.duration_s == pytest.approx(0.2, abs=0.15)


@pytest.mark.requirement("I2-stop-twice")
def test_a_second_stop_joins_the_first_and_can_shorten_its_grace(host: SyncProctor, work: Path, home: str, marker: Marker) -> None:
    os.mkfifo(work / "up")
    with host.start("trap '' TERM; echo > up; while :; do sleep 43219; done", grace=30) as execution:
        (work / "up").read_text()
        ended: list[proctor.Record] = []

        def first() -> None:
            with proctor.open_sync(home=home) as other:
                record = other.stop(execution.id, reason="first")
                assert record is not None
                ended.append(record)

        thread = threading.Thread(target=first)
        thread.start()
        with contextlib.suppress(StopIteration):
            while type(next(execution.events())).__name__ != "StopAsked":
                pass
        began = time.monotonic()
        record = execution.stop(grace=0.2, reason="second")
        assert time.monotonic() - began < 3
        thread.join(5)
    assert marker.commands() == []
    assert record.stop is not None
    assert record.stop.reason == "first"
    assert (record.status, [other.status for other in ended]) == (Status.CANCELLED, [Status.CANCELLED])
