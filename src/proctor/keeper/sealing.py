"""The journal as its writer sees it: lines are appended, never changed, and a full disk only delays them.

A line that cannot be written waits in memory in front of all later ones; ``flush`` tries again. A short write is cut off again, so that the
file always ends with a whole line.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from ..execution import journal_body, read_journal, sealed_line
from ..execution.layout import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..execution import Event, JournalContent

__all__ = ["JournalWriter", "read_journal_at"]

READ_LIMIT = 64 << 20


def read_journal_at(folder: int) -> JournalContent:
    """Return the believable content of a run folder's journal; a missing one is empty."""
    try:
        descriptor = os.open(JOURNAL, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return read_journal(b"")
    with open(descriptor, "rb") as file:
        return read_journal(file.read(READ_LIMIT))


class JournalWriter:
    """Appends events to one run folder's journal."""

    def __init__(self, folder: int, *, make_room: Callable[[int], object] | None = None) -> None:
        self._folder = folder
        self._make_room = make_room
        self._descriptor: int | None = None
        self._number = 0
        self._size = 0
        self._pending = b""

    def claim(self) -> None:
        """Keep other writers out until ``close``; raises ``BlockingIOError`` when one is at it."""
        fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)

    def resume(self, content: JournalContent) -> None:
        """Go on behind what another writer left, cutting a torn line off."""
        self._number, self._size = content.next_number, content.good_bytes
        os.ftruncate(self._open(), self._size)

    @property
    def pending(self) -> bool:
        """Whether something is told but not stored yet."""
        return bool(self._pending)

    def add(self, event: Event) -> bytes:
        """Append an event to what ``flush`` writes, and return its JSON object; what cannot be stored waits."""
        body = journal_body(self._number, event)
        self._pending += sealed_line(body)
        self._number += 1
        return body

    def flush(self) -> bool:
        """Try to store what waits; return whether nothing waits any more."""
        if self._pending and not self._try_write() and self._make_room is not None:
            self._make_room(len(self._pending) + 4096)
            self._try_write()
        return not self._pending

    def close(self) -> None:
        """Close the file; what waits is given up."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def sync(self) -> None:
        """Bring what is stored to the disk; a disk that refuses is no news to anybody by now."""
        try:
            os.fdatasync(self._open())
        except OSError:
            return

    def _open(self) -> int:
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(JOURNAL, flags, 0o600, dir_fd=self._folder)
        return self._descriptor

    def _try_write(self) -> bool:
        try:
            descriptor = self._open()
            written = os.write(descriptor, self._pending)
            if written < len(self._pending):
                os.ftruncate(descriptor, self._size)
                return False
        except OSError:
            return False
        self._size += written
        self._pending = b""
        return True
