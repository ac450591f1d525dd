"""One line of ``proctor doctor``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was measured, and whether that is as proctor needs it; ``ok`` is ``None`` for a plain fact."""

    name: str
    ok: bool | None
    measured: str
