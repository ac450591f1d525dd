"""What a person is told on standard error after a run that did not simply succeed, in the fixed sentences of ``output.wording``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..execution import EndedBy, OnLinger, Status
from ..output import wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..execution import Record

__all__ = ["lines_after", "survivor_line"]

_NOT_FOUND = 127  # what a shell answers when it finds no such command
_TIMEOUTS = frozenset({EndedBy.TIMEOUT, EndedBy.IDLE_TIMEOUT})


def lines_after(record: Record, *, gap_bytes: int = 0) -> list[str]:
    """Return the lines; none after a command that ended with code 0 and left nothing."""
    lines = [*_ending(record), *_left(record)]
    if gap_bytes:
        lines.append(wording.bytes_omitted(gap_bytes, f"proctor logs {record.id}", lost=gap_bytes))
    if record.output.incomplete is not None:
        lines.append(
            f"proctor: the output could not all be kept ({record.output.incomplete}): {record.output.dropped_bytes} bytes are gone."
        )
    lines.extend(f"proctor: above the maximum, so it was lowered: {note}." for note in record.limits.clamped)
    if record.exit_code == _NOT_FOUND and record.login:
        lines.append("proctor: a login shell reads your profile, which may have changed PATH; --no-login keeps the PATH you have here.")
    plain = record.status is Status.EXITED and record.exit_code == 0 and not lines
    lines.extend(notice for notice in record.notices if notice.startswith("[") or not plain)
    return lines


def survivor_line(record: Record) -> list[str]:
    """Return a line for each process that a stop did not end, or whose end is not proved."""
    survivors = record.tree.survivors if record.tree is not None else ()
    return [wording.left_running(member.pid, member.command) + (f" ({member.reason})" if member.reason else "") for member in survivors]


def _ending(record: Record) -> Iterator[str]:
    if record.ended_by is EndedBy.TIMEOUT:
        yield wording.timed_out(record.limits.timeout_s or 0)
    elif record.ended_by is EndedBy.IDLE_TIMEOUT:
        yield wording.timed_out(record.limits.idle_timeout_s or 0)
    elif record.ended_by is EndedBy.OUTPUT_LIMIT:
        yield wording.output_ended(record.limits.output_bytes or 0)
    elif record.status in {Status.LOST, Status.UNRESOLVED}:
        yield f"proctor: the ending is {record.status}: see `proctor show {record.id}`."
    elif record.stop is not None and record.ended_by not in _TIMEOUTS:
        yield wording.stopped_by(record.stop.by, record.stop.reason)
    elif record.signal is not None:
        yield wording.signal(f"SIG{record.signal}")


def _left(record: Record) -> Iterator[str]:
    if not record.ended:
        members = record.tree.survivors if record.status is Status.UNRESOLVED and record.tree is not None else record.lingering
        for member in members:
            yield wording.left_running(member.pid, member.command)
        yield wording.still_running(record.id)
    elif record.lingering and record.stop is None and record.on_linger is OnLinger.STOP:
        names = ", ".join(f"{member.pid} {member.command}" for member in record.lingering)
        yield f"proctor: stopped what the command left: {names} (--on-linger keep leaves it running)."
