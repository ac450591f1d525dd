"""``proctor run``: one command to its proved ending, its output as it comes, its exit code passed on.

The first INT, TERM or HUP asks the tree to end with grace, the next one goes to KILL; this process stays until the end is proved, or is
known not to be. A reader of the output that goes away stops the command.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import ExecutionError, KeeperError, StoreError
from ..execution import Status, record_to_json
from ..output import SpoolReader
from ..runtime import Abandoned, Following, Wait
from .aftermath import lines_after
from .asking import request_of
from .configuring import settings_of_run
from .driving import abandonable, also_writing, drive
from .exits import BROKEN_PIPE, PROCTOR_FAILED, code_of_error, code_of_record, code_of_signal
from .outlet import Outlet
from .printing import fault, object_out, out, remark
from .progress import Progress
from .relay import STDERR, STDOUT, Relay
from .signals import Signals

if TYPE_CHECKING:
    from argparse import Namespace

    from ..execution import Record
    from ..runtime import Live, LocalRuntime, Request, Steps

__all__ = ["execute"]

TELL_BYTES = 1 << 20  # a message for each of these; the keeper waits at half of what it keeps, 28 MiB
UNREAD_PATIENCE_S = 2.0  # how long an interrupted run waits for a reader of its output that takes nothing
_SIGNAL_NAMES = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Run the command; return the exit code."""
    resolved = settings_of_run(arguments)
    request = request_of(arguments, resolved, live_output=not (arguments.json or arguments.background))
    runtime.configure(resolved.settings)
    with Signals() as signals:
        try:
            live = drive(abandonable(runtime.start(request), signals, by="person", reason=_reason(signals)), signals)
        except Abandoned:
            return code_of_signal(signals.received[0])
        if arguments.background:
            return _announce(live, as_json=arguments.json)
        run = _Run(runtime, live, signals, relay=None if arguments.json else _relay(live, request))
        try:
            drive(run.follow(), signals)
            code = run.report(as_json=arguments.json)
            _note_in_index(runtime)
            return code
        finally:
            live.close()


def _note_in_index(runtime: LocalRuntime) -> None:
    """Write the row; the command has ended as it has, and an index that cannot take it changes nothing about its exit code."""
    try:
        runtime.save()
    except StoreError as error:
        fault(error.code, error.message, f"The run folder has the record. {error.hint}")


def _announce(live: Live, *, as_json: bool) -> int:
    record = live.record
    live.close()
    if record.status is Status.FAILED and not as_json:
        return _failed(record)
    if as_json:
        object_out(record_to_json(record))
    else:
        out(record.id)
    return code_of_record(record) if record.ended and record.started_at is None else 0  # how a started one ends is `proctor wait`'s to tell


def _failed(record: Record) -> int:
    if record.error is None:
        return PROCTOR_FAILED
    fault(record.error.code, record.error.message, record.error.hint)
    return code_of_error(record.error.code)


def _relay(live: Live, request: Request) -> Relay:
    reader = SpoolReader(live.folder.descriptor, live=True)
    outlets = {STDOUT: Outlet(sys.__stdout__.fileno() if sys.__stdout__ else 1), STDERR: Outlet(2)}
    return Relay(reader, outlets, split=request.streams == "split", encoding=request.encoding)


def _reason(signals: Signals) -> str:
    names = [_SIGNAL_NAMES.get(signal.Signals(number), str(number)) for number in signals.received]
    return f"proctor run received {names[0]}" if names else "proctor run was interrupted"


