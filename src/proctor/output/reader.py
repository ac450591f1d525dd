"""Reading kept output by absolute offset, from any process, while the writer writes; nothing is consumed and nothing is locked.

A reader lists the segments, opens the one it needs, and trusts only what it then sees: a segment that went in between is a gap, and a gap
is reported only after a second listing has shown it too, since a listing taken while files are made may miss one. Offsets never change
meaning; below what is kept the answer is the first kept offset and the exact number of bytes in between.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING

from ..data import Data
from ..errors import ErrorCode, OutputError
from .segments import BINARY, DIRECTORY, NO_FOLLOW, SECOND, StreamIndex, index_name, start_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

__all__ = ["Chunk", "Piece", "Range", "SpoolReader"]

Piece = tuple[int, bytes]  # absolute offset, bytes that stand there side by side

BLOCK_BYTES = 1 << 16
LISTINGS = 16  # of one call: more means that the whole tail rotates faster than it can be listed


class Range(Data, kw_only=False):
    """The bytes from ``start`` up to, not including, ``end``."""

    start: int
    end: int


class Chunk(Data, kw_only=False):
    """What one read found: ``data`` begins at ``offset``, ``gap_bytes`` before it are not kept, reading goes on at ``next_offset``.

    With a stream chosen, ``data`` is that stream's part of the bytes from ``offset`` to ``next_offset``.
    """

    offset: int
    data: bytes
    next_offset: int
    gap_bytes: int = 0


class _Segment:
    """One open segment file: its size is that of the moment of opening."""

    __slots__ = ("_folder", "_index", "_name", "descriptor", "end", "size", "start")

    def __init__(self, folder: _Folder, start: int, name: str) -> None:
        self._folder = folder
        self._name = name
        self._index: StreamIndex | None = None
        self.descriptor = folder.open(name)
        self.start = start
        self.size = os.fstat(self.descriptor).st_size
        self.end = start + self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def bytes_at(self, offset: int, amount: int) -> bytes:
        os.lseek(self.descriptor, offset - self.start, os.SEEK_SET)
        return os.read(self.descriptor, min(amount, self.end - offset))

    def index(self) -> StreamIndex:
        """Return the index; raises ``FileNotFoundError`` when the segment was removed meanwhile.

        The writer writes an entry before the data and removes the index after the data, so: size first, then the index, then the link.
        """
        if self._index is None:
            self._index = StreamIndex(self._index_content())
        return self._index

    def _index_content(self) -> bytes:
        try:
            descriptor = self._folder.open(index_name(self._name))
        except FileNotFoundError:
            if not os.fstat(self.descriptor).st_nlink:
                raise
            return b""
        try:
            return os.read(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)


class _Folder:
    """A run folder, by descriptor or by path."""

    __slots__ = ("_place",)

    def __init__(self, place: int | str) -> None:
        self._place = place

    def open(self, name: str) -> int:
        if isinstance(self._place, int):
            return os.open(name, os.O_RDONLY | NO_FOLLOW | BINARY, dir_fd=self._place)
        return os.open(os.path.join(self._place, name), os.O_RDONLY | NO_FOLLOW | BINARY)

    def segments(self) -> list[tuple[int, str]]:
        """Return (start, name) of every segment, in order; an empty one comes before the one that took its place."""
        starts = ((start_of(name), name) for name in self._names())
        return sorted((start, name) for start, name in starts if start is not None)

    def _names(self) -> list[str]:
        if not isinstance(self._place, int):
            return os.listdir(self._place)
        # listdir moves the position of the open directory, which copies of the descriptor share: two readers would hide files from each
        # other. A descriptor of its own has a position of its own.
        descriptor = os.open(".", os.O_RDONLY | DIRECTORY, dir_fd=self._place)
        try:
            if not os.fstat(descriptor).st_nlink:  # a removed folder can still be opened, and is empty
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)


class SpoolReader:
    """Reads a run folder's output; ``folder`` is a path or a descriptor that stays the caller's.

    Raises ``OutputError``: ``output_missing`` when there is none (with ``live`` a folder without ``output`` is output that has not begun),
    ``output_unreadable`` when it may not be read.
    """

    __slots__ = ("_folder", "_live", "_shown")

    def __init__(self, folder: int | str | os.PathLike[str], *, live: bool = False) -> None:
        place = folder if isinstance(folder, int) else os.fspath(folder)
        self._shown = "the run folder" if isinstance(place, int) else place
        self._folder = _Folder(place)
        self._live = live

    def total_bytes(self) -> int:
        """Return how much was written, kept or not, up to this moment."""
        start, end = 0, 0
        for _ in range(LISTINGS):
            segments = self._list()
            if not segments:
                return end
            start, name = segments[-1]
            with suppress(FileNotFoundError), self._open(start, name) as segment:
                return segment.end
            end = start
        return end

    def stream_bytes(self, stream: int) -> int:
        """Return how much stream 1 or 2 wrote, kept or not; with merged streams all of it is stream 1."""
        total = second = 0
        for _ in range(LISTINGS):
            with suppress(FileNotFoundError):
                total, second = self._stream_totals()
                break
        return second if stream == SECOND else total - second

    def kept(self) -> tuple[Range, ...]:
        """Return what can be read now, in order, adjoining parts as one."""
        ranges: list[Range] = []
        for start, name in self._list():
            with suppress(FileNotFoundError), self._open(start, name) as segment:
                if ranges and ranges[-1].end == start:
                    ranges[-1] = Range(ranges[-1].start, segment.end)
                elif segment.size:
                    ranges.append(Range(start, segment.end))
        return tuple(ranges)

    def read_since(self, offset: int, *, limit: int, stream: int | None = None) -> Chunk:
        """Return up to ``limit`` bytes from ``offset`` on, of both streams or of one.

        An offset below 0 is 0; one at or behind the end gives no data and itself as ``next_offset``. ``next_offset == offset`` without data
        means the end for now. Data never reaches over a gap: the next call reports it.
        """
        return _Reading(self, max(0, offset), limit, stream).run()

    def pieces(self, offset: int = 0, *, stream: int | None = None) -> Iterator[Piece]:
        """Yield (offset, bytes) from ``offset`` to the present end; where other bytes lie between, a new piece begins."""
        end = self.total_bytes()
        while offset < end:
            pieces, following = _Reading(self, max(0, offset), 1 << 20, stream).pieces()
            if following <= offset:
                return
            yield from pieces
            offset = following

    def tail(self, amount: int, *, stream: int | None = None) -> Chunk:
        """Return the last ``amount`` bytes, or as many as are kept in one piece before the end."""
        end = self.total_bytes()
        chunk = self.read_since(self._tail_start(amount, end, stream), limit=amount, stream=stream)
        while chunk.next_offset < end:
            following = self.read_since(chunk.next_offset, limit=amount - len(chunk.data), stream=stream)
            if following.next_offset <= chunk.next_offset:
                break
            joined = Chunk(chunk.offset, chunk.data + following.data, following.next_offset, chunk.gap_bytes)
            chunk = following if following.gap_bytes else joined
        return chunk

    def iterate(self, offset: int = 0, *, block_bytes: int = 1 << 20, stream: int | None = None) -> Iterator[Chunk]:
        """Yield what is kept from ``offset`` to the present end, block by block, gaps reported in the block behind them."""
        end = self.total_bytes()
        while offset < end:
            chunk = self.read_since(offset, limit=block_bytes, stream=stream)
            if chunk.next_offset <= offset:
                return
            yield chunk
            offset = chunk.next_offset

    def _list(self) -> list[tuple[int, str]]:
        try:
            segments = self._folder.segments()
        except FileNotFoundError as error:
            raise self._missing() from error
        except OSError as error:
            raise self._unreadable(error) from error
        if not segments and not self._live:
            raise self._missing()
        return segments

    def _open(self, start: int, name: str) -> _Segment:
        try:
            return _Segment(self._folder, start, name)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._unreadable(error) from error

    def _stream_totals(self) -> tuple[int, int]:
        """Return (total, second stream's) from the newest segment that says: its header counts what came before it."""
        total = -1
        for start, name in reversed(self._list()):
            with self._open(start, name) as segment:
                total = max(total, segment.end)
                index = segment.index()
                if segment.size or index.second_before is not None or start == 0:
                    return total, (index.second_before or 0) + index.count(SECOND, segment.size)
        return max(total, 0), 0

    def _tail_start(self, amount: int, end: int, stream: int | None) -> int:
        if stream is None:
            return end - amount
        left = amount
        begin = 0
        for start, name in reversed(self._list()):
            with suppress(FileNotFoundError), self._open(start, name) as segment:
                index = segment.index()
                found = index.count(stream, segment.size)
                if found >= left:
                    return start + index.last(stream, left, segment.size)
                left -= found
                begin = start
        return begin

    def _missing(self) -> OutputError:
        return OutputError(
            ErrorCode.OUTPUT_MISSING,
            f"The output of this execution is not in {self._shown}.",
            "It was removed, by a clean-up or by hand; the record still tells how the command ended.",
        )

    def _unreadable(self, error: OSError) -> OutputError:
        return OutputError(
            ErrorCode.OUTPUT_UNREADABLE,
            f"The output in {self._shown} cannot be read: {error.strerror}.",
            "Check that the folder and its files belong to you.",
        )


class _Reading:
    """One ``read_since``: walks segments from ``position``, collecting data up to the limit, the first gap behind data, or the end."""

    __slots__ = ("_doubted", "_gap", "_left", "_listings", "_offset", "_pieces", "_position", "_reader", "_segments", "_stream")

    def __init__(self, reader: SpoolReader, offset: int, limit: int, stream: int | None) -> None:
        self._reader = reader
        self._stream = stream
        self._left = limit
        self._offset = self._position = offset
        self._gap = 0
        self._pieces: list[Piece] = []
        self._listings = 0
        self._doubted = -1
        self._segments: list[tuple[int, str]] = []

    def run(self) -> Chunk:
        pieces, following = self.pieces()
        return Chunk(self._offset, b"".join([data for _, data in pieces]), following, self._gap)

    def pieces(self) -> tuple[list[Piece], int]:
        self._relist()
        while self._left > 0 and self._step():
            pass
        return self._pieces, self._position

    def _relist(self) -> bool:
        self._listings += 1
        self._segments = self._reader._list()
        return self._listings < LISTINGS

    def _step(self) -> bool:
        """Take one step; False when this read is over."""
        place = bisect_right(self._segments, self._position, key=_start)
        following = self._segments[place][0] if place < len(self._segments) else None
        if place:
            try:
                with self._reader._open(*self._segments[place - 1]) as segment:
                    self._take(segment)
            except FileNotFoundError:
                if following is None:  # the newest one we knew of is gone already: there are newer ones
                    return self._relist()
        if self._left <= 0 or following is None or following == self._position:
            return self._left > 0 and following is not None
        return self._cross(following)

    def _take(self, segment: _Segment) -> None:
        while self._left > 0 and self._position < segment.end:
            position = self._position
            if self._stream is not None:
                relative = segment.index().seek(self._stream, position - segment.start, segment.size)
                position = segment.start + relative
            data = segment.bytes_at(position, min(self._left, BLOCK_BYTES) if self._stream else self._left)
            self._position = position + len(data)
            if not data:  # cut short by the writer, who makes room
                return
            if self._stream is None:
                self._add(position, data)
                continue
            for offset, part in segment.index().choose(self._stream, position - segment.start, data):
                self._add(segment.start + offset, part)

    def _add(self, offset: int, data: bytes) -> None:
        self._pieces.append((offset, data))
        self._left -= len(data)

    def _cross(self, following: int) -> bool:
        """Step over the hole before ``following``, once a second listing has shown that it is one."""
        if self._doubted != self._position:
            self._doubted = self._position
            return self._relist()
        if self._pieces or (self._stream is not None and self._position > self._offset):
            return False
        self._gap += following - self._position
        self._offset = self._position = following
        return True


def _start(segment: tuple[int, str]) -> int:
    return segment[0]
