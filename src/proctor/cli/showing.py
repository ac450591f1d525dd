"""``proctor show``: everything that is known about one execution, asked of its keeper where it has one, with the view of its output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError, KeeperError
from ..execution import changed, record_to_json, render_time
from .aftermath import lines_after
from .describing import colour_of, command_of, duration, lifetime_of, status_of
from .driving import drive
from .printing import colour, object_out, out

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from ..execution import Record
    from ..runtime import LocalRuntime, Steps

__all__ = ["execute", "look"]


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Print what is known."""
    record = runtime.view(drive(look(runtime, runtime.resolve(arguments.id))))
    if arguments.json:
        object_out(record_to_json(record))
    else:
        out("\n".join(_lines(record)))
    return 0


def look(runtime: LocalRuntime, execution_id: str) -> Steps[Record]:
    """Return the record as it stands now, by the keeper's word where there is one."""
    record = yield from runtime.record(execution_id)
    if record.ended or record.elsewhere is not None:
        return record
    try:
        live = yield from runtime.attach(execution_id)
    except ExecutionError as error:
        if error.code is not ErrorCode.UNKNOWN_EXECUTION:
            raise
        return record
    except KeeperError:
        return changed(record, stale=True)
    try:
        return live.record
    finally:
        live.close()


def _lines(record: Record) -> Iterator[str]:
    yield f"execution  {record.id}"
    yield f"command    {command_of(record, 1000)}"
    yield f"status     {colour(status_of(record), colour_of(record))}" + (f" (ended by {record.ended_by})" if record.ended_by else "")
    yield f"lifetime   {lifetime_of(record)}" + (f", session {record.session}" if record.session else "")
    yield f"cwd        {record.cwd}"
    yield f"shell      {record.dialect}{' (login)' if record.login else ''}"
    yield f"created    {render_time(record.created_at)}" + ("" if record.duration_s is None else f", ran {duration(record.duration_s)}")
    if record.pid is not None:
        yield f"process    {record.pid}, keeper {record.keeper_pid}" + ("" if record.second_net else ", no second net")
    yield from _proof(record)
    yield f"output     {record.output.bytes} bytes, {record.output.dropped_bytes} not kept" + _encoding(record)
    if record.error is not None:
        yield f"error      {record.error.message} {record.error.hint} [{record.error.code}]"
    for line in lines_after(record) if record.ended or record.lingering else record.notices:
        yield f"           {line}"
    if record.output.text:
        yield ""
        yield record.output.text.rstrip("\n")


def _proof(record: Record) -> Iterator[str]:
    tree = record.tree
    if tree is None:
        return
    how = f"every process is gone, proved by {tree.method}" if tree.proved else "not proved gone"
    signals = f"; signals: {', '.join(tree.signals)} in {tree.took_ms:.0f} ms" if tree.signals else ""
    yield f"tree       {how}{signals}"


def _encoding(record: Record) -> str:
    if record.output.binary:
        return ", binary (read it with proctor logs --raw)"
    return f", {record.output.encoding}" if record.output.encoding else ""
