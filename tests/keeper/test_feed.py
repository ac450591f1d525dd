"""Standard input: held up to its bound, refused beyond it, ended on request, and never a reason for the keeper to wait."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from proctor import ErrorCode, ExecutionError, Status
from proctor.keeper.feed import HELD_LIMIT_BYTES, Feed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from proctor import SyncProctor

PIPE_BYTES = 65_536


@pytest.fixture
def pipe() -> Iterator[tuple[int, Feed]]:
    reading, writing = os.pipe()
    feed = Feed(writing)
    yield reading, feed
    feed.close()
    try:
        os.close(reading)
    except OSError:
        return  # the test closed it


@pytest.mark.requirement("I2-stdin")
def test_one_mebibyte_waits_beyond_the_pipe_and_more_is_refused(pipe: tuple[int, Feed]) -> None:
    _, feed = pipe
    data = b"x" * 60_000  # no divisor of the bound
    taken = 0
    while (now := feed.accept(data, eof=False)) == len(data):
        taken += now
    assert HELD_LIMIT_BYTES < taken + now <= PIPE_BYTES + HELD_LIMIT_BYTES  # a pipe holds whole pages, of which each write begins a new one
    with pytest.raises(ExecutionError) as raised:
        feed.accept(b"x", eof=False)
    assert raised.value.code is ErrorCode.STDIN_FULL
    assert feed.accept(b"", eof=False) == 0


@pytest.mark.requirement("I2-stdin")
def test_what_waits_arrives_in_order_and_then_the_end(pipe: tuple[int, Feed]) -> None:
    reading, feed = pipe
    sent = os.urandom(300_000)
    assert feed.accept(sent, eof=True) == len(sent)
    got = b""
    while piece := os.read(reading, 65_536):
        got += piece
        feed.push()
    assert got == sent
    assert feed.closed
    with pytest.raises(ExecutionError) as raised:
        feed.accept(b"x", eof=False)
    assert raised.value.code is ErrorCode.STDIN_CLOSED


@pytest.mark.requirement("I2-stdin")
def test_an_end_is_not_made_when_not_everything_was_taken(pipe: tuple[int, Feed]) -> None:
    _, feed = pipe
    data = b"x" * (PIPE_BYTES + HELD_LIMIT_BYTES + 1)
    assert feed.accept(data[: 1 << 20], eof=False) == 1 << 20
    feed.push()
    assert feed.accept(data, eof=True) < len(data)
    assert not feed.closed
    with pytest.raises(ExecutionError) as raised:
        feed.accept(b"y", eof=True)
    assert raised.value.code is ErrorCode.STDIN_FULL


@pytest.mark.requirement("I2-stdin")
def test_bytes_for_a_command_that_closed_its_end_are_not_said_to_be_taken(pipe: tuple[int, Feed]) -> None:
    reading, feed = pipe
    os.close(reading)
    with pytest.raises(ExecutionError) as raised:
        feed.accept(b"x", eof=False)
    assert raised.value.code is ErrorCode.STDIN_CLOSED


@pytest.mark.requirement("I2-stdin", "I2-sync-library")
def test_a_command_reads_what_was_written_and_its_end(host: SyncProctor) -> None:
    with host.start(["cat"], stdin="pipe") as execution:
        assert execution.write(b"one\n") == 4
        assert execution.write(b"two\n", eof=True) == 4
        record = execution.wait(timeout=10)
    assert (record.output.stdout, record.exit_code) == ("one\ntwo\n", 0)


@pytest.mark.requirement("I2-stdin")
def test_a_slow_reader_gets_everything_while_others_are_served(host: SyncProctor, work: Path) -> None:
    os.mkfifo(work / "go")
    sent = os.urandom(3_000_000)
    with host.start("cat go >/dev/null; exec wc -c", stdin="pipe") as execution:
        taken, full, codes = 0, 0, set[ErrorCode]()
        while taken < len(sent):
            try:
                taken += execution.write(sent[taken : taken + 200_000], eof=taken + 200_000 >= len(sent))
            except ExecutionError as error:
                codes.add(error.code)
                assert host.show(execution.id).status is Status.RUNNING  # the keeper answers although the command does not read
                if not full:
                    (work / "go").write_text("")
                full += 1
        record = execution.wait(timeout=10)
    assert codes == {ErrorCode.STDIN_FULL}
    assert record.output.stdout == f"{len(sent)}\n"


@pytest.mark.requirement("I2-stdin")
def test_a_write_that_fills_the_bound_exactly_tells_how_much_was_taken(host: SyncProctor) -> None:
    with host.start(["sleep", "60"], stdin="pipe") as execution:
        assert execution.write(b"x" * (2 << 20)) == HELD_LIMIT_BYTES + PIPE_BYTES
        with pytest.raises(ExecutionError) as raised:
            execution.write(b"x")
        assert raised.value.code is ErrorCode.STDIN_FULL
        execution.stop()


@pytest.mark.requirement("I2-stdin")
def test_a_reader_that_catches_up_between_two_writes_does_not_upset_the_keeper(host: SyncProctor, work: Path) -> None:
    """The end of the input is made at the moment when nobody watches the pipe any more; a new connection then takes its number."""
    os.mkfifo(work / "go")
    with host.start("cat go >/dev/null; wc -c; sleep 5", stdin="pipe") as execution:
        assert execution.write(b"x" * 500_000) == 500_000
        (work / "go").write_text("")
        assert execution.write(b"y", eof=True) == 1
        for _ in range(5):
            assert host.show(execution.id).status is Status.RUNNING
        while not execution.read_since(0).data:
            assert host.show(execution.id).status is Status.RUNNING
        assert execution.read_since(0).data == b"500001\n"
        assert execution.stop().status is Status.CANCELLED


@pytest.mark.requirement("I2-stdin")
def test_input_for_a_command_that_has_none_of_ours_or_has_ended_is_refused(host: SyncProctor) -> None:
    with host.start(["sleep", "5"]) as execution:
        with pytest.raises(ExecutionError) as raised:
            execution.write(b"x")
        assert raised.value.code is ErrorCode.STDIN_CLOSED
        execution.stop()
    with host.start(["true"], stdin="pipe") as execution:
        execution.wait()
        with pytest.raises(ExecutionError) as raised:
            execution.write(b"x")
        assert raised.value.code is ErrorCode.NOT_RUNNING


@pytest.mark.requirement("I2-stdin")
def test_bytes_and_descriptors_serve_as_input(host: SyncProctor, work: Path) -> None:
    assert host.run(["cat"], stdin=b"given").output.stdout == "given"
    assert host.run(["wc", "-c"], stdin=b"x" * 5_000_000).output.stdout == "5000000\n"
    (work / "file").write_text("from a file")
    with (work / "file").open() as file:
        assert host.run(["cat"], stdin=file.fileno()).output.stdout == "from a file"
    assert host.run(["cat"]).output.stdout == ""
