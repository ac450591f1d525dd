"""``proctor wait``: until executions end, or until a text, a port, a file or a silence; the limit passing stops nothing.

A port counts when a process of the execution's own tree listens on it, by its keeper's word: another server on that port is no answer.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from ..data import Data
from ..errors import ErrorCode, ExecutionError, KeeperError, RequestError
from ..execution import Status
from ..output import SpoolReader
from .describing import status_of
from .driving import drive_all
from .exits import CONDITION_FAILED, SUCCESS, UNRESOLVED, code_of_error, code_of_signal
from .printing import fault, out, remark
from .progress import Progress
from .signals import Signals

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from ..execution import Record
    from ..runtime import Live, LocalRuntime, Steps

__all__ = ["execute"]

LOOK_S = 0.05  # neither a file nor a listening port comes with an event
BUFFER_BYTES = 1 << 16  # of an unfinished line that a text is looked for in
_READ_BYTES = 1 << 20


class _Waited(Data, kw_only=False):
    """How a wait ended: the record then, and whether what was waited for had happened."""

    record: Record
    happened: bool


class _GivenUpError(ExecutionError):
    """A person gave up waiting; nothing was stopped."""


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Wait; return 0 when it happened, 124 when the limit passed, 1 when an execution ended before it could happen."""
    ids = list(dict.fromkeys(runtime.resolve(name) for name in arguments.ids))
    condition = _condition(arguments.condition)
    until = None if arguments.timeout is None else time.monotonic() + arguments.timeout
    with Signals() as signals:
        progress = Progress(lambda: "waiting; Ctrl-C stops waiting, and nothing else")
        works = [_Wait(runtime, one, condition, until, signals).run() for one in ids]
        outcomes = drive_all(works, signals, first_only=arguments.any, look=progress.look)
        progress.clear()
        if signals.received:
            return code_of_signal(signals.received[0])
    code = SUCCESS
    for outcome in outcomes:
        if outcome.error is not None:
            fault(outcome.error.code, outcome.error.message, outcome.error.hint)
            code = max(code, code_of_error(outcome.error.code))
        elif outcome.value is not None:
            code = max(code, _told(outcome.value, waited_for=arguments.condition))
    return code


def _told(waited: _Waited, *, waited_for: str | None) -> int:
    record = waited.record
    out(f"{record.id} {status_of(record)}")
    if waited.happened:
        return SUCCESS
    if waited_for is None:
        return UNRESOLVED
    remark(f"proctor: {record.id} ended before {waited_for} happened.")
    return CONDITION_FAILED


class _Wait:
    """One execution that is waited for."""

    def __init__(
        self, runtime: LocalRuntime, execution_id: str, condition: tuple[str, str] | None, until: float | None, signals: Signals
    ) -> None:
        self._runtime = runtime
        self._id = execution_id
        self._condition = condition
        self._until = until
        self._signals = signals

    def run(self) -> Steps[_Waited]:
        """Wait for it; raises ``wait_timeout``."""
        known = yield from self._runtime.record(self._id)
        if known.ended and self._condition is None:
            return _Waited(known, happened=True)
        live = yield from self._runtime.attach(self._id, output=self._condition is not None)
        try:
            return (yield from self._followed(live))
        finally:
            live.close()

    def _followed(self, live: Live) -> Steps[_Waited]:
        look = _Look(live, self._condition) if self._condition is not None else None
        while True:
            if look is not None and (yield from look.happened()):
                return _Waited(live.record, happened=True)
            if _is_over(live):
                return _Waited(live.record, happened=look is None and live.record.ended)
            if self._signals.received:
                raise _GivenUpError(ErrorCode.WAIT_TIMEOUT, "The waiting was given up; nothing was stopped.")
            now = time.monotonic()
            if self._until is not None and now >= self._until:
                raise ExecutionError(
                    ErrorCode.WAIT_TIMEOUT,
                    f"Execution {live.record.id} was waited for until the limit passed; nothing was stopped.",
                    "Wait again, or stop it with `proctor stop`.",
                )
            moments = [moment for moment in (self._until, now + (1.0 if look is None else LOOK_S)) if moment is not None]
            yield from live.advance_until(lambda: _is_over(live) or bool(self._signals.received), min(moments))


def _is_over(live: Live) -> bool:
    return live.record.ended or (live.record.status is Status.UNRESOLVED and not live.folder.keeper_alive())


class _Look:
    """One condition of ``--for``, looked at again and again."""

    def __init__(self, live: Live, condition: tuple[str, str]) -> None:
        self._live = live
        self._kind, self._value = condition
        self._reader = SpoolReader(live.folder.descriptor, live=True)
        self._position = 0
        self._line = b""
        self._total = -1
        self._changed_at = time.monotonic()
        self._pattern = re.compile(self._value.encode("utf-8", "surrogateescape")) if self._kind == "text" else None

    def happened(self) -> Steps[bool]:
        """Tell whether it is so now."""
        match self._kind:
            case "text":
                return self._text()
            case "port":
                return (yield from self._port(int(self._value)))
            case "file":
                return os.path.exists(self._value)
        return self._idle(float(self._value))

    def _text(self) -> bool:
        while True:
            chunk = self._reader.read_since(self._position, limit=_READ_BYTES)
            if chunk.next_offset == self._position or self._pattern is None:
                return False
            self._position = chunk.next_offset
            text = (b"" if chunk.gap_bytes else self._line) + chunk.data
            if self._pattern.search(text):
                return True
            self._line = text[text.rfind(b"\n") + 1 :][-BUFFER_BYTES:]

    def _port(self, port: int) -> Steps[bool]:
        if self._live.record.ended:
            return False
        try:
            members = yield from self._live.ask_members()
        except (KeeperError, ExecutionError):
            return False  # it is ending just now, or silent; the wait goes on and finds out
        return any(port in member.listening for member in members)

    def _idle(self, seconds: float) -> bool:
        total = self._reader.total_bytes()
        now = time.monotonic()
        if total != self._total:
            self._total, self._changed_at = total, now
        return now - self._changed_at >= seconds


def _condition(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    kind, _, value = text.partition("=")
    try:
        valid = bool(value) and _CHECKS[kind](value)
    except (KeyError, ValueError, re.error):
        valid = False
    if not valid:
        message = f"--for {text!r} is not understood."
        hint = "Use text=RE, port=N, file=P or idle=S, RE being a regular expression and S seconds."
        raise RequestError(ErrorCode.INVALID_REQUEST, message, hint)
    return kind, value


_CHECKS: dict[str, Callable[[str], bool]] = {
    "text": lambda value: re.compile(value) is not None,
    "port": lambda value: 0 < int(value) < 1 << 16,
    "file": bool,
    "idle": lambda value: 0 < float(value) < float("inf"),
}
