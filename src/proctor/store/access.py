"""Access to ``proctor.db`` that outlasts what happens to it: reconnecting, repairing, waiting for others, one thread at a time.

Work is handed in as a function of a connection and may be run again, so it must be one statement or one transaction. Damage is repaired
from the run folders and the work repeated; another host's lock is waited for, with a bound; what is left becomes a ``StoreError``.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from ..errors import ErrorCode, StoreError
from ..execution.layout import INDEX
from . import schema
from .connection import BUSY_LIMIT_S, Link, connect, disconnect, snapshot
from .failure import is_busy, is_damage, store_error
from .presence import clear, dead_hosts
from .rebuild import add_missing, lacks_rows, replace_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from sqlite3 import Connection, DatabaseError

__all__ = ["Access"]

T = TypeVar("T")
_ATTEMPTS = 3  # another host may damage or replace the file once more while this one repairs it
_PAUSE_S = 0.01


class Access:
    """One host's way to the database of a home; usable from any thread and after a fork."""

    __slots__ = ("__weakref__", "_checked", "_closed", "_forking", "_home", "_link", "_locks", "_path", "_read_only", "notices")

    def __init__(self, home: str, *, read_only: bool) -> None:
        self._home = home
        self._path = os.path.join(home, INDEX)
        self._read_only = read_only
        self._link: Link | None = None
        self._checked: Link | None = None
        self._locks: dict[int, Lock] = {}
        self._closed = False
        self._forking: Lock | None = None
        self.notices: dict[str, None] = {}
        _close_over_forks(self)

    def read(self, action: Callable[[Connection], T]) -> T:
        """Return what ``action`` makes of the connection; raises ``StoreError``."""
        return self._work(action, write=False)

    def write(self, action: Callable[[Connection], T]) -> T:
        """Do the same with an action that changes something; raises ``StoreError`` (store_newer) where only reading is safe."""
        if self._read_only:
            raise StoreError(ErrorCode.STORE_UNAVAILABLE, f"The index {self._path} was opened for reading only.")
        return self._work(action, write=True)

    def close(self) -> None:
        """Give the database up; calling it again does nothing."""
        with self._lock():
            link, self._link, self._closed = self._link, None, True
            if link is not None:
                disconnect(self._home, link)

    def note(self, notices: Iterable[str]) -> None:
        """Add notices, each once."""
        self.notices.update(dict.fromkeys(notices))

    def _work(self, action: Callable[[Connection], T], *, write: bool) -> T:
        from sqlite3 import DatabaseError

        with self._lock():
            until = 0.0
            repairs = 0
            while True:
                try:
                    return action(self._current(write=write).connection)
                except DatabaseError as error:
                    if is_damage(error) and repairs < _ATTEMPTS and self._repair():
                        repairs += 1
                    elif is_busy(error) and monotonic() < (until := until or monotonic() + BUSY_LIMIT_S):
                        Event().wait(_PAUSE_S)  # SQLite's own waiting does not cover every moment of a recovery
                    else:
                        raise self._failure(error) from error
                except OSError as error:
                    raise _unreachable(self._path, error) from error

    def _lock(self) -> Lock:
        # A thread that did not survive the fork may have held the parent's lock: each process has its own.
        return self._locks.setdefault(os.getpid(), Lock())

    def _current(self, *, write: bool) -> Link:
        link = self._link
        if self._closed:
            raise StoreError(ErrorCode.STORE_UNAVAILABLE, f"The index {self._path} was closed by this program.")
        if link is None or link.pid != os.getpid() or not link.is_current(self._path):
            if link is not None:
                disconnect(self._home, link)
            self._link = None
            self._link = link = self._opened()
        if link is not self._checked:
            self._link = self._checked = link = self._completed(link)
        if write and link.version > schema.VERSION:
            raise _newer(self._path)
        return link

    def _opened(self) -> Link:
        for _ in range(_ATTEMPTS):
            found = connect(self._home, read_only=self._read_only)
            if isinstance(found, Link):
                return found
            if self._read_only:
                return self._from_folders(damaged=found is not None)
            self.note(replace_index(self._home, found))
        raise StoreError(
            ErrorCode.STORE_CORRUPT,
            f"The index {self._path} was found damaged again right after it was rebuilt.",
            "Check the disk, or set PROCTOR_HOME to a folder on another one.",
        )

    def _completed(self, link: Link) -> Link:
        if link.version > schema.VERSION:
            self.note((f"store_newer: The index {self._path} was made by a newer proctor and is only read here.",))
            return link
        dead = dead_hosts(self._home)
        if dead or lacks_rows(link.connection, self._home):
            if self._read_only and link.identity is not None:
                link = snapshot(self._home, link)
            added = add_missing(link.connection, self._home)
            if added:
                self.note((f"index_completed: {added} executions were missing from the index and were added from their run folders.",))
            if not self._read_only:
                clear(dead)
        rows = link.connection.execute(schema.DAMAGED).fetchall()
        self.note(f"run_damaged: {name}: {reason}" for name, reason in rows)
        return link

    def _repair(self) -> bool:
        link = self._link
        if link is None or link.identity is None or link.version > schema.VERSION:
            return False
        if self._read_only:
            disconnect(self._home, link)
            self._link = self._from_folders(damaged=True)
        else:
            self.note(replace_index(self._home, link.identity))
        return True

    def _from_folders(self, *, damaged: bool) -> Link:
        self.note(("index_damaged: The index cannot be read; what is shown comes from the run folders.",) if damaged else ())
        return snapshot(self._home, None)

    def _failure(self, error: DatabaseError) -> StoreError:
        if self._link is not None and self._link.version > schema.VERSION and not is_damage(error) and not is_busy(error):
            return _newer(self._path)
        return store_error(error, self._path)

    def _before_fork(self) -> None:
        lock = self._lock()
        if not lock.acquire(timeout=BUSY_LIMIT_S):
            return
        self._forking = lock
        if self._link is not None and self._link.identity is not None:
            with suppress(StoreError, OSError):
                disconnect(self._home, self._link, limit_s=BUSY_LIMIT_S)
                self._link = None

    def _after_fork(self) -> None:
        lock, self._forking = self._forking, None
        if lock is not None:
            lock.release()


def _close_over_forks(access: Access) -> None:
    # 1. The parent holds a connection. 2. It forks: SQLite's table of locks that "this process" holds comes along, the kernel's locks do
    # not. 3. The child connects and takes no lock, as the table says that it has it. 4. The parent closes, sees no other user, and removes
    # the log that the child writes to: rows are lost. Hence no connection is open while a process forks; both reconnect when they need to.
    register = getattr(os, "register_at_fork", None)
    if register is None:
        return
    reference = ref(access)

    def before() -> None:
        if (access := reference()) is not None:
            access._before_fork()

    def after() -> None:
        if (access := reference()) is not None:
            access._after_fork()

    register(before=before, after_in_parent=after, after_in_child=after)


def _newer(path: str) -> StoreError:
    return StoreError(
        ErrorCode.STORE_NEWER,
        f"The index {path} was made by a newer proctor; this one can only read it.",
        "Upgrade proctor, or set PROCTOR_HOME to another folder.",
    )


def _unreachable(path: str, error: OSError) -> StoreError:
    return StoreError(
        ErrorCode.STORE_UNAVAILABLE,
        f"The index {path} cannot be reached: {error.strerror or error}.",
        "Check that proctor's home folder is there, writable and not on a full disk, or set PROCTOR_HOME to another one.",
    )
