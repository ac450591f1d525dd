"""Which hosts may have something that is not in the index yet: a file for each, locked for as long as its process lives.

A brief call is written into the index once, with its ending. A host that is killed before that leaves its file, and nobody holds the lock:
whoever opens the index next, or lists what is unfinished, looks at every run folder, and then takes the file away.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import ref

from ..execution.layout import HOSTS
from .lock import is_locked, try_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Presence", "clear", "dead_hosts"]

ATTEMPTS = 3  # somebody may look at the file, and take it for a dead host's, between its making and its locking


class Presence:
    """The file of one host; made at the first ``announce`` of each process, gone with ``withdraw``."""

    __slots__ = ("__weakref__", "_descriptor", "_folder", "_path")

    def __init__(self, home: str) -> None:
        self._folder = os.path.join(home, HOSTS)
        self._path = ""
        self._descriptor: int | None = None
        _forget_in_forks(self)

    def announce(self) -> bool:
        """Say that something may be unnoted from now on; False when the file cannot be made, and it must be noted first."""
        if self._descriptor is not None:
            return True
        with suppress(OSError):
            os.makedirs(self._folder, 0o700, exist_ok=True)
            for _ in range(ATTEMPTS):
                path = os.path.join(self._folder, f"{os.getpid()}-{os.urandom(6).hex()}")
                descriptor = try_lock(path, create=True)
                if descriptor is not None and os.fstat(descriptor).st_nlink:
                    self._path, self._descriptor = path, descriptor
                    return True
                if descriptor is not None:
                    os.close(descriptor)
        return False

    def withdraw(self, *, noted: bool) -> None:
        """Leave; where not everything could be ``noted``, the file stays for whoever looks next. Calling it again does nothing."""
        if noted and self._descriptor is not None:
            with suppress(OSError):
                os.unlink(self._path)
        self._forget()

    def _forget(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def dead_hosts(home: str) -> tuple[str, ...]:
    """Return the files of hosts that ended without having noted everything."""
    folder = os.path.join(home, HOSTS)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    return tuple(path for path in (os.path.join(folder, name) for name in names) if is_locked(path) is False)


def clear(paths: Iterable[str]) -> None:
    """Take the files of dead hosts away, once what they had not noted is noted."""
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def _forget_in_forks(presence: Presence) -> None:
    register = getattr(os, "register_at_fork", None)
    if register is None:
        return
    reference = ref(presence)

    def forget() -> None:
        # The lock belongs to the open file, which a fork shares: kept, it would hide its parent's death.
        if (presence := reference()) is not None:
            presence._forget()

    register(after_in_child=forget)
