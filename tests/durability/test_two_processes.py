"""Two processes on one store, and hosts of every shape: nothing is lost, nothing is mixed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import proctor
from proctor import EndedBy, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Script

    from proctor import Record

# Half of them run to their end, half are stopped; each has a word of its own, in its arguments and in its output.
STARTS_AND_STOPS = """
import json
who, count = sys.argv[2], int(sys.argv[3])
print("ready")
sys.stdin.readline()
with proctor.open_sync(home=home) as p:
    for number in range(count):
        word = f"{who}-{number}"
        if number % 2:
            record = p.run(["echo", word])
            print(json.dumps([record.id, word, record.status.value, record.output.text]))
        else:
            with p.start(["sh", "-c", "echo $0; exec sleep 4000", word]) as execution:
                record = execution.stop(grace=5)
            print(json.dumps([record.id, word, record.status.value, None]))
print("null")
"""


def told_by(running: Script) -> list[Any]:
    told: list[Any] = []
    while (line := json.loads(running.line())) is not None:
        told.append(line)
    return told


def assert_true_of(record: Record, word: str) -> None:
    assert record.argv is not None
    assert record.argv[-1] == word
    assert record.tree is not None
    assert record.tree.proved
    if record.argv[0] == "echo":
        assert (record.status, record.exit_code, record.output.text) == (Status.EXITED, 0, f"{word}\n")
    else:
        assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.STOP)
        assert record.output.text in {"", f"{word}\n"}  # it may have been stopped before it said its word; never another's


def show_that_none_is_lost_or_mixed(script: Callable[..., Script], home: str, count: int) -> None:
    both = [script(STARTS_AND_STOPS, who, str(count)) for who in ("one", "two")]
    for running in both:
        assert running.line() == "ready"
    for running in both:
        assert running.process.stdin is not None
        running.process.stdin.write("\n")
        running.process.stdin.flush()
    words = {name: word for running in both for name, word, *_ in told_by(running)}
    assert len(words) == 2 * count
    with proctor.open_sync(home=home) as host:
        assert host.unfinished() == []
        assert host.runtime.index.notices == ()
        records = host.runtime.index.recent(3 * count)
        assert {record.id for record in records} == set(words)
        for record in records:
            assert_true_of(host.runtime.view(record), words[record.id])


@pytest.mark.requirement("I2-two-processes", "O-CO-04")
def test_two_processes_with_forty_executions_each_lose_none_and_mix_none(script: Callable[..., Script], home: str) -> None:
    show_that_none_is_lost_or_mixed(script, home, 40)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-two-processes", "O-CO-04")
def test_two_processes_with_five_hundred_executions_each_lose_none_and_mix_none(script: Callable[..., Script], home: str) -> None:
    show_that_none_is_lost_or_mixed(script, home, 500)
