"""One line of ``proctor doctor``."""

from __future__ import annotations

from ..data import Data

__all__ = ["Finding"]


class Finding(Data, kw_only=False):
    """What was looked at, what was measured, and whether that is as proctor needs it; ``ok`` is ``None`` for a plain fact."""

    name: str
    ok: bool | None
    measured: str
