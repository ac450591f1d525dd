"""The writer of kept output, inside the keeper: head, rotating tail, exact absolute offsets; storage trouble never stops a command.

``write`` appends to the open segment; a full one is closed and the next begins at the current offset; the oldest tail segments go. A file's
name and size are the whole book-keeping, so a keeper killed at any point leaves a spool that reads exactly. When storage fails the last
256 KiB stay in memory, the rest is counted as dropped, and storing is tried again at most once a second; no error reaches the caller.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..execution import OutputCounts, layout
from .segments import (
    BINARY,
    ENTRY_BYTES,
    FIRST,
    HEADER_BYTES,
    MAXIMUM_SEGMENT_BYTES,
    NO_FOLLOW,
    SECOND,
    StreamIndex,
    data_name,
    entry,
    header,
    index_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MEMORY_BYTES", "Spool"]

MEMORY_BYTES = 256 << 10
TAIL_SEGMENTS = 56
MINIMUM_SEGMENT_BYTES = 4096  # smaller ones would cost more in file creations than they keep exact
PAGE_BYTES = 4096
CHECK_S = 1.0  # how often storing is tried again, and how soon a removed file is noticed

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY
_SYNC: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
_GONE = frozenset({errno.ENOENT, errno.ESTALE, errno.EBADF, errno.ENOTDIR})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ELOOP})


def _reason(error: OSError) -> str:
    if error.errno in _GONE:
        return "folder_gone"
    return "permission" if error.errno in _REFUSED else "disk_full"


class _Sealed(NamedTuple):
    name: str
    data_bytes: int
    disk_bytes: int
    indexed: bool


class Spool:
    """Keeps the first ``head_bytes`` and the last ``tail_bytes`` of what is written; index bytes of split streams count against both.

    Disk use is at most head + tail + one segment (a 56th of the tail; two where segments do not fill the tail evenly). ``dir_fd`` stays
    the caller's. Not thread-safe. No method raises for storage trouble. ``counts`` are final after ``close``.
    """

    def __init__(self, dir_fd: int, *, head_bytes: int, tail_bytes: int, split: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._dir_fd = dir_fd
        self._split = split
        self._clock = clock
        self._head_left = head_bytes
        self._tail_bytes = tail_bytes
        self._segment_bytes = min(max(tail_bytes // TAIL_SEGMENTS, MINIMUM_SEGMENT_BYTES), MAXIMUM_SEGMENT_BYTES)
        self._total = self._second = self._second_stored = self._late_bytes = self._kept = 0
        self._late = self._closed = False
        self._head: list[_Sealed] = []
        self._tail: deque[_Sealed] = deque()
        self._tail_disk = 0
        # The open segment: descriptors, where it begins, where its data ends, what it may still take, the stream its index stands at.
        self._fd = self._index_fd = -1
        self._name = ""
        self._in_head = False
        self._start = self._end = self._room = self._capacity = 0
        self._stream = FIRST
        # Trouble: what is only in memory, each byte's stream beside it.
        self._trouble: str | None = None
        self._incomplete: str | None = None
        self._memory = bytearray()
        self._memory_streams = bytearray()
        self._next_check = clock() + CHECK_S

    @property
    def total_bytes(self) -> int:
        """How much was written so far, kept or not."""
        return self._total

    def write(self, stream: int, data: bytes | bytearray | memoryview) -> None:
        """Take bytes of stream 1 (standard output, or both merged) or 2; never raises for storage trouble."""
        if self._clock() >= self._next_check:
            self._check()
        size = len(data)
        self._total += size
        if stream == SECOND:
            self._second += size
        if self._late:
            self._late_bytes += size
        if self._trouble is None:
            try:
                self._store(stream, data)
            except OSError as error:
                self._suffer(_reason(error))
        if self._trouble is not None:
            missing = min(size, self._total - self._end)
            self._remember(stream, memoryview(data)[size - missing :])

    def mark_late(self) -> None:
        """Count what comes from now on as late: it arrived after the result was told."""
        self._late = True

    def counts(self) -> OutputCounts:
        """Return the exact figures; what is only in memory counts as kept until ``close``."""
        kept = self._kept + (0 if self._closed else len(self._memory))
        return OutputCounts(
            bytes=self._total,
            kept_bytes=kept,
            dropped_bytes=self._total - kept,
            late_bytes=self._late_bytes,
            incomplete=self._incomplete,
        )

    def memory_tail(self) -> tuple[int, bytes]:
        """Return (absolute offset, bytes) of what could not be stored and is still in memory; empty bytes when there is none."""
        return self._total - len(self._memory), bytes(self._memory)

    def make_room(self, wanted_bytes: int) -> int:
        """Give up kept output, oldest of the tail first, then the end of the head, so that others can write; return the bytes freed."""
        freed = self._free(wanted_bytes)
        if freed < wanted_bytes and self._fd >= 0:
            self._seal()
            freed += self._free(wanted_bytes - freed)
        if freed and self._fd < 0 and not self._tail and self._trouble is None:
            self._mark_end()
        return freed

    def sync(self) -> None:
        """Bring what is kept to the disk; slow, so it belongs behind the answer to the caller."""
        names = [sealed.name for sealed in (*self._head, *self._tail)] + ([self._name] if self._fd >= 0 else [])
        for name in names:
            self._sync_file(name)
            if self._split:
                self._sync_file(index_name(name))
        with suppress(OSError):
            os.fsync(self._dir_fd)

    def close(self) -> None:
        """Store what is only in memory if that is possible now, and see to it that ``output`` exists; the rest is dropped."""
        self._look()
        if self._trouble is not None:
            self._resume()
        if self._trouble == "disk_full" and self._memory:
            # The end of the output is worth more than the middle: what failed is said there.
            self.make_room(len(self._memory) + PAGE_BYTES)
            self._resume()
        if self._fd < 0 and not self._head and not self._tail and self._trouble is None:
            self._mark_end()
        self._seal()
        self._closed = True

    # Storing

    def _store(self, stream: int, data: bytes | bytearray | memoryview) -> None:
        if stream == self._stream and len(data) <= self._room:
            written = os.write(self._fd, data)
            self._advance(written)
            if written == len(data):
                return
            data = memoryview(data)[written:]
        self._store_in_parts(stream, memoryview(data))

    def _store_in_parts(self, stream: int, view: memoryview) -> None:
        while view:
            while self._room <= self._switch_bytes(stream):
                self._roll()
            if stream != self._stream:
                self._switch(stream)
            written = os.write(self._fd, view[: self._room])
            self._advance(written)
            view = view[written:]

    def _switch_bytes(self, stream: int) -> int:
        if stream == self._stream:
            return 0
        return ENTRY_BYTES if self._index_fd >= 0 else ENTRY_BYTES + HEADER_BYTES

    def _advance(self, written: int) -> None:
        self._end += written
        self._kept += written
        self._room -= written
        if self._stream == SECOND:
            self._second_stored += written

    def _switch(self, stream: int) -> None:
        if self._index_fd < 0:
            self._open_index(0)  # the second stream's first byte ever: later segments have their index from the start
        self._write_index(entry(self._end - self._start, stream))
        self._stream = stream

    def _open_index(self, second_before: int) -> None:
        self._index_fd = os.open(index_name(self._name), _CREATE, 0o600, dir_fd=self._dir_fd)
        self._write_index(header(second_before))

    def _write_index(self, content: bytes) -> None:
        if os.write(self._index_fd, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._room -= len(content)

    # Segments

    def _roll(self) -> None:
        self._look()
        if self._trouble is not None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))  # what was stored in it is back in memory, as far as kept
        if self._fd >= 0:
            if self._in_head:
                self._head_left -= self._room  # what a switch of stream did not fit into is not used
            self._seal()
        self._open_segment()
        # The new one first: a keeper killed in between leaves a file too many, never a spool without its end.
        while self._tail and self._tail_disk - self._tail[0].disk_bytes >= self._tail_bytes:
            self._unlink_oldest()

    def _open_segment(self) -> None:
        name = data_name(self._end) if self._end or self._head else layout.OUTPUT
        self._fd = os.open(name, _CREATE, 0o600, dir_fd=self._dir_fd)
        self._name = name
        self._start = self._end
        self._stream = FIRST
        self._in_head = self._head_left > 0 or name == layout.OUTPUT
        self._capacity = self._room = min(self._head_left, MAXIMUM_SEGMENT_BYTES) if self._in_head else self._segment_bytes
        if self._second_stored:
            self._open_index(self._second_stored)

    def _seal(self) -> None:
        if self._fd < 0:
            return
        used = self._capacity - self._room
        sealed = _Sealed(self._name, self._end - self._start, used, self._index_fd >= 0)
        self._close_files()
        if self._in_head:
            self._head.append(sealed)
            self._head_left = max(0, self._head_left - used)
        else:
            self._tail.append(sealed)
            self._tail_disk += used

    def _close_files(self) -> None:
        for descriptor in (self._fd, self._index_fd):
            if descriptor >= 0:
                with suppress(OSError):  # close can report an old write error; the descriptor is gone all the same
                    os.close(descriptor)
        self._fd = self._index_fd = -1
        self._room = 0

    def _unlink_oldest(self) -> int:
        oldest = self._tail[0]
        # Data first: a reader that finds the data still linked may trust that a missing index means there never was one.
        with suppress(FileNotFoundError):
            os.unlink(oldest.name, dir_fd=self._dir_fd)
        if oldest.indexed:
            with suppress(FileNotFoundError):
                os.unlink(index_name(oldest.name), dir_fd=self._dir_fd)
        self._tail.popleft()
        self._tail_disk -= oldest.disk_bytes
        self._kept -= oldest.data_bytes
        return oldest.disk_bytes

    def _free(self, wanted_bytes: int) -> int:
        freed = 0
        with suppress(OSError):
            while freed < wanted_bytes and self._tail:
                freed += self._unlink_oldest()
            if freed < wanted_bytes and self._head:
                freed += self._shorten_head(wanted_bytes - freed)
        return freed

    def _shorten_head(self, wanted_bytes: int) -> int:
        last = self._head[-1]
        left = max(0, last.data_bytes - wanted_bytes) // PAGE_BYTES * PAGE_BYTES
        descriptor = os.open(last.name, os.O_RDWR | NO_FOLLOW | BINARY, dir_fd=self._dir_fd)
        try:
            os.ftruncate(descriptor, left)
        finally:
            os.close(descriptor)
        self._head[-1] = last._replace(data_bytes=left)
        self._kept -= last.data_bytes - left
        return last.data_bytes - left

    def _mark_end(self) -> None:
        """Leave an empty segment at the current offset, so that readers still know how much was written."""
        try:
            self._open_segment()
        except OSError as error:
            self._suffer(_reason(error))
        if self._closed:
            self._seal()

    def _sync_file(self, name: str) -> None:
        try:
            descriptor = os.open(name, os.O_RDWR | NO_FOLLOW | BINARY, dir_fd=self._dir_fd)
        except OSError:
            return
        with suppress(OSError):
            _SYNC(descriptor)
        os.close(descriptor)

    # Trouble

    def _suffer(self, reason: str) -> None:
        self._trouble = self._incomplete = reason
        self._next_check = self._clock() + CHECK_S
        if self._fd >= 0 and self._end == self._start and self._name != layout.OUTPUT:
            self._close_files()
            for name in (self._name, index_name(self._name)):
                with suppress(OSError):
                    os.unlink(name, dir_fd=self._dir_fd)
        else:
            self._seal()

    def _remember(self, stream: int, view: memoryview) -> None:
        view = view[-MEMORY_BYTES:]
        self._memory += view
        self._memory_streams += bytes((stream,)) * len(view)
        excess = len(self._memory) - MEMORY_BYTES
        if excess > 0:
            self._forget(excess)

    def _forget(self, amount: int) -> None:
        del self._memory[:amount]
        del self._memory_streams[:amount]

    def _check(self) -> None:
        self._next_check = self._clock() + CHECK_S
        if self._trouble is None:
            self._look()
        else:
            self._resume()

    def _look(self) -> None:
        """Notice that the open segment was removed: writes to it succeed for ever and nobody can read them."""
        if self._fd < 0 or os.fstat(self._fd).st_nlink:
            return
        with suppress(OSError):
            self._recall()
        self._kept -= self._end - self._start
        if not os.fstat(self._dir_fd).st_nlink:
            self._head.clear()
            self._tail.clear()
            self._kept = self._tail_disk = 0
        self._close_files()
        self._trouble = self._incomplete = "folder_gone"

    def _recall(self) -> None:
        """Read the end of a removed segment back into memory while it is still open."""
        size = self._end - self._start
        amount = min(size, MEMORY_BYTES)
        os.lseek(self._fd, size - amount, os.SEEK_SET)
        data = os.read(self._fd, amount)
        index = StreamIndex(self._index_content())
        if len(data) == amount:
            position = size - amount
            while position < size:
                stream, end = index.span(position, size)
                self._remember(stream, memoryview(data)[position - size + amount : end - size + amount])
                position = end

    def _index_content(self) -> bytes:
        if self._index_fd < 0:
            return b""
        os.lseek(self._index_fd, 0, os.SEEK_SET)
        return os.read(self._index_fd, os.fstat(self._index_fd).st_size)

    def _resume(self) -> None:
        """Store what is in memory in a new segment at its own offset; what does not fit stays in memory."""
        self._trouble = None
        memory, streams = bytes(self._memory), bytes(self._memory_streams)
        begin = self._end = self._total - len(memory)
        self._second_stored = self._second - streams.count(SECOND)
        try:
            self._open_segment()
            for first, last in _runs(streams):
                self._store_in_parts(streams[first], memoryview(memory)[first:last])
        except OSError as error:
            self._suffer(_reason(error))
        self._forget(self._end - begin)


def _runs(streams: bytes) -> Iterator[tuple[int, int]]:
    begin = 0
    while begin < len(streams):
        end = streams.find(FIRST + SECOND - streams[begin], begin)
        end = len(streams) if end < 0 else end
        yield begin, end
        begin = end
