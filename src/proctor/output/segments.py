"""The on-disk format of kept output: names of segment files, and the index that says which bytes came from which stream.

``output`` begins at offset 0; ``output.<start>`` begins at that absolute offset. From the first byte of the second stream on, beside each
stands ``streams.idx`` or ``streams.idx.<start>``: a header (magic, bytes of the second stream before this segment) and one 32-bit
little-endian entry per switch of stream, ``offset in the segment << 1 | stream - 1``. Before the first entry the stream is 1, so entries
alternate and are sorted. An entry is written before the first byte it speaks of: an index can run ahead of its data, never behind it.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from ..execution import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BINARY",
    "DIRECTORY",
    "ENTRY_BYTES",
    "FIRST",
    "HEADER_BYTES",
    "MAXIMUM_SEGMENT_BYTES",
    "NO_FOLLOW",
    "SECOND",
    "StreamIndex",
    "data_name",
    "entry",
    "header",
    "index_name",
    "start_of",
]

FIRST = 1
SECOND = 2
MAGIC = b"proctor1"
HEADER = struct.Struct("<8sQ")
HEADER_BYTES = HEADER.size
ENTRY_BYTES = 4
MAXIMUM_SEGMENT_BYTES = 1 << 30  # an entry has 31 bits for the offset

# Windows has neither of the first two and needs the third; a flag that a system lacks is no flag.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
BINARY: int = getattr(os, "O_BINARY", 0)


def data_name(start: int) -> str:
    """Return the name of the tail segment that begins at an absolute offset."""
    return f"{layout.OUTPUT}.{start}"


def index_name(name: str) -> str:
    """Return the name of the index that stands beside a segment."""
    return layout.STREAMS + name[len(layout.OUTPUT) :]


def start_of(name: str) -> int | None:
    """Return the absolute offset at which a file of this name begins, or ``None`` when it is no segment."""
    if name == layout.OUTPUT:
        return 0
    stem, _, digits = name.partition(".")
    return int(digits) if stem == layout.OUTPUT and digits.isascii() and digits.isdigit() else None


def header(second_bytes: int) -> bytes:
    """Return the beginning of an index: how many bytes of the second stream came before its segment, kept or not."""
    return HEADER.pack(MAGIC, second_bytes)


def entry(offset: int, stream: int) -> bytes:
    """Return the entry that says: from ``offset`` in the segment on, bytes belong to ``stream``."""
    return (offset << 1 | (stream - 1)).to_bytes(ENTRY_BYTES, "little")


class StreamIndex:
    """One segment's index; offsets are those in the segment, ``size`` is how many data bytes the segment holds."""

    __slots__ = ("_entries", "second_before")

    def __init__(self, content: bytes = b"") -> None:
        body = content[HEADER_BYTES:]
        self._entries = array("I", body[: len(body) // ENTRY_BYTES * ENTRY_BYTES])
        if sys.byteorder == "big":
            self._entries.byteswap()
        self.second_before: int | None = None
        if len(content) >= HEADER_BYTES:
            self.second_before = HEADER.unpack_from(content)[1]

    def span(self, offset: int, size: int) -> tuple[int, int]:
        """Return (stream, end) of the run that ``offset`` lies in."""
        place = bisect_right(self._entries, offset << 1 | 1)
        stream = (self._entries[place - 1] & 1) + 1 if place else FIRST
        end = self._entries[place] >> 1 if place < len(self._entries) else size
        return stream, min(end, size)

    def seek(self, stream: int, offset: int, size: int) -> int:
        """Return the first offset at or after ``offset`` whose byte belongs to ``stream``, or ``size``."""
        while offset < size:
            found, end = self.span(offset, size)
            if found == stream:
                return offset
            offset = end
        return size

    def choose(self, stream: int, offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) of the parts of ``data``, which stands at ``offset``, that belong to ``stream``."""
        size = offset + len(data)
        position = offset
        while position < size:
            found, end = self.span(position, size)
            if found == stream:
                yield position, data[position - offset : end - offset]
            position = end

    def count(self, stream: int, size: int) -> int:
        """Return how many of the segment's bytes belong to ``stream``."""
        entries = self._entries[: bisect_left(self._entries, size << 1)]
        begins, ends = entries[::2], entries[1::2]  # of the second stream's runs: entries alternate
        second = (sum(ends) - sum(begins) + len(begins)) // 2
        if len(begins) > len(ends):
            second += size
        return second if stream == SECOND else size - second

    def last(self, stream: int, amount: int, size: int) -> int:
        """Return the offset from which ``amount`` bytes of ``stream`` follow, or 0 when there are not as many."""
        end = size
        while end > 0 and amount > 0:
            place = bisect_left(self._entries, end << 1)
            begin = self._entries[place - 1] >> 1 if place else 0
            found = (self._entries[place - 1] & 1) + 1 if place else FIRST
            if found == stream:
                if end - begin >= amount:
                    return end - amount
                amount -= end - begin
            end = begin
        return end
