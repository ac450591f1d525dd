"""Output of a running command, carried from its run folder to this process's own standard output and error, in the order of its arrival.

Bytes for programs, cleaned text for terminals. Nothing is held but the piece that is being written, whatever the command writes; what was
dropped from the run folder before it could be read here is counted and told, never skipped in silence.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from ..output import LiveCleaner, SpoolReader, TextStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .outlet import Outlet

__all__ = ["STDERR", "STDOUT", "Relay"]

STDOUT, STDERR = 1, 2
_Piece = tuple[int, int, bytes]  # absolute offset, stream, bytes


class Relay:
    """Copies from ``position`` on; ``blocked`` is the descriptor that must take more before anything goes on."""

    def __init__(
        self, reader: SpoolReader, outlets: Mapping[int, Outlet], *, split: bool, encoding: str | None = None, stream: int | None = None
    ) -> None:
        self.position = 0
        self.blocked: int | None = None
        self.gap_bytes = 0
        self.before_write: Callable[[], None] | None = None
        self._reader = reader
        self._outlets = outlets
        self._streams: tuple[int | None, ...] = (stream,) if stream is not None else (STDOUT, STDERR) if split else (None,)
        self._cleaners = {number: _Cleaner(encoding) for number, outlet in outlets.items() if outlet.terminal}
        self._source: Iterator[_Piece] | None = None
        self._source_end = 0
        self._waiting: deque[tuple[Outlet, memoryview]] = deque()
        self._counts_gaps = stream is None  # between the pieces of one stream lie those of the other

    def start_at(self, offset: int) -> None:
        """Begin at an absolute offset."""
        self.position = max(0, offset)

    def behind(self, total_bytes: int) -> bool:
        """Tell whether a copy could do something now: there is more, and nobody has to make room first."""
        if self._waiting:
            return self._waiting[0][0].ready()
        return self._source is not None or total_bytes > self.position

    def copy(self, total_bytes: int) -> bool:
        """Write what there is up to ``total_bytes``; False when a reader has to make room first, ``OSError`` when one is gone."""
        while self._write_waiting():
            piece = self._next(total_bytes)
            if piece is None:
                return True
            self._take(*piece)
        return False

    def finish(self, memory_tail: tuple[int, bytes] | None) -> None:
        """Take as last pieces, for the next copy, what exists only in memory and what cleaning held back."""
        offset, data = memory_tail or (0, b"")
        if offset + len(data) > self.position:
            begin = max(offset, self.position)
            self._take(begin, STDOUT, data[begin - offset :])
        for stream, cleaner in self._cleaners.items():
            self._queue(stream, cleaner.close())

    def _next(self, total_bytes: int) -> _Piece | None:
        if self._source is None:
            if total_bytes <= self.position:
                return None
            self._source, self._source_end = self._pieces(self.position, total_bytes), total_bytes
        piece = next(self._source, None)
        if piece is None:
            self._account(self._source_end)
            self._source = None
        return piece

    def _pieces(self, begin: int, end: int) -> Iterator[_Piece]:
        return heapq.merge(*(self._pieces_of(stream, begin, end) for stream in self._streams))

    def _pieces_of(self, stream: int | None, begin: int, end: int) -> Iterator[_Piece]:
        for offset, data in self._reader.pieces(begin, stream=stream):
            if offset >= end:
                return
            yield offset, stream or STDOUT, data[: end - offset]

    def _take(self, offset: int, stream: int, data: bytes) -> None:
        self._account(offset)
        self.position = offset + len(data)
        cleaner = self._cleaners.get(stream)
        self._queue(stream, data if cleaner is None else cleaner.clean(data))

    def _queue(self, stream: int, data: bytes) -> None:
        if data:
            self._waiting.append((self._outlets[stream], memoryview(data)))

    def _account(self, offset: int) -> None:
        if self._counts_gaps:
            self.gap_bytes += max(0, offset - self.position)
        self.position = max(self.position, offset)

    def _write_waiting(self) -> bool:
        while self._waiting:
            if self.before_write is not None:
                self.before_write()
            outlet, data = self._waiting[0]
            taken = outlet.write(data)
            if taken == 0:
                self.blocked = outlet.descriptor
                return False
            if taken < len(data):
                self._waiting[0] = (outlet, data[taken:])
            else:
                self._waiting.popleft()
        self.blocked = None
        return True


class _Cleaner:
    def __init__(self, encoding: str | None) -> None:
        self._text = TextStream(encoding=encoding)
        self._live = LiveCleaner()

    def clean(self, data: bytes) -> bytes:
        return self._live.feed(self._text.feed(data)).encode("utf-8", "replace")

    def close(self) -> bytes:
        return self._live.feed(self._text.close()).encode("utf-8", "replace")
