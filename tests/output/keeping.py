"""What the tests of this folder share: a run folder, a model of what was written, and a writer's system calls that can be cut short."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proctor.output import Spool, SpoolReader

if TYPE_CHECKING:
    from pathlib import Path

SMALL_SEGMENT = 64


class Killed(BaseException):
    """The writer's process is gone at this system call."""


class CountedCalls:
    """Stands in for ``os``: lets a number of changing system calls through, then kills."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name not in {"open", "write", "unlink", "ftruncate"}:
            return call

        def counted(*arguments: Any, **options: Any) -> Any:
            if self.allowed == 0:
                raise Killed
            self.allowed -= 1
            return call(*arguments, **options)

        return counted


@dataclass
class Kept:
    """A spool in a folder beside the model: every byte that was written and the stream it came from."""

    folder: Path
    spool: Spool
    descriptor: int
    content: bytearray = field(default_factory=bytearray)
    streams: bytearray = field(default_factory=bytearray)

    def write(self, stream: int, data: bytes) -> None:
        self.content += data
        self.streams += bytes((stream,)) * len(data)
        self.spool.write(stream, data)

    @property
    def reader(self) -> SpoolReader:
        return SpoolReader(self.folder)

    def of_stream(self, stream: int, start: int, end: int) -> bytes:
        return bytes(byte for byte, found in zip(self.content[start:end], self.streams[start:end], strict=True) if found == stream)

    def disk_bytes(self) -> int:
        return sum(entry.stat().st_size for entry in self.folder.iterdir())


def check_reading(kept: Kept, total: int) -> None:
    """Every way of reading agrees with the model about the first ``total`` bytes."""
    reader = kept.reader
    assert reader.total_bytes() == total
    assert reader.stream_bytes(2) == kept.streams[:total].count(2)
    assert reader.stream_bytes(1) == kept.streams[:total].count(1)
    ranges = reader.kept()
    offset = 0
    seen = []
    while (chunk := reader.read_since(offset, limit=97)).next_offset > offset:
        assert chunk.offset == offset + chunk.gap_bytes
        assert chunk.data == kept.content[chunk.offset : chunk.next_offset]
        seen.append((chunk.offset, chunk.next_offset))
        offset = chunk.next_offset
    assert offset == total
    assert sum(end - start for start, end in seen) == sum(part.end - part.start for part in ranges)
    for stream in (1, 2):
        expected = b"".join(kept.of_stream(stream, part.start, part.end) for part in ranges)
        assert b"".join(chunk.data for chunk in reader.iterate(block_bytes=131, stream=stream)) == expected
        pieces = list(reader.pieces(stream=stream))
        assert b"".join(data for _, data in pieces) == expected
        assert all(kept.of_stream(stream, at, at + len(data)) == data == kept.content[at : at + len(data)] for at, data in pieces)
