"""The index of all executions in ``proctor.db``: for lists, prefixes, quotas and history; the run folder is the truth about each one.

Any number of hosts, threads and forked processes use it at once. A damaged, missing or emptied database is rebuilt from the run folders,
at opening or in the middle of work, and ``notices`` says so; an answer is never an empty list because a file was bad.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from ..errors import ErrorCode, ExecutionError, ProctorError, StoreError
from ..execution import Record, is_id_prefix, record_from_json
from ..execution.layout import INDEX
from . import schema
from .connection import BUSY_LIMIT_S, Link, connect, disconnect, snapshot
from .failure import is_busy, is_damage, store_error
from .rebuild import add_missing, lacks_rows, read_record, replace_index, row_of
from .transaction import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from sqlite3 import Connection, DatabaseError

__all__ = ["Index"]

T = TypeVar("T")
_AFTER_LETTERS = "{"  # sorts behind every letter of an id
_MATCHES = 20
_ATTEMPTS = 3  # another host may damage or replace the file once more while this one repairs it
_PAUSE_S = 0.01


class Index:
    """One host's way to the index; get it from ``Index.open``. Every method may be called from any thread and after a fork."""

    __slots__ = ("__weakref__", "_closed", "_forking", "_home", "_link", "_locks", "_notices", "_path", "_read_only")

    def __init__(self, home: str, *, read_only: bool) -> None:
        self._home = home
        self._path = os.path.join(home, INDEX)
        self._read_only = read_only
        self._link: Link | None = None
        self._locks: dict[int, Lock] = {}
        self._notices: dict[str, None] = {}
        self._closed = False
        self._forking: Lock | None = None

    @classmethod
    def open(cls, home: str, *, read_only: bool = False) -> Index:
        """Open the index of a home made by ``open_home``, making or rebuilding it where needed.

        With ``read_only`` no file is changed: where the index is damaged or incomplete, the answers come from a copy in memory. Raises
        ``StoreError`` (store_unavailable, store_corrupt).
        """
        index = cls(home, read_only=read_only)
        _close_over_forks(index)
        index._work(lambda _: None)
        return index

    def close(self) -> None:
        """Give the database up; calling it again does nothing."""
        with self._lock():
            link, self._link, self._closed = self._link, None, True
            if link is not None:
                disconnect(self._home, link)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know about the state of the store (code, colon, sentence), oldest first, each once."""
        return tuple(self._notices)

    def reserve(self, record: Record, *, session_quota: int | None) -> None:
        """Insert the record of an execution about to start, if its session has fewer than ``session_quota`` unfinished ones.

        Counting and inserting are one transaction over all hosts. Raises ``ExecutionError`` (quota_exceeded) that lists the unfinished.
        """
        row = row_of(record)

        def insert(connection: Connection) -> None:
            if session_quota is None or record.session is None:
                connection.execute(schema.PUT, row)
                return
            with transaction(connection):
                unfinished = connection.execute(schema.UNFINISHED_OF_SESSION, (record.session, record.id)).fetchall()
                if len(unfinished) >= session_quota:
                    raise _quota_exceeded(record.session, session_quota, [name for (name,) in unfinished])
                connection.execute(schema.PUT, row)

        self._write(insert)

    def put(self, record: Record) -> None:
        """Insert or update one row; an ended row never becomes unfinished again."""
        row = row_of(record)
        self._write(lambda connection: connection.execute(schema.PUT, row))

    def get(self, execution_id: str) -> Record | None:
        """Return the record with exactly this id; raises ``StoreError`` (store_corrupt) when it is there and cannot be read at all."""
        row = self._work(lambda connection: connection.execute(schema.GET, (execution_id,)).fetchone())
        if row is None:
            return None
        records = self._records([row])
        if not records:
            raise StoreError(ErrorCode.STORE_CORRUPT, f"The record of execution {execution_id} is damaged, and so is its run folder.")
        return records[0]

    def matching(self, prefix: str, *, limit: int = _MATCHES) -> list[str]:
        """Return the ids that begin with ``prefix``, newest first, at most ``limit``: enough to tell one from several."""
        if not is_id_prefix(prefix):
            return []
        bounds = (prefix, prefix + _AFTER_LETTERS, limit)
        return [name for (name,) in self._work(lambda connection: connection.execute(schema.MATCHING, bounds).fetchall())]

    def latest(self) -> str | None:
        """Return the id that was added last, by any host; ``None`` in an empty store."""
        row = self._work(lambda connection: connection.execute(schema.LATEST).fetchone())
        return None if row is None else row[0]

    def unfinished(self) -> list[Record]:
        """Return the records without an ending, oldest first."""
        return self._records(self._work(lambda connection: connection.execute(schema.UNFINISHED).fetchall()))

    def recent(self, limit: int, session: str | None = None) -> list[Record]:
        """Return the newest ``limit`` records, of one session or of all, newest first."""
        query, values = (schema.RECENT, (limit,)) if session is None else (schema.RECENT_OF_SESSION, (session, limit))
        return self._records(self._work(lambda connection: connection.execute(query, values).fetchall()))

    def oldest_ended(self) -> list[tuple[str, float]]:
        """Return id and ending (seconds since 1970) of every ended execution, oldest ending first."""
        rows = self._work(lambda connection: connection.execute(schema.OLDEST_ENDED).fetchall())
        return [(name, ended_ms / 1000) for name, ended_ms in rows]

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows, all at once; unknown ids are no error."""
        values = [(name,) for name in ids]

        def delete(connection: Connection) -> None:
            with transaction(connection):
                connection.executemany(schema.DELETE, values)

        self._write(delete)

    def refresh(self) -> int:
        """Look at every run folder, add a row for each that has none, and return how many were added."""
        return self._write(lambda connection: add_missing(connection, self._home))

    def _write(self, action: Callable[[Connection], T]) -> T:
        if self._read_only:
            raise StoreError(ErrorCode.STORE_UNAVAILABLE, f"The index {self._path} was opened for reading only.")
        return self._work(action, write=True)

    def _work(self, action: Callable[[Connection], T], *, write: bool = False) -> T:
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

    def _current(self, *, write: bool) -> Link:
        link = self._link
        if self._closed:
            raise StoreError(ErrorCode.STORE_UNAVAILABLE, f"The index {self._path} was closed by this program.")
        if link is None or link.pid != os.getpid() or not link.is_current(self._path):
            if link is not None:
                disconnect(self._home, link)
            self._link = None
            self._link = link = self._opened()
        if write and link.version > schema.VERSION:
            raise _newer(self._path)
        return link

    def _opened(self) -> Link:
        for _ in range(_ATTEMPTS):
            found = connect(self._home, read_only=self._read_only)
            if isinstance(found, Link):
                return self._completed(found)
            if self._read_only:
                self._note(("index_damaged: The index cannot be read; what is shown comes from the run folders.",) if found else ())
                return self._told(snapshot(self._home, None))
            self._note(replace_index(self._home, found))
        raise StoreError(
            ErrorCode.STORE_CORRUPT,
            f"The index {self._path} was found damaged again right after it was rebuilt.",
            "Check the disk, or set PROCTOR_HOME to a folder on another one.",
        )

    def _completed(self, link: Link) -> Link:
        if link.version > schema.VERSION:
            self._note((f"store_newer: The index {self._path} was made by a newer proctor and is only read here.",))
            return link
        if lacks_rows(link.connection, self._home):
            if self._read_only:
                link = snapshot(self._home, link)
            added = add_missing(link.connection, self._home)
            if added:
                self._note((f"index_completed: {added} executions were missing from the index and were added from their run folders.",))
        return self._told(link)

    def _told(self, link: Link) -> Link:
        rows = link.connection.execute(schema.DAMAGED).fetchall()
        self._note(f"run_damaged: {name}: {reason}" for name, reason in rows)
        return link

    def _repair(self) -> bool:
        link = self._link
        if link is None or link.identity is None or self._read_only or link.version > schema.VERSION:
            return False
        self._note(replace_index(self._home, link.identity))
        return True

    def _failure(self, error: DatabaseError) -> StoreError:
        if self._link is not None and self._link.version > schema.VERSION and not is_damage(error) and not is_busy(error):
            return _newer(self._path)
        return store_error(error, self._path)

    def _note(self, notices: Iterable[str]) -> None:
        self._notices.update(dict.fromkeys(notices))

    def _records(self, rows: Iterable[tuple[str, str]]) -> list[Record]:
        decoded = (self._decoded(name, text) for name, text in rows)
        return [record for record in decoded if record is not None]

    def _decoded(self, name: str, text: str) -> Record | None:
        try:
            return record_from_json(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError):
            pass
        try:
            return read_record(self._home, name)
        except ProctorError as error:
            self._note((f"record_damaged: The index's row for {name} cannot be read. {error.message}",))
            return None


def _close_over_forks(index: Index) -> None:
    # 1. The parent holds a connection. 2. It forks: SQLite's table of locks that "this process" holds comes along, the kernel's locks do
    # not. 3. The child connects and takes no lock, as the table says that it has it. 4. The parent closes, sees no other user, and removes
    # the log that the child writes to: rows are lost. Hence no connection is open while a process forks; both reconnect when they need to.
    register = getattr(os, "register_at_fork", None)
    if register is None:
        return
    reference = ref(index)

    def before() -> None:
        if (index := reference()) is not None:
            index._before_fork()

    def after() -> None:
        if (index := reference()) is not None:
            index._after_fork()

    register(before=before, after_in_parent=after, after_in_child=after)


def _quota_exceeded(session: str, quota: int, unfinished: list[str]) -> ExecutionError:
    return ExecutionError(
        ErrorCode.QUOTA_EXCEEDED,
        f"Session {session} has {len(unfinished)} unfinished executions and may have {quota}: {', '.join(unfinished)}.",
        "Nothing was started and nothing was stopped; stop one of them or wait for it, then try again.",
    )


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
