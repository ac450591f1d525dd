"""The closed table of DESIGN section 2 for an execution whose ending nobody has read yet. Pure: facts in, verdict out."""

from __future__ import annotations

from enum import Enum

from ..data import Data
from .states import ENDINGS, Lifetime, Status

__all__ = ["Facts", "Verdict", "judge"]


class Verdict(Enum):
    """What a host that finds the record does with it."""

    ELSEWHERE = "elsewhere"
    ENDED = "ended"
    ASK_KEEPER = "ask_keeper"
    REBOOTED = "rebooted"
    NEVER_STARTED = "never_started"
    LOST = "lost"
    STOP_SURVIVORS = "stop_survivors"
    LEAVE_SURVIVORS = "leave_survivors"


class Facts(Data):
    """What can be known from outside: the journal's status, the lock, the machine, and members found alive."""

    status: Status
    same_machine: bool
    same_boot: bool
    same_pid_namespace: bool
    keeper_alive: bool
    keeper_seen: bool
    members: int
    lifetime: Lifetime


def judge(facts: Facts) -> Verdict:  # noqa: PLR0911 - the rows of the table, in their order
    """Return the verdict of the first row that applies."""
    if facts.status in ENDINGS:
        return Verdict.ENDED
    if not facts.same_machine:
        return Verdict.ELSEWHERE
    if not facts.same_boot:
        return Verdict.REBOOTED
    if not facts.same_pid_namespace:
        return Verdict.ELSEWHERE
    if facts.keeper_alive:
        return Verdict.ASK_KEEPER
    if facts.members:
        owned = facts.lifetime in {Lifetime.CALL, Lifetime.HOST}
        return Verdict.STOP_SURVIVORS if owned else Verdict.LEAVE_SURVIVORS
    if facts.status is Status.CREATED and not facts.keeper_seen:
        return Verdict.NEVER_STARTED
    return Verdict.LOST
