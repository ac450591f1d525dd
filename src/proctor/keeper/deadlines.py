"""What may end an execution by the clock: its timeout, its idle limit, its time to live. Pure; times are of the monotonic clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data import Data
from ..execution import EndedBy

if TYPE_CHECKING:
    from ..execution import Limits

__all__ = ["Deadlines"]


class Deadlines(Data, kw_only=False, frozen=False):
    """The deadlines of one execution; ``None`` where there is none."""

    timeout_at: float | None
    ttl_at: float | None
    idle_s: float | None
    active_at: float

    @classmethod
    def of(cls, limits: Limits, started_at: float) -> Deadlines:
        """Return the deadlines counted from the start."""
        timeout_at = None if limits.timeout_s is None else started_at + limits.timeout_s
        ttl_at = None if limits.ttl_s is None else started_at + limits.ttl_s
        return cls(timeout_at, ttl_at, limits.idle_timeout_s, started_at)

    def root_ended(self) -> None:
        """Timeout and idle limit are about the root; leftovers that are kept live until their ttl or a stop."""
        self.timeout_at = self.idle_s = None

    def next_at(self) -> float | None:
        """Return the earliest deadline."""
        idle_at = None if self.idle_s is None else self.active_at + self.idle_s
        return min((moment for moment in (self.timeout_at, self.ttl_at, idle_at) if moment is not None), default=None)

    def passed(self, now: float) -> tuple[EndedBy, str] | None:
        """Return the cause and the reason of the first deadline that has passed."""
        if self.timeout_at is not None and now >= self.timeout_at:
            return EndedBy.TIMEOUT, "the time limit was reached"
        if self.idle_s is not None and now >= self.active_at + self.idle_s:
            return EndedBy.IDLE_TIMEOUT, f"no output for {self.idle_s:g} s"
        if self.ttl_at is not None and now >= self.ttl_at:
            return EndedBy.TTL, "its time to live is over"
        return None
