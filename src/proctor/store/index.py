"""The index of all executions in ``proctor.db``: for lists, prefixes, quotas and history; the run folder is the truth about each one.

Any number of hosts, threads and forked processes use it at once. A damaged, missing or emptied database is rebuilt from the run folders,
at opening or in the middle of work, and ``notices`` says so; an answer is never an empty list because a file was bad.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError, ProctorError, StoreError
from ..execution import Record, is_id_prefix, record_from_json
from . import schema
from .access import Access
from .presence import clear, dead_hosts
from .rebuild import add_missing, read_record, row_of
from .transaction import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

__all__ = ["Index"]

_AFTER_LETTERS = "{"  # sorts behind every letter of an id
_MATCHES = 20


class Index:
    """One host's way to the index; get it from ``Index.open``. Every method may be called from any thread and after a fork."""

    __slots__ = ("_access", "_home")

    def __init__(self, home: str, *, read_only: bool) -> None:
        self._home = home
        self._access = Access(home, read_only=read_only)

    @classmethod
    def open(cls, home: str, *, read_only: bool = False) -> Index:
        """Open the index of a home made by ``open_home``, making or rebuilding it where needed.

        With ``read_only`` what is there stays as it is (SQLite may add its ``-wal`` and ``-shm`` files): where the index is damaged or
        incomplete, the answers come from a copy in memory. Raises ``StoreError`` (store_unavailable, store_corrupt).
        """
        index = cls(home, read_only=read_only)
        index._access.read(lambda _: None)
        return index

    def close(self) -> None:
        """Give the database up; calling it again does nothing."""
        self._access.close()

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know about the state of the store (code, colon, sentence), oldest first, each once."""
        return tuple(self._access.notices)

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

        self._access.write(insert)

    def put(self, record: Record) -> None:
        """Insert or update one row; an ended row never becomes unfinished again."""
        row = row_of(record)
        self._access.write(lambda connection: connection.execute(schema.PUT, row))

    def get(self, execution_id: str) -> Record | None:
        """Return the record with exactly this id; raises ``StoreError`` (store_corrupt) when it is there and cannot be read at all."""
        row = self._access.read(lambda connection: connection.execute(schema.GET, (execution_id,)).fetchone())
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
        return [name for (name,) in self._access.read(lambda connection: connection.execute(schema.MATCHING, bounds).fetchall())]

    def latest(self) -> str | None:
        """Return the id that was added last, by any host; ``None`` in an empty store."""
        row = self._access.read(lambda connection: connection.execute(schema.LATEST).fetchone())
        return None if row is None else row[0]

    def unfinished(self) -> list[Record]:
        """Return the records without an ending, oldest first."""
        return self._records(self._access.read(lambda connection: connection.execute(schema.UNFINISHED).fetchall()))

    def put_seen(self, seen: Iterable[tuple[Record, int]]) -> None:
        """Insert or update rows, each with the length of the journal (bytes) that its record was read from, all at once."""
        rows = [(row_of(record), (length, record.id)) for record, length in seen]

        def update(connection: Connection) -> None:
            with transaction(connection):
                connection.executemany(schema.PUT, [row for row, _ in rows])
                connection.executemany(schema.SEEN, [mark for _, mark in rows])

        self._access.write(update)

    def unfinished_seen(self) -> list[tuple[Record, int | None]]:
        """Return the records without an ending, oldest first, with the length of the journal that each was read from, where it is known."""
        rows = self._access.read(lambda connection: connection.execute(schema.UNFINISHED_SEEN).fetchall())
        decoded = ((self._decoded(name, text), length) for name, text, length in rows)
        return [(record, length) for record, length in decoded if record is not None]

    def recent(self, limit: int, session: str | None = None) -> list[Record]:
        """Return the newest ``limit`` records, of one session or of all, newest first."""
        query, values = (schema.RECENT, (limit,)) if session is None else (schema.RECENT_OF_SESSION, (session, limit))
        return self._records(self._access.read(lambda connection: connection.execute(query, values).fetchall()))

    def oldest_ended(self) -> list[tuple[str, float]]:
        """Return id and ending (seconds since 1970) of every ended execution, oldest ending first."""
        rows = self._access.read(lambda connection: connection.execute(schema.OLDEST_ENDED).fetchall())
        return [(name, ended_ms / 1000) for name, ended_ms in rows]

    def remove(self, ids: Iterable[str]) -> None:
        """Remove rows, all at once; unknown ids are no error."""
        values = [(name,) for name in ids]

        def delete(connection: Connection) -> None:
            with transaction(connection):
                connection.executemany(schema.DELETE, values)

        self._access.write(delete)

    def refresh(self) -> int:
        """Look at every run folder, add a row for each that has none, and return how many were added."""
        return self._access.write(lambda connection: add_missing(connection, self._home))

    def complete(self) -> None:
        """Add what hosts that died had not noted yet; costs next to nothing when there are none."""
        dead = dead_hosts(self._home)
        if dead:
            self.refresh()
            clear(dead)

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
            self._access.note((f"record_damaged: The index's row for {name} cannot be read. {error.message}",))
            return None


def _quota_exceeded(session: str, quota: int, unfinished: list[str]) -> ExecutionError:
    return ExecutionError(
        ErrorCode.QUOTA_EXCEEDED,
        f"Session {session} has {len(unfinished)} unfinished executions and may have {quota}: {', '.join(unfinished)}.",
        "Nothing was started and nothing was stopped; stop one of them or wait for it, then try again.",
    )
