"""A record in a few words, for lists and for people: status, age, lifetime, command, each in one line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..execution import Status

if TYPE_CHECKING:
    from ..execution import Record

__all__ = ["age_of", "colour_of", "command_of", "duration", "lifetime_of", "status_of"]

_COMMAND_LIMIT = 100
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def status_of(record: Record) -> str:
    """Return the status with what belongs to it: the exit code or signal, survivors, and how sure it is."""
    words = [record.status.value]
    if record.status is Status.EXITED:
        words.append(f"SIG{record.signal}" if record.signal is not None else str(record.exit_code))
    elif record.status is Status.UNRESOLVED and record.tree is not None and record.tree.survivors:
        words.append(f"({len(record.tree.survivors)} left)")
    elif record.status is Status.LINGERING:
        words.append(f"({len(record.lingering)} left)")
    if record.stale:
        words.append("stale")
    if record.elsewhere is not None:
        words.append(f"elsewhere: {record.elsewhere}")
    return " ".join(words)


def colour_of(record: Record) -> str:
    """Return the colour that a person expects of it."""
    if record.status in {Status.UNRESOLVED, Status.LOST, Status.FAILED, Status.DENIED, Status.TIMED_OUT}:
        return "red"
    if record.status is Status.EXITED:
        return "grey" if record.exit_code == 0 else "red"
    return "green" if record.status is Status.RUNNING else "yellow"


def lifetime_of(record: Record) -> str:
    """Return the lifetime in force, behind the one that was asked for where they differ."""
    asked, effective = record.lifetime.requested.value, record.lifetime.effective.value
    return effective if asked == effective else f"{asked}->{effective}"


def age_of(record: Record, now: datetime | None = None) -> str:
    """Return how long ago it was made."""
    return duration(((now or datetime.now(UTC)) - record.created_at).total_seconds())


def duration(seconds: float) -> str:
    """Return a duration with two digits of it that matter."""
    seconds = max(0.0, seconds)
    if seconds < 10:  # noqa: PLR2004 - one digit of seconds
        return f"{seconds:.1f} s"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} d"


def command_of(record: Record, limit: int = _COMMAND_LIMIT) -> str:
    """Return the command in one line of at most ``limit`` characters."""
    import shlex

    text = record.command if record.command is not None else shlex.join(record.argv or ())
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
