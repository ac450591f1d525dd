from __future__ import annotations

import re
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from proctor.output import search

if TYPE_CHECKING:
    from collections.abc import Callable

    from .keeping import Kept


def test_matches_are_found_by_line_with_their_absolute_offsets(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1 << 20)
    kept.write(1, b"first\nsecond error\nthird\nlast error")
    found = search(kept.reader, "err.r")
    assert [(match.offset, match.line_offset, match.line) for match in found] == [(13, 6, b"second error"), (30, 25, b"last error")]


def test_a_search_in_one_stream_joins_its_lines_and_keeps_offsets_of_the_whole(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1 << 20)
    for stream, data in ((1, b"out "), (2, b"bro"), (1, b"out\n"), (2, b"ken\n")):
        kept.write(stream, data)
    (match,) = search(kept.reader, re.compile(b"broken"), stream=2)
    assert (match.line, match.offset) == (b"broken", 4)
    (tail,) = search(kept.reader, re.compile(b"ken"), stream=2)
    assert kept.content[tail.offset : tail.offset + 3] == b"ken"
    assert search(kept.reader, "broken", stream=1) == []


def test_context_and_limit_are_those_of_grep(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1 << 20)
    kept.write(1, b"".join(b"%d\n" % number for number in range(10)))
    (match,) = search(kept.reader, "[57]", limit=1, context=2)
    assert (match.before, match.line, match.after) == ((b"3", b"4"), b"5", (b"6", b"7"))
    assert [match.line for match in search(kept.reader, ".", limit=3)] == [b"0", b"1", b"2"]
    assert search(kept.reader, ".", limit=0, context=2) == []
    (last,) = search(kept.reader, "9", context=3)
    assert last.after == ()


def test_a_line_is_not_made_of_the_two_sides_of_a_gap(keep: Callable[..., Kept]) -> None:
    kept = keep(head=64, tail=128, split=False)
    kept.write(1, b"a" * 1000)
    assert [match.line_offset for match in search(kept.reader, "aa")] == [0, kept.reader.kept()[1].start]


@pytest.mark.requirement("O-OE-04")
@pytest.mark.parametrize("place", [0, 65_530, 65_536, 65_540, 100_000, 131_070, 199_994])
def test_a_match_anywhere_in_a_very_long_line_is_found_once(keep: Callable[..., Kept], place: int) -> None:
    kept = keep(head=8 << 20)
    kept.write(1, b"k" * place + b"needle" + b"k" * (199_994 - place) + b"\nz\n")
    found = search(kept.reader, "needle")
    assert [match.offset for match in found] == [place]
    assert len(found[0].line) <= 2048
    assert b"needle" in found[0].line
    assert [match.line for match in search(kept.reader, "^z$")] == [b"z"]


@pytest.mark.requirement("O-OE-03")
def test_memory_does_not_grow_with_the_line(keep: Callable[..., Kept]) -> None:
    kept = keep(head=64 << 20, split=False)
    for _ in range(16):
        kept.spool.write(1, b"x" * (1 << 20))
    tracemalloc.start()
    assert search(kept.reader, "y") == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
