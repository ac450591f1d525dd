"""``proctor stop``: ask, force, prove, for many at once; what is left is listed, and only a proof gives exit code 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError, RequestError
from ..execution import Status
from ..runtime import Following
from .aftermath import survivor_line
from .describing import colour_of, status_of
from .driving import drive, drive_all
from .exits import SUCCESS, UNRESOLVED, code_of_error
from .printing import colour, fault, out, remark

if TYPE_CHECKING:
    from argparse import Namespace

    from ..execution import Record
    from ..runtime import LocalRuntime, Steps

__all__ = ["execute"]


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Stop what was named; return 0 when all of it is gone."""
    ids = _chosen(arguments, runtime)
    if not ids:
        remark("proctor: nothing is running there.")
        return SUCCESS
    outcomes = drive_all([_stopped(runtime, one, arguments) for one in ids])
    code = SUCCESS
    for outcome in outcomes:
        if outcome.error is not None:
            fault(outcome.error.code, outcome.error.message, outcome.error.hint)
            code = max(code, code_of_error(outcome.error.code))
        elif outcome.value is not None:
            code = max(code, _told(outcome.value[0], acted=outcome.value[1]))
    return code


def _chosen(arguments: Namespace, runtime: LocalRuntime) -> list[str]:
    ways = [bool(arguments.ids), arguments.session is not None, arguments.all]
    if sum(ways) != 1:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Name what to stop: ids, or --session S, or --all, one of them.", "See `proctor ps`.")
    if arguments.ids:
        return list(dict.fromkeys(runtime.resolve(name) for name in arguments.ids))
    if arguments.session is not None and not runtime.index.recent(1, arguments.session):
        message = f"No execution belongs to a session {arguments.session!r}."
        raise ExecutionError(ErrorCode.UNKNOWN_SESSION, message, "See the sessions in `proctor ps --all`.")
    found = drive(runtime.unfinished())
    return [record.id for record in found if record.elsewhere is None and arguments.session in {None, record.session}]


def _stopped(runtime: LocalRuntime, execution_id: str, arguments: Namespace) -> Steps[tuple[Record, bool]]:
    """Stop one execution; the flag says whether there was anything to stop."""
    known = yield from runtime.record(execution_id)
    if known.ended:
        return known, False
    live = yield from runtime.attach(execution_id)
    try:
        return (yield from Following(runtime, live).stop(by="person", reason=arguments.reason, grace_s=arguments.grace)), True
    finally:
        live.close()


def _told(record: Record, *, acted: bool = False) -> int:
    out(f"{record.id} {colour(status_of(record), colour_of(record))}{_proof(record)}")
    for line in survivor_line(record):
        out(f"  {line}")
    unproved = acted and record.tree is not None and not record.tree.proved
    return UNRESOLVED if unproved or record.status is Status.UNRESOLVED else SUCCESS


def _proof(record: Record) -> str:
    if record.tree is None:
        return ""
    if not record.tree.proved:
        return ", not proved gone"
    forced = ", had to be killed" if record.tree.escalated else ""
    return f", gone (proved: {record.tree.method}{forced})"
