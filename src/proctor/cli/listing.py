"""``proctor ps``: the executions that have not ended, each looked at now; with ``--all`` the history too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..execution import record_to_json
from .describing import age_of, colour_of, command_of, lifetime_of, status_of
from .driving import drive, drive_all
from .printing import object_out, out, remark, rows
from .showing import look

if TYPE_CHECKING:
    from argparse import Namespace

    from ..execution import Record
    from ..runtime import LocalRuntime

__all__ = ["execute"]

ASKED_AT_MOST = 64
_HEADER = ("ID", "STATUS", "AGE", "LIFETIME", "SESSION", "PID", "COMMAND")


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Print the list."""
    found = drive(runtime.unfinished())
    records = _asked(runtime, [record for record in found if arguments.session in {None, record.session}])
    if arguments.all:
        records = _with_history(runtime, records, arguments)
    for notice in runtime.index.notices:
        remark(f"proctor: {notice}")
    if arguments.json:
        object_out([record_to_json(record) for record in records])
    elif records:
        out(rows(_HEADER, map(_line, records), colours=[colour_of(record) for record in records]))
    elif not arguments.all:
        remark("proctor: nothing is running; `proctor ps --all` shows what has ended.")
    return 0


def _asked(runtime: LocalRuntime, records: list[Record]) -> list[Record]:
    """Return what each keeper says itself; of very many, what their journals say: a list must not take longer the more there is."""
    if len(records) > ASKED_AT_MOST:
        return records
    outcomes = drive_all([look(runtime, record.id) for record in records])
    found = [outcome.value or known for outcome, known in zip(outcomes, records, strict=True)]
    return [record for record in found if not record.ended]


def _with_history(runtime: LocalRuntime, unfinished: list[Record], arguments: Namespace) -> list[Record]:
    runtime.save()
    recent = runtime.index.recent(arguments.limit + 1, arguments.session)
    if len(recent) > arguments.limit:
        remark(f"proctor: only the newest {arguments.limit} are shown; --limit N shows more.")
    known = {record.id: record for record in recent[: arguments.limit]}
    known.update({record.id: record for record in unfinished})
    return sorted(known.values(), key=lambda record: record.id, reverse=True)


def _line(record: Record) -> tuple[str, ...]:
    pid = "" if record.pid is None else str(record.pid)
    return (record.id, status_of(record), age_of(record), lifetime_of(record), record.session or "-", pid or "-", command_of(record))
