from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaks import descriptors

from proctor.output import Spool, SpoolReader, spool

from .keeping import SMALL_SEGMENT, CountedCalls, Kept, Killed, check_reading

if TYPE_CHECKING:
    from collections.abc import Callable

writes = st.lists(st.tuples(st.sampled_from((1, 2)), st.binary(min_size=1, max_size=150)), max_size=40)


def test_a_head_and_the_last_bytes_are_kept_and_the_middle_goes(keep: Callable[..., Kept]) -> None:
    kept = keep(head=100, tail=640, split=False)
    for number in range(500):
        kept.write(1, b"line %04d\n" % number)
    ranges = kept.reader.kept()
    assert (ranges[0].start, ranges[0].end) == (0, 100)
    assert ranges[1].end == 5000
    assert 640 <= ranges[1].end - ranges[1].start <= 640 + SMALL_SEGMENT
    counts = kept.spool.counts()
    assert counts.bytes == 5000
    assert counts.kept_bytes == sum(part.end - part.start for part in ranges)
    assert counts.kept_bytes + counts.dropped_bytes == 5000
    assert counts.incomplete is None


def test_nothing_written_leaves_an_empty_output_after_close(keep: Callable[..., Kept]) -> None:
    kept = keep()
    assert list(kept.folder.iterdir()) == []
    kept.spool.close()
    assert [entry.name for entry in kept.folder.iterdir()] == ["output"]
    assert kept.reader.total_bytes() == 0


def test_files_are_for_the_owner_alone(keep: Callable[..., Kept]) -> None:
    kept = keep()
    for _ in range(30):
        kept.write(1, b"x" * 20)
        kept.write(2, b"y" * 20)
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in kept.folder.iterdir()} == {0o600}


def test_a_file_that_is_already_there_is_never_written_to(keep: Callable[..., Kept]) -> None:
    kept = keep()
    target = kept.folder.parent / "target"
    target.write_bytes(b"precious")
    (kept.folder / "output").symlink_to(target)
    kept.write(1, b"hello")
    kept.spool.close()
    assert target.read_bytes() == b"precious"
    assert kept.spool.counts().incomplete == "permission"


def test_late_bytes_are_counted_and_kept(keep: Callable[..., Kept]) -> None:
    kept = keep()
    kept.write(1, b"early")
    kept.spool.mark_late()
    kept.write(1, b"late")
    assert kept.spool.counts().late_bytes == 4
    assert kept.reader.read_since(0, limit=100).data == b"earlylate"


@pytest.mark.parametrize("head", [0, 1, 30])
@pytest.mark.parametrize("tail", [0, 1, 640])
def test_streams_that_alternate_with_every_byte_stay_within_the_cap(keep: Callable[..., Kept], head: int, tail: int) -> None:
    kept = keep(head=head, tail=tail)
    for number in range(3000):
        kept.write(1 + number % 2, b"%d" % (number % 10))
    assert kept.disk_bytes() <= head + tail + 2 * SMALL_SEGMENT
    check_reading(kept, 3000)


@settings(max_examples=60, deadline=None)
@given(writes=writes, head=st.integers(0, 300), tail=st.integers(0, 900), split=st.booleans())
def test_whatever_is_written_is_read_back_exactly_at_every_moment(
    writes: list[tuple[int, bytes]], head: int, tail: int, *, split: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        descriptor = os.open(name, os.O_RDONLY)
        kept = Kept(Path(name), Spool(descriptor, head_bytes=head, tail_bytes=tail, split=split, clock=lambda: 0.0), descriptor)
        kept.write(1, b"!")
        for place, (stream, data) in enumerate(writes):
            kept.write(stream if split else 1, data)
            if place % 7 == 0:
                check_reading(kept, len(kept.content))
            assert kept.disk_bytes() <= head + tail + 2 * SMALL_SEGMENT
        kept.spool.close()
        check_reading(kept, len(kept.content))
        counts = kept.spool.counts()
        assert (counts.bytes, counts.incomplete) == (len(kept.content), None)
        assert counts.kept_bytes == sum(part.end - part.start for part in kept.reader.kept())
        if not split and len(kept.content) > head:
            assert kept.reader.kept()[-1].start <= max(head, len(kept.content) - tail)
        os.close(descriptor)


@settings(max_examples=80, deadline=None)
@given(writes=writes.filter(bool), head=st.integers(0, 300), tail=st.integers(0, 400), calls=st.integers(0, 150))
def test_a_writer_killed_at_any_system_call_leaves_exact_totals_and_offsets(
    writes: list[tuple[int, bytes]], head: int, tail: int, calls: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        others = descriptors()
        descriptor = os.open(name, os.O_RDONLY)
        patch.setattr(spool, "os", CountedCalls(calls))
        kept = Kept(Path(name), Spool(descriptor, head_bytes=head, tail_bytes=tail, split=True, clock=lambda: 0.0), descriptor)
        before = 0
        try:
            for stream, data in writes:
                before = len(kept.content)
                kept.write(stream, data)
            before = len(kept.content)
        except Killed:
            pass
        patch.undo()
        for number in descriptors().keys() - others.keys():
            os.close(number)
        total = SpoolReader(name, live=True).total_bytes()
        assert before <= total <= len(kept.content)
        if list(kept.folder.iterdir()):
            check_reading(kept, total)


def test_make_room_frees_at_least_what_was_asked_and_keeps_every_offset(keep: Callable[..., Kept]) -> None:
    kept = keep(head=20_000, tail=6_400)
    for number in range(4000):
        kept.write(1 + number % 2, b"line %05d\n" % number)
    for wanted in (100, 5_000, 9_000):
        before = kept.disk_bytes()
        assert kept.spool.make_room(wanted) >= wanted
        assert kept.disk_bytes() <= before - wanted + 100
        check_reading(kept, len(kept.content))
    kept.write(1, b"and on")
    kept.spool.close()
    check_reading(kept, len(kept.content))
    counts = kept.spool.counts()
    assert counts.kept_bytes == sum(part.end - part.start for part in kept.reader.kept())
    assert counts.bytes == len(kept.content)


@pytest.mark.parametrize("closed", [False, True])
def test_make_room_in_a_short_output_leaves_its_total_on_disk(keep: Callable[..., Kept], *, closed: bool) -> None:
    kept = keep(head=20_000)
    kept.write(1, b"x" * 10_000)
    if closed:
        kept.spool.close()
    assert kept.spool.make_room(3_000) >= 3_000
    assert kept.reader.total_bytes() == 10_000
    assert kept.reader.kept()[0].end == 4096
    assert kept.spool.counts().dropped_bytes == 10_000 - 4096


def test_sync_and_close_may_be_called_at_any_time_and_twice(keep: Callable[..., Kept]) -> None:
    kept = keep()
    kept.spool.sync()
    kept.write(2, b"x" * 1000)
    kept.spool.sync()
    kept.spool.close()
    kept.spool.close()
    kept.spool.sync()
    check_reading(kept, 1000)
