"""A host is killed with many detached executions running: nothing of them is lost, doubled or told wrongly."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import Lifetime, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Script

    from proctor import Record, SyncExecution, SyncProctor

    from .conftest import Barrier

ALL_RIGHT_WITHIN_S = 1.0
LOOKS = 3
LINES = 400

# Each writes half of its numbered lines, waits at the barrier, writes the other half to both streams, and ends with a code of its own.
COMMAND = (
    "i=0; while [ $i -lt 200 ]; do echo NAME line $i; i=$((i+1)); done; read -r _ < barrier; "
    "while [ $i -lt 400 ]; do echo NAME line $i; i=$((i+1)); done; exit CODE"
)
HOST = """
import json
command, count = sys.argv[2], int(sys.argv[3])
with proctor.open_sync(home=home) as p:
    for number in range(count):
        text = command.replace("NAME", f"run{number}").replace("CODE", str(number % 100))
        execution = p.start(text, shell="sh", lifetime="detached", streams="merged")
        print(json.dumps([execution.id, number]))
    print("null")
    sys.stdin.read()
"""


def expected_output(number: int) -> bytes:
    return b"".join(b"run%d line %d\n" % (number, line) for line in range(LINES))


def start_and_kill_host(script: Callable[..., Script], count: int) -> dict[str, int]:
    running = script(HOST, COMMAND, str(count))
    started: dict[str, int] = {}
    while (told := json.loads(running.line())) is not None:
        name, number = told
        started[name] = number
    running.kill()
    return started


def look(home: str) -> tuple[float, list[Record]]:
    began = time.monotonic()
    with proctor.open_sync(home=home) as host:
        found = host.unfinished()
        return time.monotonic() - began, found


def read_in_pieces(execution: SyncExecution, piece: int, offset: int = 0) -> tuple[int, bytes]:
    parts: list[bytes] = []
    while True:
        chunk = execution.read_since(offset, limit=piece)
        assert chunk.offset == offset
        assert chunk.gap_bytes == 0
        if not chunk.data:
            return offset, b"".join(parts)
        parts.append(chunk.data)
        offset = chunk.next_offset


def follow_to_the_end(host: SyncProctor, name: str, number: int, seen: tuple[int, bytes]) -> None:
    with host.attach(name) as execution:
        record = execution.wait(timeout=30)
        assert (record.status, record.exit_code) == (Status.EXITED, number % 100), record
        assert record.lifetime.effective is Lifetime.DETACHED
        assert record.tree is not None
        assert record.tree.proved
        offset, before = seen
        _, after = read_in_pieces(execution, 1021, offset)
        assert before + after == expected_output(number)
        assert record.output.bytes == record.output.kept_bytes == len(before) + len(after)


def show_that_all_is_there(script: Callable[..., Script], home: str, barrier: Barrier, count: int) -> None:
    started = start_and_kill_host(script, count)
    assert len(started) == count
    looks = [look(home) for _ in range(LOOKS)]  # each by a host of its own; the machine is shared, so the best one counts
    for _, found in looks:
        assert {(record.id, record.status) for record in found} == {(name, Status.RUNNING) for name in started}
    assert min(took for took, _ in looks) < ALL_RIGHT_WITHIN_S
    with proctor.open_sync(home=home) as host:
        seen: dict[str, tuple[int, bytes]] = {}
        for name in started:
            with host.attach(name) as execution:
                seen[name] = read_in_pieces(execution, 777)
        barrier.let_on(count)
        for name, number in started.items():
            follow_to_the_end(host, name, number, seen[name])
        assert host.unfinished() == []


@pytest.mark.requirement("I2-many-detached")
def test_twenty_detached_executions_outlive_their_killed_host_with_every_byte_and_exit_code(
    script: Callable[..., Script], home: str, barrier: Barrier
) -> None:
    show_that_all_is_there(script, home, barrier, 20)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-many-detached")
def test_two_hundred_detached_executions_outlive_their_killed_host_with_every_byte_and_exit_code(
    script: Callable[..., Script], home: str, barrier: Barrier
) -> None:
    show_that_all_is_there(script, home, barrier, 200)
