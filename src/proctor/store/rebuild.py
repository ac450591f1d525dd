"""Making the index from the run folders, which are the truth: all of it when the database is damaged or missing, or the rows it lacks.

A damaged database is never written to and never deleted: it is moved aside under a new name, then a new file is filled and put in its
place in one rename. Only one host does this at a time (a lock that dies with its holder); the others wait and use the result. A folder
that cannot be read is named and kept, and hides no other.
"""

from __future__ import annotations

import json
import os
from enum import Enum
from time import time, time_ns
from typing import TYPE_CHECKING

from ..data import changed
from ..errors import ErrorCode, ProctorError, StoreError, TransitionError
from ..execution import Record, is_id, record_from_json, record_to_json, replay
from ..execution.layout import INDEX, JOURNAL, LOCK, RUNS, SPEC
from . import schema
from .folder import RunFolder
from .lock import locked
from .transaction import transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from sqlite3 import Connection

__all__ = [
    "LOCK_NAME",
    "Identity",
    "Stage",
    "add_missing",
    "fill",
    "identity_of",
    "lacks_rows",
    "read_record",
    "replace_index",
    "row_of",
    "stage_of",
]

LOCK_NAME = "index.lock"
LOCK_LIMIT_S = 300.0  # a rebuild reads every run folder; 100,000 of them take half a minute (measured: 0.33 ms each)
STARTING_S = 10.0  # from making a run folder to locking it takes a host well under a millisecond
CREATED_TO_FOLDER_MS = 100  # from the record's creation time to its folder in runs/, with room for a busy machine
TICK_MS = 10  # a file's time is that of the kernel's last tick: up to this much before the clock's
_PARTS = ("", "-wal", "-shm")

Identity = tuple[int, int]
Row = tuple[str, int, int | None, int, str, str | None, str]


def read_record(home: str, execution_id: str) -> Record:
    """Return the record that a run folder amounts to.

    Of a damaged journal the good beginning counts, and the record says so in its notices. Raises ``ExecutionError`` (unknown_execution)
    without a folder, ``StoreError`` (store_corrupt) when its spec, or which event followed which, cannot be believed.
    """
    folder = RunFolder.open(home, execution_id)
    try:
        return _replayed(folder, execution_id)
    finally:
        folder.close()


def _replayed(folder: RunFolder, execution_id: str) -> Record:
    spec = folder.spec()
    if spec.id != execution_id:
        raise _corrupt(folder.path, f"its {SPEC} is that of {spec.id!r}")
    try:
        journal = folder.journal()
        record = replay(spec, journal.events)
    except TransitionError as error:
        raise _corrupt(folder.path, error.message) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _corrupt(folder.path, f"it cannot be read ({error})") from error
    if not journal.damaged:
        return record
    note = f"journal_damaged: {JOURNAL} is damaged after event {journal.next_number}; what follows it is not believed."
    return changed(record, notices=(*record.notices, note))


def _corrupt(path: str, why: str) -> StoreError:
    return StoreError(
        ErrorCode.STORE_CORRUPT,
        f"The run folder {path} is damaged: {why}.",
        "Its output may still be readable; remove the folder when you no longer need it.",
    )


def row_of(record: Record) -> Row:
    """Return the values of ``schema.PUT`` for a record."""
    ended_ms = None if record.ended_at is None else int(record.ended_at.timestamp() * 1000)
    text = json.dumps(record_to_json(record), separators=(",", ":"))
    created_ms = int(record.created_at.timestamp() * 1000)
    return record.id, created_ms, ended_ms, int(record.ended), record.status.value, record.session, text


