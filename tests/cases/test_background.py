"""Faults of the kind "what should have gone on did not, and what should have ended went on"."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

import pytest

from proctor import EndedBy, Status

if TYPE_CHECKING:
    from pathlib import Path

    from proctor import SyncExecution, SyncProctor
    from proctor.testing import Marker

BUSY_S = 2.0  # what busy cores may add; measured without load: 2.3 s


@pytest.mark.requirement("O-BG-01", "I2-leftover")
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("sleep 43231 & echo started", 0, "started\n"),
        ("nohup sleep 43231 & echo s2", 0, "s2\n"),
        ("sleep 43231 & exit 3", 3, ""),
        ("setsid -f sleep 43231; echo s4", 0, "s4\n"),
        ("(sleep 43231 >/dev/null 2>&1 &); echo s5", 0, "s5\n"),
    ],
)
@pytest.mark.parametrize("on_linger", ["stop", "keep"])
def test_leftovers_never_hold_up_a_call_and_are_listed(
    text: str, code: int, said: str, on_linger: str, host: SyncProctor, marker: Marker
) -> None:
    began = time.monotonic()
    record = host.run(text, timeout=30, on_linger=on_linger)
    assert time.monotonic() - began < 2 + BUSY_S
    assert (record.exit_code, record.output.stdout) == (code, said)
    assert [member.command for member in record.lingering] == ["sleep 43231"]
    if on_linger == "stop":
        assert record.status is Status.EXITED
        assert record.tree is not None
        assert record.tree.proved
        assert marker.commands() == []
        return
    assert (record.status, record.lifetime.effective) == (Status.LINGERING, "detached")
    assert [process.pid for process in marker.commands()] == [record.lingering[0].pid]
    assert [unfinished.id for unfinished in host.unfinished()] == [record.id]
    stopped = host.stop(record.id)
    assert stopped is not None
    assert (stopped.status, stopped.ended_by, stopped.exit_code) == (Status.CANCELLED, EndedBy.STOP, code)
    assert marker.commands() == []


@pytest.mark.requirement("O-BG-01", "I2-chatty-leftover")
@pytest.mark.parametrize("on_linger", ["stop", "keep"])
def test_a_leftover_that_goes_on_talking_holds_up_a_result_for_three_seconds_at_most(
    on_linger: str, host: SyncProctor, marker: Marker
) -> None:
    began = time.monotonic()
    record = host.run("(while :; do echo x; sleep 0.1; done) & exit 0", on_linger=on_linger)
    assert time.monotonic() - began < 3 + BUSY_S
    assert record.exit_code == 0
    assert (record.output.stdout or "").startswith("x\n")
    if on_linger == "keep":
        with host.attach(record.id) as execution:
            before = record.output.bytes
            _until_bytes(execution, before + 2)  # late bytes stay readable under the same id
            ended = execution.stop()
        assert ended.output.late_bytes >= 2
        assert ended.output.bytes == before + ended.output.late_bytes
    assert marker.commands() == []


def _until_bytes(execution: SyncExecution, amount: int, limit_s: float = 5.0) -> bytes:
    until = time.monotonic() + limit_s
    while len(data := execution.read_since(0).data) < amount:
        assert time.monotonic() < until, data
        select.select([], [], [], 0.02)  # a growing file gives no event
    return data


@pytest.mark.requirement("O-BG-02")
def test_a_server_lives_across_calls_until_it_is_stopped(host: SyncProctor, marker: Marker) -> None:
    with host.start("python3 -u -m http.server 0 --bind 127.0.0.1", lifetime="host") as server:
        said = _until_bytes(server, len("Serving HTTP on ")).decode()
        assert said.startswith("Serving HTTP on 127.0.0.1 port ")
        port = int(said.split(" port ")[1].split()[0])
        for _ in range(3):
            asked = host.run(f"exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'HEAD / HTTP/1.0\\r\\n\\r\\n' >&3 && head -1 <&3")
            assert "200 OK" in (asked.output.stdout or ""), asked.output
        shown = host.show(server.id)
        assert (shown.status, shown.ended_by) == (Status.RUNNING, None)
        assert "Serving HTTP" in (shown.output.text or "")
        began = time.monotonic()
        stopped = server.stop()
        assert time.monotonic() - began < 2
    assert (stopped.status, stopped.signal) == (Status.CANCELLED, "TERM")
    assert marker.commands() == []


@pytest.mark.requirement("O-BG-02")
def test_leftovers_that_are_kept_tell_which_port_they_listen_on(host: SyncProctor, work: Path) -> None:
    (work / "serve.py").write_text(
        "import os, socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
        "print(s.getsockname()[1], flush=True)\nif os.fork(): os._exit(0)\nos.setsid(); s.accept()\n"
    )
    record = host.run("python3 serve.py", on_linger="keep")
    port = int((record.output.stdout or "0").strip())
    assert [member.listening for member in record.lingering] == [(port,)]
    assert host.stop(record.id) is not None


@pytest.mark.requirement("O-BG-03")
@pytest.mark.parametrize("streams", ["merged", "split"])
def test_output_without_end_is_bounded_on_disk_and_the_record_counts_what_was_dropped(streams: str, host: SyncProctor, home: str) -> None:
    with host.start("yes 0123456789", streams=streams) as execution:
        _until_total(host, execution, 200 << 20)
        record = execution.stop()
        disk = sum(entry.stat().st_size for entry in os.scandir(os.path.join(home, "runs", execution.id)))
        tail = execution.read_since(record.output.bytes - 4)
    assert record.output.bytes == record.output.kept_bytes + record.output.dropped_bytes
    assert record.output.dropped_bytes > 0
    assert 60 << 20 <= record.output.kept_bytes <= 66 << 20
    assert disk <= 68 << 20
    assert len(tail.data) == 4
    assert tail.next_offset == record.output.bytes


def _until_total(host: SyncProctor, execution: SyncExecution, amount: int, limit_s: float = 20.0) -> None:
    until = time.monotonic() + limit_s
    while host.show(execution.id).output.bytes < amount:
        assert time.monotonic() < until
        select.select([], [], [], 0.02)


@pytest.mark.requirement("O-BG-03")
def test_an_output_limit_ends_the_command_and_says_so(host: SyncProctor, marker: Marker) -> None:
    record = host.run("yes 0123456789", output_limit=1 << 20)
    assert (record.status, record.ended_by, record.cancelled) == (Status.CANCELLED, EndedBy.OUTPUT_LIMIT, True)
    assert record.output.bytes > 1 << 20
    assert record.stop is not None
    assert "1048576" in record.stop.reason
    assert marker.commands() == []


@pytest.mark.requirement("O-BG-04")
def test_stopped_is_said_only_once_the_loop_cannot_advance(host: SyncProctor, work: Path, marker: Marker) -> None:
    os.mkfifo(work / "up")
    text = "for i in 1 2 3 4; do timeout 60 sh -c 'echo > up; sleep 2; echo tick >> alive.txt'; done"
    with host.start(text) as execution:
        (work / "up").read_text()
        record = execution.stop()
        assert marker.commands() == []
    assert record.status is Status.CANCELLED
    assert record.tree is not None
    assert record.tree.proved
    assert not (work / "alive.txt").exists()


@pytest.mark.requirement("O-BG-05")
def test_calls_after_a_background_command_hit_its_limit_are_not_affected(host: SyncProctor) -> None:
    with host.start("while :; do sleep 1; done", timeout=0.3, session="s") as execution:
        assert execution.wait(timeout=10).status is Status.TIMED_OUT
    for options in ({}, {"session": "s"}):
        record = host.run("echo hi", **options)  # type: ignore[arg-type]
        assert (record.output.stdout, record.exit_code) == ("hi\n", 0)


@pytest.mark.requirement("I2-yes")
def test_yes_with_a_limit_leaves_no_tree_and_exact_counts(host: SyncProctor, marker: Marker) -> None:
    record = host.run("yes", timeout=1)
    assert marker.commands() == []
    assert record.status is Status.TIMED_OUT
    output = record.output
    assert output.bytes == output.kept_bytes + output.dropped_bytes > 0
    with host.attach(record.id) as execution:
        kept, offset = 0, 0
        while (chunk := execution.read_since(offset)).data:
            assert chunk.data.count(b"y") + chunk.data.count(b"\n") == len(chunk.data)
            kept, offset = kept + len(chunk.data), chunk.next_offset
    assert (kept, offset) == (output.kept_bytes, output.bytes)


@pytest.mark.requirement("I2-lifetime")
def test_a_named_session_keeps_what_a_call_left(host: SyncProctor) -> None:
    record = host.run("sleep 43231 & echo hi", session="mine", on_linger="keep")
    assert (record.status, record.lifetime.requested, record.lifetime.effective) == (Status.LINGERING, "call", "session")
    assert host.stop(record.id) is not None
