"""``proctor logs``: kept output by absolute offset, the last lines, what matches, or all that still comes.

Bytes for programs, cleaned text for a terminal unless ``--raw``; what is not kept any more is told with its exact amount on standard error.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError, OutputError, RequestError
from ..execution import Status
from ..output import SpoolReader, search, wording
from ..runtime import Wait
from ..store import RunFolder
from .driving import also_writing, drive
from .exits import SUCCESS, code_of_signal
from .outlet import Outlet
from .printing import remark
from .relay import STDERR, STDOUT, Relay
from .signals import Signals

if TYPE_CHECKING:
    from argparse import Namespace

    from ..runtime import Live, LocalRuntime, Steps

__all__ = ["execute"]

_STREAMS = {"stdout": STDOUT, "stderr": STDERR, None: None}
_MATCHES = 10_000
_WINDOW_BYTES = 1 << 16


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Print the output."""
    execution_id = runtime.resolve(arguments.id)
    _check(arguments)
    if arguments.follow:
        return _follow(arguments, runtime, execution_id)
    folder = _folder_of(runtime, execution_id)
    try:
        record = drive(runtime.record(execution_id))
        reader = SpoolReader(folder.descriptor, live=not record.ended or record.output.bytes == 0)
        if arguments.grep is not None:
            return _print_matches(reader, arguments)
        begin = _begin(reader, arguments)
        end = reader.total_bytes()
        _tell_gap(reader, begin, end, execution_id)
        relay = _relay(reader, arguments, split=record.streams == "split")
        relay.start_at(begin)
        drive(_copied(relay, end))
        relay.finish(None)
        drive(_copied(relay, end))
        return SUCCESS
    finally:
        folder.close()


def _check(arguments: Namespace) -> None:
    if arguments.follow and arguments.grep is not None:
        message = "-f and --grep exclude each other."
        raise RequestError(ErrorCode.INVALID_REQUEST, message, "Pipe it: proctor logs -f ID | grep --line-buffered RE")
    if arguments.since is not None and arguments.tail is not None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "--since and --tail exclude each other.", "Leave out one of them.")


def _folder_of(runtime: LocalRuntime, execution_id: str) -> RunFolder:
    try:
        return RunFolder.open(runtime.home, execution_id)
    except ExecutionError:
        if runtime.index.get(execution_id) is None:
            raise
        message = f"The run folder of execution {execution_id} was removed, its output with it."
        hint = f"`proctor show {execution_id}` still tells how it ended."
        raise OutputError(ErrorCode.OUTPUT_MISSING, message, hint) from None


def _relay(reader: SpoolReader, arguments: Namespace, *, split: bool) -> Relay:
    outlet = Outlet(sys.stdout.fileno() if sys.stdout is not None else STDOUT)
    outlet.terminal = outlet.terminal and not arguments.raw
    return Relay(reader, {STDOUT: outlet, STDERR: outlet}, split=split, stream=_STREAMS[arguments.stream])


def _copied(relay: Relay, end: int, signals: Signals | None = None) -> Steps[None]:
    while not relay.copy(end) and not (signals is not None and signals.received):
        yield Wait(writing=relay.blocked)


def _begin(reader: SpoolReader, arguments: Namespace) -> int:
    if arguments.tail is not None:
        return _start_of_last_lines(reader, arguments.tail, _STREAMS[arguments.stream])
    return int(arguments.since or 0)


def _start_of_last_lines(reader: SpoolReader, count: int, stream: int | None) -> int:
    """Return the offset at which the last ``count`` lines begin; a newline at the very end ends the last one."""
    end = position = reader.total_bytes()
    if count == 0:
        return end
    kept = reader.kept()
    seen = -1 if _ends_with_newline(reader, stream) else 0
    while position > 0 and kept:
        begin = max(0, position - _WINDOW_BYTES)
        newlines = [
            offset + match.start()
            for offset, data in reader.pieces(begin, stream=stream)
            if offset < position
            for match in re.finditer(b"\n", data[: position - offset])
        ]
        if seen + len(newlines) >= count:
            return newlines[len(newlines) - (count - seen)] + 1
        seen += len(newlines)
        position = begin
    return 0


def _ends_with_newline(reader: SpoolReader, stream: int | None) -> bool:
    return reader.tail(1, stream=stream).data == b"\n"


def _tell_gap(reader: SpoolReader, begin: int, end: int, execution_id: str) -> None:
    kept = sum(max(0, min(part.end, end) - max(part.start, begin)) for part in reader.kept())
    lost = max(0, end - begin) - kept
    if lost:
        remark(wording.bytes_omitted(lost, f"proctor logs {execution_id}", lost=lost))


def _print_matches(reader: SpoolReader, arguments: Namespace) -> int:
    try:
        pattern = re.compile(arguments.grep.encode("utf-8", "surrogateescape"))
    except re.error as error:
        message = f"--grep {arguments.grep!r} is no regular expression: {error}."
        raise RequestError(ErrorCode.INVALID_REQUEST, message, "Put a backslash before what is meant literally.") from error
    found = search(reader, pattern, stream=_STREAMS[arguments.stream], limit=_MATCHES)
    begin = arguments.since or 0
    for match in found:
        if match.offset >= begin:
            sys.stdout.buffer.write(match.line + b"\n")
    sys.stdout.buffer.flush()
    if len(found) == _MATCHES:
        remark(f"proctor: only the first {_MATCHES} matches are shown.")
    return SUCCESS if found else 1


def _follow(arguments: Namespace, runtime: LocalRuntime, execution_id: str) -> int:
    live = drive(runtime.attach(execution_id, output=True))
    try:
        reader = SpoolReader(live.folder.descriptor, live=not live.record.ended or live.record.output.bytes == 0)
        relay = _relay(reader, arguments, split=live.record.streams == "split")
        relay.start_at(_begin(reader, arguments))
        _tell_gap(reader, relay.position, reader.total_bytes(), execution_id)
        with Signals() as signals:
            drive(_followed(live, reader, relay, signals), signals)
            return code_of_signal(signals.received[0]) if signals.received else SUCCESS
    finally:
        live.close()


def _followed(live: Live, reader: SpoolReader, relay: Relay, signals: Signals) -> Steps[None]:
    def something_to_do() -> bool:
        return live.record.ended or bool(signals.received) or relay.behind(live.total_bytes)

    before = relay.gap_bytes
    while not _is_over(live) and not signals.received:
        relay.copy(live.total_bytes)
        yield from also_writing(live.advance_until(something_to_do), relay.blocked)
    end = reader.total_bytes()
    yield from _copied(relay, end, signals)
    relay.finish(live.memory_tail)
    yield from _copied(relay, end, signals)
    if relay.gap_bytes > before:
        remark(wording.bytes_omitted(relay.gap_bytes, f"proctor logs {live.record.id}", lost=relay.gap_bytes))


def _is_over(live: Live) -> bool:
    return live.record.ended or (live.record.status is Status.UNRESOLVED and not live.folder.keeper_alive())
