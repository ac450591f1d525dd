"""One write transaction on a connection that is otherwise in autocommit: all of it, or none."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

__all__ = ["transaction"]


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Take the write lock at once (a lock taken later could not wait for others), commit at the end, roll back on any exception."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself after some errors
            connection.execute("rollback")
        raise
