"""Searching kept output line by line without loading it: memory stays bounded whatever the output looks like.

A line longer than 64 KiB is searched in pieces that overlap by 4 KiB, so a match up to that length is not missed. The pattern is the
caller's: a catastrophic one costs its time on at most one such piece after the other, so patterns from models belong in a process that
can be stopped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ..data import Data, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .reader import SpoolReader

__all__ = ["Match", "search"]

LINE_BYTES = 64 << 10
OVERLAP_BYTES = 4 << 10
SHOWN_BYTES = 2 << 10  # of a line that is reported


class Match(Data, kw_only=False):
    """One line that matches: ``offset`` is the absolute offset of the match, ``line_offset`` that of the line (or piece of it)."""

    offset: int
    line_offset: int
    line: bytes
    before: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()


class _Line(NamedTuple):
    content: bytearray
    places: list[tuple[int, int]]  # (position in the content, absolute offset), one per piece
    continues: bool = False

    def offset_of(self, position: int) -> int:
        begin, offset = self.places[bisect_right(self.places, position, key=_position) - 1]
        return offset + position - begin


def search(
    reader: SpoolReader, pattern: re.Pattern[bytes] | str, *, stream: int | None = None, limit: int = 100, context: int = 0
) -> list[Match]:
    """Return the first ``limit`` matching lines, each with ``context`` lines around it; a text pattern is taken as UTF-8.

    Lines are reported without their newline, cut to 2 KiB around the match.
    """
    compiled = re.compile(pattern.encode()) if isinstance(pattern, str) else pattern
    found: list[Match] = []
    before: deque[bytes] = deque(maxlen=context)
    matched = False
    for line in _lines(reader, stream):
        shown = bytes(line.content[:SHOWN_BYTES])
        _follow(found, shown, context)
        if len(found) >= limit and (not found or len(found[-1].after) >= context):
            break
        # What overlaps with a piece that matched was reported with it.
        begin = OVERLAP_BYTES if matched and line.continues else 0
        hit = compiled.search(line.content, begin) if len(found) < limit else None
        matched = hit is not None
        if hit is not None:
            begin = max(0, min(hit.start() - SHOWN_BYTES // 2, len(line.content) - SHOWN_BYTES))
            around = bytes(line.content[begin : begin + SHOWN_BYTES])
            found.append(Match(line.offset_of(hit.start()), line.places[0][1], around, tuple(before)))
        before.append(shown)
    return found


def _follow(found: list[Match], shown: bytes, context: int) -> None:
    for place in range(len(found) - 1, -1, -1):
        if len(found[place].after) >= context:
            return
        found[place] = changed(found[place], after=(*found[place].after, shown))


def _lines(reader: SpoolReader, stream: int | None) -> Iterator[_Line]:
    """Yield lines, and a long one in overlapping pieces; bytes before and after a gap are never one line."""
    line = _Line(bytearray(), [])
    expected = 0
    for offset, data in reader.pieces(stream=stream):
        if stream is None and offset != expected and line.content:
            yield line
            line = _Line(bytearray(), [])
        expected = offset + len(data)
        position = 0
        while position < len(data):
            newline = data.find(b"\n", position, position + LINE_BYTES)
            end = newline if newline >= 0 else min(len(data), position + LINE_BYTES)
            line.places.append((len(line.content), offset + position))
            line.content.extend(data[position:end])
            position = end + (newline >= 0)
            if newline >= 0:
                yield line
                line = _Line(bytearray(), [])
            elif len(line.content) >= LINE_BYTES:
                yield line
                line = _overlapping(line)
    if line.content:
        yield line


def _overlapping(line: _Line) -> _Line:
    begin = len(line.content) - OVERLAP_BYTES
    places = [(0, line.offset_of(begin))] + [(at - begin, offset) for at, offset in line.places if at > begin]
    return _Line(line.content[begin:], places, continues=True)


def _position(place: tuple[int, int]) -> int:
    return place[0]
