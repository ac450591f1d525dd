"""``proctor gc``: remove ended executions that are old, then the oldest ones until the rest fits; ``--dry-run`` only says which."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from ..errors import ErrorCode, RequestError
from ..store import collect
from .configuring import settings_here
from .exits import PROCTOR_FAILED, SUCCESS
from .printing import out, remark

if TYPE_CHECKING:
    from argparse import Namespace

    from ..runtime import LocalRuntime

__all__ = ["execute"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "": 86_400.0}
_MEGABYTE = 1_000_000


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Collect, and say what went."""
    settings = settings_here().settings
    older_than_s = settings.gc_older_than_s if arguments.older is None else seconds_of(arguments.older)
    report = collect(
        runtime.home,
        runtime.index,
        time.time(),
        older_than_s=older_than_s,
        max_bytes=settings.gc_max_bytes,
        dry_run=arguments.dry_run,
    )
    for name in report.removed:
        out(name)
    for line in report.skipped:
        remark(f"proctor: not removed: {line}")
    verb = "would be removed" if arguments.dry_run else "removed"
    remark(f"proctor: {len(report.removed)} {verb} ({report.freed_bytes / _MEGABYTE:.1f} MB), {report.kept} kept.")
    return PROCTOR_FAILED if report.skipped else SUCCESS


def seconds_of(text: str) -> float:
    """Return a duration in seconds: a number with s, m, h, d or w; without one it is days. Raises ``invalid_request``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
    if match is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"--older {text!r} is no duration.", "Write 12h, 30d, or a number of days.")
    return float(match[1]) * _UNITS[match[2]]
