"""How a stop escalates: ask, wait, force, prove or admit. Pure: the clock and what is known come in, the next step comes out.

ask (TERM, CONT) ──grace──► force (KILL rounds) ──5 s──► unresolved (KILL once a second, for as long as the keeper lives)
      └───────── tree empty at any point: proved ─────────┘
"""

from __future__ import annotations

from enum import Enum

from ..data import Data, changed

__all__ = ["FORCE_LIMIT_S", "StopPlan", "StopStep", "next_step"]

FORCE_LIMIT_S = 5.0  # DESIGN section 5: after this much KILL the survivors are named
ROUND_PAUSE_S = 0.002  # between KILL rounds in which nothing could be reaped; SIGCHLD cuts it short
UNRESOLVED_PAUSE_S = 1.0  # a process in uninterruptible sleep answers when its device does, not sooner


class StopStep(Enum):
    """What the keeper does now."""

    ASK = "ask"
    WAIT = "wait"
    FORCE = "force"
    ADMIT = "admit"
    PROVED = "proved"


class StopPlan(Data):
    """Where a stop stands; times are of the monotonic clock, in seconds."""

    grace_s: float
    asked_at: float | None = None
    forced_at: float | None = None
    admitted: bool = False
    next_round_at: float = 0.0

    def within(self, now: float, grace_s: float) -> StopPlan:
        """Return the plan after a second stop: it joins the first, and can only shorten the polite phase."""
        already_s = 0.0 if self.asked_at is None else now - self.asked_at
        return changed(self, grace_s=min(self.grace_s, already_s + grace_s))


def next_step(plan: StopPlan, *, now: float, empty: bool) -> tuple[StopStep, StopPlan, float]:
    """Return the step to take, the plan after it, and the time at which to ask again at the latest."""
    if empty:
        return StopStep.PROVED, plan, now
    if plan.asked_at is None:
        asked = changed(plan, asked_at=now)
        return StopStep.ASK, asked, now + plan.grace_s
    if now < plan.asked_at + plan.grace_s:
        return StopStep.WAIT, plan, plan.asked_at + plan.grace_s
    if now < plan.next_round_at:
        return StopStep.WAIT, plan, plan.next_round_at
    return _forced(plan, now)


def _forced(plan: StopPlan, now: float) -> tuple[StopStep, StopPlan, float]:
    forced_at = now if plan.forced_at is None else plan.forced_at
    if not plan.admitted and now >= forced_at + FORCE_LIMIT_S:
        return StopStep.ADMIT, changed(plan, admitted=True), now
    again = now + (UNRESOLVED_PAUSE_S if plan.admitted else ROUND_PAUSE_S)
    return StopStep.FORCE, changed(plan, forced_at=forced_at, next_round_at=again), again
