"""Locks on files that the kernel drops when their holder dies, so that nothing a dead process left behind can block the next start.

What a lock file holds (an old pid, garbage, nothing) never matters. Waiting is bounded, and the error says who to look for.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import ErrorCode, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_locked", "locked", "try_lock"]

_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_POLL_S = 0.02  # flock(2) has no limit of its own


@contextmanager
def locked(path: str, *, exclusive: bool, limit_s: float) -> Iterator[None]:
    """Hold the lock at ``path`` (made if missing); raises ``StoreError`` (store_unavailable) if it stays taken for ``limit_s``."""
    descriptor = os.open(path, _FLAGS | os.O_CREAT, 0o600)
    try:
        if not _flock(descriptor, exclusive=exclusive):
            _wait(descriptor, path, exclusive=exclusive, limit_s=limit_s)
        yield
    finally:
        os.close(descriptor)


def try_lock(path: str, *, create: bool = False) -> int | None:
    """Return a descriptor that holds the exclusive lock at ``path``, or ``None`` when somebody else holds it.

    Raises ``FileNotFoundError`` for a missing file unless ``create``; closing the descriptor gives the lock up.
    """
    descriptor = os.open(path, _FLAGS | (os.O_CREAT if create else 0), 0o600)
    if _flock(descriptor, exclusive=True):
        return descriptor
    os.close(descriptor)
    return None


def is_locked(path: str) -> bool | None:
    """Tell whether somebody holds the exclusive lock at ``path``, without keeping others from it; ``None`` when there is no such file."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        return not _flock(descriptor, exclusive=False)
    finally:
        os.close(descriptor)


def _flock(descriptor: int, *, exclusive: bool) -> bool:
    fcntl = import_module("fcntl")
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, path: str, *, exclusive: bool, limit_s: float) -> None:
    from threading import Event
    from time import monotonic

    until = monotonic() + limit_s
    pause = Event()
    while not _flock(descriptor, exclusive=exclusive):
        if monotonic() > until:
            raise StoreError(
                ErrorCode.STORE_UNAVAILABLE,
                f"Another process has held {path} for more than {limit_s:g} s.",
                "It may be rebuilding a large index; try again, or find it with `fuser` and end it.",
            )
        pause.wait(_POLL_S)
