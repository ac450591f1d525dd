"""What an error of SQLite means for a user: one ``StoreError`` for each kind, with a sentence that says what to do.

SQLite's result codes: https://www.sqlite.org/rescode.html. The low byte is the kind, the rest a detail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, StoreError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["is_busy", "is_damage", "store_error"]

_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26
_SHORT_READ = 522

_ADVICE = {
    _BUSY: "Another process has kept it locked for long; try again, or find it with `fuser` and end it.",
    _LOCKED: "Another process has kept it locked for long; try again, or find it with `fuser` and end it.",
    _READONLY: "Make the folder and its files writable for this user, or set PROCTOR_HOME to another folder.",
    _IOERR: "The disk gave an error; check that it is not full or failing, or set PROCTOR_HOME to a folder on another one.",
    _FULL: "The disk is full: free some space (`proctor gc` removes old executions), or set PROCTOR_HOME to a folder on another disk.",
    _CANTOPEN: "Check that the folder is there and writable for this user, or set PROCTOR_HOME to another folder.",
}


def _kind(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether the database file itself is bad."""
    if str(error).startswith("Could not decode to UTF-8"):  # the sqlite3 module's own words; it gives no code
        return True
    return _kind(error) in {_CORRUPT, _NOTADB} or getattr(error, "sqlite_errorcode", 0) == _SHORT_READ


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether trying again may help."""
    return _kind(error) in {_BUSY, _LOCKED}


def store_error(error: sqlite3.Error, path: str) -> StoreError:
    """Return the error for users of the database at ``path``."""
    if is_damage(error):
        return StoreError(
            ErrorCode.STORE_CORRUPT, f"The index {path} is damaged ({error}).", "Move it away; it is rebuilt from the run folders."
        )
    advice = _ADVICE.get(_kind(error), "Please report this with the version of proctor and of SQLite.")
    return StoreError(ErrorCode.STORE_UNAVAILABLE, f"The index {path} cannot be used: {error}.", advice)
