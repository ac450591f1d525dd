"""The journal on a disk that does not take it: lines wait, in order, and what is stored ends with a whole line."""

from __future__ import annotations

import os
import resource
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from proctor.execution import EndedBy, Forced, RootEnded, StopAsked
from proctor.keeper import read_journal_at
from proctor.keeper.sealing import JournalWriter
from proctor.testing import apart

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = (
    StopAsked(at=NOW, ended_by=EndedBy.STOP, by="person", reason="x" * 100),
    Forced(at=NOW),
    RootEnded(at=NOW, exit_code=0, signal=None),
)


def _folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def _limit(size: int) -> None:
    """Let no file of this process grow beyond ``size``: to a writer, that is a disk that is full from there on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.requirement("I2-journal", "I2-disk-full")
@pytest.mark.parametrize("room", [0, 1, 50, 300, 320])
def test_a_full_disk_delays_lines_and_tears_none(room: int, tmp_path: Path) -> None:
    def check() -> None:
        folder = _folder(tmp_path)
        writer = JournalWriter(folder)
        _limit(room)
        stored = 0
        for event in EVENTS:
            writer.add(event)
            stored = len(read_journal_at(folder).events) if writer.flush() else stored
            content = read_journal_at(folder)
            assert not content.damaged
            assert len(content.events) == stored
            assert content.events == EVENTS[:stored]
        assert writer.pending == (stored < len(EVENTS))
        _limit(resource.RLIM_INFINITY)
        assert writer.flush()
        assert read_journal_at(folder).events == EVENTS

    apart(check)


@pytest.mark.requirement("I2-disk-full")
def test_room_is_asked_for_before_a_line_waits(tmp_path: Path) -> None:
    def check() -> None:
        folder = _folder(tmp_path)
        asked: list[int] = []

        def make_room(size: int) -> None:
            asked.append(size)
            _limit(resource.RLIM_INFINITY)

        writer = JournalWriter(folder, make_room=make_room)
        _limit(10)
        writer.add(EVENTS[0])
        assert writer.flush()
        assert len(asked) == 1
        assert asked[0] > 4096
        assert read_journal_at(folder).events == EVENTS[:1]

    apart(check)


@pytest.mark.requirement("I2-journal")
def test_another_writer_goes_on_behind_the_good_beginning(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    first = JournalWriter(folder)
    first.add(EVENTS[0])
    assert first.flush()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b"0123abcd {torn")
    content = read_journal_at(folder)
    assert content.damaged
    second = JournalWriter(folder)
    second.resume(content)
    second.add(EVENTS[1])
    assert second.flush()
    content = read_journal_at(folder)
    assert (content.events, content.damaged) == (EVENTS[:2], False)
    first.close()
    second.close()
    os.close(folder)


@pytest.mark.requirement("I2-journal")
def test_a_journal_is_never_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "elsewhere")
    folder = _folder(tmp_path)
    writer = JournalWriter(folder)
    writer.add(EVENTS[0])
    assert not writer.flush()
    assert (tmp_path / "elsewhere").read_bytes() == b""
    os.close(folder)
