"""Ending the trees of keepers that died: ask, force, prove, and write the ending that the keeper no longer can.

The zygote inherits every orphan of a dead keeper. Nothing is left of them once the zygote has no child but its living keepers: its own list
of children is exact while it reaps nothing, since only its own wait shortens it.
"""

from __future__ import annotations

import fcntl
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..errors import TransitionError
from ..execution import EndedBy, Lost, ProofMethod, Spec, StopPlan, StopStep, Tree, Unresolved, decode, next_step, replay
from ..execution.layout import LOCK, SPEC
from .sealing import JournalWriter, read_journal_at
from .timing import OWNER_GONE_GRACE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..execution import Event
    from ..process import ProcessBackend

__all__ = ["Burial"]


class Burial:
    """The end of everything that dead keepers left to their zygote."""

    def __init__(self, backend: ProcessBackend, reach: Callable[[str], None]) -> None:
        self._backend = backend
        self._reach = reach
        self._plan = StopPlan(grace_s=OWNER_GONE_GRACE_S)
        self._due_at = 0.0
        self._signals: list[str] = []
        self._folders: dict[str, str] = {}

    def add(self, execution_id: str, folder: str) -> None:
        """Take on one more dead keeper."""
        self._folders[execution_id] = folder
        self._due_at = 0.0

    def patience(self, now: float) -> float:
        """Return how long nothing is due."""
        return max(0.0, self._due_at - now)

    def advance(self, now: float, *, spared: Collection[int]) -> bool:
        """Take the next step; return whether everything is gone and written down. The caller has reaped just before."""
        empty = not self._backend.strays(spared)
        if not empty and now < self._due_at:
            return False
        step, self._plan, self._due_at = next_step(self._plan, now=now, empty=empty)
        match step:
            case StopStep.ASK:
                self._signals.append("TERM")
                self._backend.ask(None, spared)
                self._reach("zygote_termed")
            case StopStep.FORCE:
                self._signals.extend(["KILL"] if "KILL" not in self._signals else [])
                self._backend.force(spared)
            case StopStep.ADMIT:
                survivors = self._backend.members((), spared)
                self._write(Unresolved(at=_now(), tree=Tree(proved=False, method=ProofMethod.NONE, survivors=survivors, escalated=True)))
            case StopStep.PROVED:
                self._reach("zygote_proved")
                signals = tuple(self._signals)
                tree = Tree(proved=True, method=self._backend.proof, escalated="KILL" in signals, signals=signals)
                self._write(Lost(at=_now(), ended_by=EndedBy.KEEPER_LOST, tree=tree))
            case StopStep.WAIT:
                pass
        return step is StopStep.PROVED

    def _write(self, event: Event) -> None:
        for folder in self._folders.values():
            try:
                append_if_open(folder, event)
            except (OSError, ValueError, TypeError, TransitionError):
                continue  # the folder is gone or damaged: whoever reads it next will say so


def append_if_open(folder: str, event: Event) -> bool:
    """Append ``event`` to a run folder without a keeper, unless an ending is there already; returns whether it was written.

    The keeper's lock is only shared here, so that nobody who looks meanwhile takes the writer for a keeper; writers keep each other out by
    a lock on the journal. Raises ``BlockingIOError`` when a keeper lives or another writer is at it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    lock = -1
    journal = JournalWriter(descriptor)
    try:
        lock = os.open(LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=descriptor)
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        journal.claim()
        content = read_journal_at(descriptor)
        with open(os.open(SPEC, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=descriptor), "rb") as file:
            spec = decode(Spec, _json(file.read()))
        if replay(spec, content.events).ended:
            return False
        journal.resume(content)
        journal.add(event)
        return journal.flush()
    finally:
        journal.close()
        if lock >= 0:
            os.close(lock)
        os.close(descriptor)


def _json(data: bytes) -> dict[str, object]:
    import json

    value = json.loads(data)
    if not isinstance(value, dict):
        msg = "not a JSON object"
        raise TypeError(msg)
    return value


def _now() -> datetime:
    return datetime.now(UTC)
