"""What bounds one execution, and how a value above its maximum is clamped in the open.

Every figure is either a number or ``None`` for "no such limit"; nothing is clamped silently (``clamped`` says which and from what).
"""

from __future__ import annotations

from typing import ClassVar

from ..data import Data, changed
from .codec import texts

__all__ = ["DEFAULT_GRACE_S", "MAXIMUM_TIMEOUT_S", "Limits", "clamp"]

DEFAULT_GRACE_S = 3.0
MAXIMUM_TIMEOUT_S = 86_400.0
HEAD_BYTES = 8 << 20
TAIL_BYTES = 56 << 20


class Limits(Data):
    """Limits of one execution; seconds are of the monotonic clock, sizes are bytes."""

    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    output_bytes: int | None = None
    ttl_s: float | None = None
    grace_s: float = DEFAULT_GRACE_S
    kept_head_bytes: int = HEAD_BYTES
    kept_tail_bytes: int = TAIL_BYTES
    clamped: tuple[str, ...] = ()

    CONVERTERS: ClassVar = {"clamped": texts}


def clamp(limits: Limits, *, maximum_timeout_s: float) -> Limits:
    """Return ``limits`` with the timeout brought down to its maximum, the change written into ``clamped``."""
    if limits.timeout_s is None or limits.timeout_s <= maximum_timeout_s:
        return limits
    note = f"timeout_s: {limits.timeout_s:g} -> {maximum_timeout_s:g}"
    return changed(limits, timeout_s=maximum_timeout_s, clamped=(*limits.clamped, note))
