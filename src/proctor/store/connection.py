"""One connection to ``proctor.db``, and the rules that keep several hosts and a rebuild from harming each other.

Opening and closing happen under a shared lock and replacing the file under the exclusive one: SQLite finds its log by name when it opens
and removes it by name when it closes, so neither may meet a rename (https://www.sqlite.org/howtocorrupt.html, 2.4). A connection whose file
was replaced would remove the log of the new one; it is closed without that, or left open where Python offers no way (3.11).
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..execution.layout import INDEX
from . import schema
from .failure import is_damage
from .lock import locked
from .rebuild import LOCK_LIMIT_S, LOCK_NAME, Identity, fill, identity_of

if TYPE_CHECKING:
    import sqlite3
    from contextlib import AbstractContextManager

__all__ = ["Link", "connect", "disconnect", "snapshot"]

BUSY_LIMIT_S = 5.0


class Link:
    """A usable connection: to which file (``None``: to memory), opened by which process, and the schema version found in it."""

    __slots__ = ("connection", "identity", "pid", "version")

    def __init__(self, connection: sqlite3.Connection, identity: Identity | None, version: int) -> None:
        self.connection = connection
        self.identity = identity
        self.version = version
        self.pid = os.getpid()

    def is_current(self, path: str) -> bool:
        """Tell whether the connection still leads to the file at ``path``."""
        return self.identity is None or self.identity == identity_of(path)


def connect(home: str, *, read_only: bool) -> Link | Identity | None:
    """Return a link to the database; or the identity of the file there that is damaged, or ``None`` when there is none or an empty one."""
    import sqlite3

    path = os.path.join(home, INDEX)
    with _shared(home, read_only=read_only):
        identity = identity_of(path)
        if identity is None:
            return None
        connection = sqlite3.connect(
            f"file:{_quoted(path)}?mode={'ro' if read_only else 'rw'}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_LIMIT_S,
            check_same_thread=False,
        )
        try:
            version = _checked_version(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if is_damage(error):
                return identity
            raise
        if version == 0:
            connection.close()
            return identity
        return Link(connection, identity, version)


def _checked_version(connection: sqlite3.Connection) -> int:
    connection.execute("pragma synchronous = normal")
    version = connection.execute("pragma user_version").fetchone()[0]
    if version == schema.VERSION:
        connection.execute(schema.LATEST).fetchone()
    return int(version)


def snapshot(home: str, source: Link | None) -> Link:
    """Return a database in memory with what ``source`` holds, or with what the run folders amount to; ``source`` is closed."""
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        if source is None:
            fill(connection, home)
        else:
            source.connection.backup(connection)
            disconnect(home, source)
    except BaseException:
        connection.close()
        raise
    return Link(connection, None, schema.VERSION)


def disconnect(home: str, link: Link, *, limit_s: float = LOCK_LIMIT_S) -> None:
    """Close the connection without harm to a file that took its place; ``StoreError`` after ``limit_s`` of a rebuild."""
    with _shared(home, read_only=True, limit_s=limit_s):
        path = os.path.join(home, INDEX)
        if link.is_current(path) or not os.path.lexists(path):  # where no file took its place, there is none to be harmed
            link.connection.close()
        else:
            _leave(link.connection)


def _leave(connection: sqlite3.Connection) -> None:
    configure = getattr(connection, "setconfig", None)
    if configure is not None:  # Python 3.12: closing then removes nothing (https://www.sqlite.org/c3ref/c_dbconfig_defensive.html)
        import sqlite3

        configure(getattr(sqlite3, "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"), True)  # noqa: B009 - not there for a checker of 3.11
        connection.close()
        return
    # The interpreter would close it on its way out; a reference that nobody gives back prevents that.
    from ctypes import py_object, pythonapi

    pythonapi.Py_IncRef(py_object(connection))


def _shared(home: str, *, read_only: bool, limit_s: float = LOCK_LIMIT_S) -> AbstractContextManager[None]:
    path = os.path.join(home, LOCK_NAME)
    if read_only and not os.access(path if os.path.exists(path) else home, os.W_OK):
        return nullcontext()  # where nothing can be written, nothing is replaced either
    return locked(path, exclusive=False, limit_s=limit_s)


def _quoted(path: str) -> str:
    for letter, code in (("%", "%25"), ("?", "%3f"), ("#", "%23")):
        path = path.replace(letter, code)
    return path