class _Run:
    """One foreground run: follows the execution, copies its output, and turns signals into stops."""

    def __init__(self, runtime: LocalRuntime, live: Live, signals: Signals, *, relay: Relay | None) -> None:
        self._runtime = runtime
        self._live = live
        self._signals = signals
        self._relay = relay
        self._progress = Progress(self._phase)
        self._handled = 0
        self._told_bytes = 0
        self._write_error: OSError | None = None
        self._stop_wanted: str | None = None
        if relay is not None:
            relay.before_write = self._progress.clear

    def follow(self) -> Steps[None]:
        """Follow to the result, and until everything that was written before it is passed on."""
        live = self._live
        while not live.settled:
            self._copy(live.total_bytes)
            yield from self._tell_passed()
            yield from self._react()
            blocked = None if self._relay is None else self._relay.blocked
            yield from also_writing(live.advance_until(self._something_to_do, self._progress.next_at()), blocked)
            self._progress.look()
        self._runtime.remember(live.record)
        yield from self._pass_on_the_rest()
        self._progress.clear()

    def report(self, *, as_json: bool) -> int:
        """Say what has to be said, and return the exit code."""
        record = self._live.record
        if as_json:
            object_out(record_to_json(Following(self._runtime, self._live).viewed()))
        if record.status is Status.FAILED:
            return _failed(record)
        if not as_json:
            for line in lines_after(record, gap_bytes=self._relay.gap_bytes if self._relay is not None else 0):
                remark(line)
        return self._code(record)

    def _code(self, record: Record) -> int:
        proved = record.tree is None or record.tree.proved
        if self._write_error is not None:
            return BROKEN_PIPE if isinstance(self._write_error, BrokenPipeError) and proved else PROCTOR_FAILED
        if self._signals.received and record.stop is not None and proved:
            return code_of_signal(self._signals.received[0])
        return code_of_record(record)

    def _something_to_do(self) -> bool:
        live = self._live
        more = self._relay is not None and self._relay.behind(live.total_bytes)
        return live.settled or more or self._stop_wanted is not None or len(self._signals.received) > self._handled

    def _copy(self, total_bytes: int) -> bool:
        """Copy what there is; True when nothing is left to copy. A reader that went away is noted, and nothing is copied any more."""
        if self._relay is None:
            return True
        try:
            return self._relay.copy(total_bytes)
        except OSError as error:
            self._write_error, self._relay = error, None
            gone = isinstance(error, BrokenPipeError)
            self._stop_wanted = "its output is no longer read" if gone else f"its output cannot be written: {error.strerror}"
            return True

    def _tell_passed(self) -> Steps[None]:
        """Let the keeper know how far we are, so that it holds a command back that writes faster than our reader reads."""
        if self._relay is not None and self._relay.position >= self._told_bytes + TELL_BYTES:
            self._told_bytes = self._relay.position
            with suppress(ExecutionError, KeeperError):  # it is ending just now, and the loop finds that out
                yield from self._live.tell_passed(self._told_bytes)

    def _react(self) -> Steps[None]:
        reason, self._stop_wanted = self._stop_wanted, None
        if reason is not None:
            yield from self._live.ask_stop(by="caller", ended_by="caller_cancelled", reason=reason)
        if len(self._signals.received) > self._handled:
            again = self._handled > 0
            self._handled = len(self._signals.received)
            wish: dict[str, object] = {"grace_s": 0.0} if again else {}
            yield from self._live.ask_stop(by="person", ended_by="caller_cancelled", reason=_reason(self._signals), **wish)

    def _pass_on_the_rest(self) -> Steps[None]:
        live = self._live
        total = SpoolReader(live.folder.descriptor, live=True).total_bytes() if self._relay is not None else 0
        finished = False
        gives_up_at: float | None = None
        while not self._copy(total) or not finished:
            if self._relay is None:
                return
            if self._relay.blocked is None:
                self._relay.finish(live.memory_tail)
                finished = True
                continue
            if self._signals.received:
                gives_up_at = gives_up_at or time.monotonic() + UNREAD_PATIENCE_S
                if time.monotonic() >= gives_up_at:
                    return
            yield Wait(writing=self._relay.blocked, until=gives_up_at)

    def _phase(self) -> str | None:
        record = self._live.record
        if record.status is Status.STOPPING:
            return "stopping, until every process of the command is gone; once more to kill at once"
        if record.exit_code is not None or record.signal is not None:
            return "the command has ended, taking the rest of its output"
        return None