def identity_of(path: str) -> Identity | None:
    """Return device and inode of the database file, or ``None`` when there is none or it is empty (a database of ours never is)."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size else None


def replace_index(home: str, suspect: Identity | None) -> tuple[str, ...]:
    """Move the database aside and put one in its place that is filled from the run folders; return notices about it.

    ``suspect`` is the file found damaged (``None``: missing or empty). When another host has replaced it already, nothing is done.
    """
    with locked(os.path.join(home, LOCK_NAME), exclusive=True, limit_s=LOCK_LIMIT_S):
        path = os.path.join(home, INDEX)
        present = identity_of(path)
        if present is not None and present != suspect:
            return ()
        moved = _move_aside(path)
        count = _make(home, f"{path}.new", moved)
        os.replace(f"{path}.new", path)
    if moved is not None:
        name = os.path.basename(moved)
        return (f"index_rebuilt: The index was damaged: moved to {name}, rebuilt from {count} run folders.",)
    return (f"index_rebuilt: The index was missing and was rebuilt from {count} run folders.",) if count else ()


def _move_aside(path: str) -> str | None:
    present = [part for part in _PARTS if os.path.lexists(path + part)]
    if not present:
        return None
    target = name = f"{path}.damaged-{int(time())}"
    number = 1
    while any(os.path.lexists(target + part) for part in _PARTS):
        number += 1
        target = f"{name}-{number}"
    for part in reversed(present):  # the log first: next to a database of that name it would be played into it
        os.rename(path + part, target + part)
    return target


def _make(home: str, path: str, moved: str | None) -> int:
    import sqlite3

    for part in (*_PARTS, "-journal"):
        if os.path.lexists(path + part):
            os.unlink(path + part)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    os.close(descriptor)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("pragma synchronous = off")
        connection.execute("pragma journal_mode = memory")
        count = fill(connection, home, moved)
        connection.execute("pragma journal_mode = wal")
    finally:
        connection.close()
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return count


def fill(connection: Connection, home: str, moved: str | None = None) -> int:
    """Make the tables in an empty database and one row for each run folder; return how many there are."""
    connection.executescript(f"begin;{schema.CREATE}commit;")
    count = add_missing(connection, home)
    damaged = [name for name, _ in connection.execute(schema.DAMAGED)]
    if moved is not None and damaged:
        connection.executemany(schema.PUT, _salvaged(moved, frozenset(damaged)))
    return count


def _salvaged(path: str, wanted: frozenset[str]) -> Iterator[Row]:
    import sqlite3

    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for name, text in connection.execute("select id, record from executions"):
            if name in wanted:
                yield row_of(record_from_json(json.loads(text)))
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError):
        return  # as far as a damaged file can be read
    finally:
        connection.close()


def add_missing(connection: Connection, home: str) -> int:
    """Add rows for the run folders that have none, remember which folders are damaged, and return how many rows were added.

    The folder's modification time is stored with the result, so that the next opening need not look again.
    """
    runs = os.path.join(home, RUNS)
    before = os.stat(runs).st_mtime_ns
    folders = {name for name in os.listdir(runs) if is_id(name)}
    known = {name for (name,) in connection.execute(schema.ALL_IDS)}
    doubtful = {name for name, _ in connection.execute(schema.DAMAGED)}
    rows, damaged, starting = _read(home, sorted((folders - known) | (doubtful & folders)))
    with transaction(connection):
        connection.executemany(schema.PUT, rows)
        connection.execute(schema.FORGET_DAMAGED)
        connection.executemany(schema.ADD_DAMAGED, damaged)
        if not starting:
            connection.execute(schema.SET_VERIFIED, (before,))
    return sum(row[0] not in known for row in rows)


def _read(home: str, names: Iterable[str]) -> tuple[list[Row], list[tuple[str, str]], bool]:
    rows: list[Row] = []
    damaged: list[tuple[str, str]] = []
    starting = False
    for name in names:
        record, reason = _readable(home, name)
        stage = Stage.STARTED if record is not None and record.keeper_pid is not None else _stage(home, name)
        if stage is Stage.STARTING:
            starting = True  # its host adds the row, or takes the folder back when the session is full
        elif record is not None:
            rows.append(row_of(record))
        elif stage is Stage.STARTED:
            damaged.append((name, reason))
    return rows, damaged, starting


def _readable(home: str, name: str) -> tuple[Record | None, str]:
    try:
        return read_record(home, name), ""
    except ProctorError as error:
        return None, error.message


class Stage(Enum):
    """How far the start of an execution came, as its folder shows."""

    STARTING = "starting"
    ABANDONED = "abandoned"
    STARTED = "started"


def _stage(home: str, name: str) -> Stage:
    try:
        folder = RunFolder.open(home, name)
    except ProctorError as error:
        # Gone since it was listed: a host whose session was full took it back.
        return Stage.ABANDONED if error.code is ErrorCode.UNKNOWN_EXECUTION else Stage.STARTED
    try:
        return stage_of(folder)
    except OSError:
        return Stage.STARTED
    finally:
        folder.close()


def stage_of(folder: RunFolder) -> Stage:
    """Tell from journal, lock and age how far a start came: without a journal there was no keeper, and nothing ran."""
    if os.path.lexists(os.path.join(folder.path, JOURNAL)):
        return Stage.STARTED
    young = abs(time_ns() - os.stat(folder.descriptor).st_mtime_ns) < STARTING_S * 1e9
    if folder.keeper_alive() or (young and not os.path.lexists(os.path.join(folder.path, LOCK))):
        return Stage.STARTING
    return Stage.ABANDONED


def lacks_rows(connection: Connection, home: str) -> bool:
    """Tell, without listing them, whether run folders may be there that have no row (a machine crash takes the newest rows first).

    A folder is made right after its record's creation time. When ``runs/`` changed later than that of the newest row, and not as the last
    complete look at it found it, somebody has to look.
    """
    changed = os.stat(os.path.join(home, RUNS)).st_mtime_ns
    verified = connection.execute(schema.VERIFIED).fetchone()
    if verified is not None and verified[0] == changed:
        return False
    newest = connection.execute(schema.NEWEST_CREATED).fetchone()
    return newest is None or not -TICK_MS <= changed // 1_000_000 - newest[0] <= CREATED_TO_FOLDER_MS
