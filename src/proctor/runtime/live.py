"""An execution as its host follows it: the record so far, folded from what the keeper says, and what can be asked of the keeper.

The record only moves by ``advance``. When the connection ends before the ending was told, nothing is concluded from that here: the
run folder, its lock and the machine are asked (``reattach``).
"""

from __future__ import annotations

import base64
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from ..errors import ErrorCode, ExecutionError, KeeperError
from ..execution import Event, Member, OnLinger, Record, Status, advance, decode, decode_event, record_from_json
from .link import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store import RunFolder
    from .link import Link
    from .reattach import Reconciler
    from .steps import Steps

__all__ = ["WRITE_STEP_BYTES", "Live"]

WRITE_STEP_BYTES = 65_536
STOP_ANSWER_S = 10.0
ATTACH_ATTEMPTS = 3  # a keeper dies once; the rest is for a folder that nobody can write an ending to


class Live:
    """One execution that this host follows."""

    def __init__(self, record: Record, folder: RunFolder, reconciler: Reconciler) -> None:
        self.record = record
        self.folder = folder
        self.total_bytes = 0
        self.memory_tail: tuple[int, bytes] | None = None
        self.events: deque[Event] = deque(maxlen=256)
        self.on_event: Callable[[Event], None] | None = None
        self._reconciler = reconciler
        self._link: Link | None = None

    def follow(self, link: Link) -> None:
        """Hear the keeper over this connection from now on."""
        self._link = link

    def hear(self, message: dict[str, Any]) -> None:
        """Take one notice of the keeper."""
        if "event" in message:
            event = decode_event(message)
            if event is not None and not self.record.ended:
                self.record = advance(self.record, event)
                self.events.append(event)
                if self.on_event is not None:
                    self.on_event(event)
        elif "output" in message:
            self.total_bytes = int(message["output"])
        elif "tail" in message:
            self.memory_tail = (int(message["tail"]["offset"]), base64.b64decode(message["tail"]["data"]))

    @property
    def started(self) -> bool:
        """Whether it is known that the root runs or ran, or that nothing ever will."""
        return self.record.status is not Status.CREATED

    @property
    def settled(self) -> bool:
        """Whether a call has its result: an ending, survivors that do not die, or leftovers that are kept."""
        record = self.record
        kept = record.status is Status.LINGERING and record.on_linger is OnLinger.KEEP
        return record.ended or record.status is Status.UNRESOLVED or kept

    def attach(self, *, output: bool = False) -> Steps[None]:
        """Connect to the keeper of an execution that somebody started, and go on from what it says."""
        link = yield from connect(self.folder, self.hear)
        try:
            answer = yield from link.ask("subscribe", output=output)
        except KeeperError:
            link.close()
            raise
        self.record = record_from_json(answer["record"])
        self.total_bytes = int(answer["output"]["bytes"])
        self.follow(link)

    def advance_until(self, reached: Callable[[], bool], until: float | None = None) -> Steps[bool]:
        """Follow the execution until ``reached`` says so; False when the moment ``until`` came first."""
        while not reached():
            if until is not None and time.monotonic() >= until:
                return False
            if self._link is None or not (yield from self._link.listen(until)):
                yield from self._find_out(until)
                if not reached() and self.record.status is Status.UNRESOLVED:
                    return True
        return True

    def stop(self, **request: object) -> Steps[None]:
        """Ask for a stop and follow it to its proof, or to survivors; an execution that has ended is left as it is."""
        yield from self.ask_stop(**request)
        yield from self.advance_until(self._stopped)

    def ask_stop(self, **request: object) -> Steps[None]:
        """Ask for a stop and return once it is under way; what a dead keeper left is stopped from here."""
        if self.record.ended:
            return
        try:
            yield from self._ask("stop", limit_s=STOP_ANSWER_S, **request)
        except (KeeperError, ExecutionError):
            if not self.record.ended:
                yield from self._find_out(None)
            if self.record.status is Status.UNRESOLVED and not self.folder.keeper_alive():
                yield from self._reconciler.stop_found(self.record.id)
                yield from self._find_out(None)

    def signal(self, number: int) -> Steps[None]:
        """Send a signal to the root's group; raises ``not_running`` when the root has ended."""
        yield from self._ask("signal", number=number)

    def write(self, data: bytes, *, eof: bool) -> Steps[int]:
        """Send bytes to the command's standard input; returns how many were taken, raises ``stdin_closed`` or ``stdin_full``."""
        taken = 0
        while True:
            part = data[taken : taken + WRITE_STEP_BYTES]
            last = taken + len(part) == len(data)
            try:
                answer = yield from self._ask("write", data=base64.b64encode(part).decode(), eof=eof and last)
            except ExecutionError as error:
                if taken and error.code is ErrorCode.STDIN_FULL:
                    return taken  # raised, it would hide what was taken before, and the caller would send that again
                raise
            taken += int(answer["taken"])
            if last or answer["taken"] < len(part):
                return taken

    def tell_passed(self, offset: int) -> Steps[None]:
        """Tell the keeper how far live output was passed on: a request with ``live_output`` lets the command wait for that."""
        yield from self._ask("passed", offset=offset)

    def ask_members(self) -> Steps[tuple[Member, ...]]:
        """Ask the keeper which processes of the tree live now, and which ports they listen on."""
        answer = yield from self._ask("members")
        return tuple(decode(Member, member) for member in answer["members"])

    def close(self) -> None:
        """Let go of connection and folder; the execution is not touched."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self.folder.close()

    def _stopped(self) -> bool:
        return self.record.ended or self.record.status is Status.UNRESOLVED

    def _ask(self, op: str, **fields: Any) -> Steps[dict[str, Any]]:
        if self.record.ended:
            raise ExecutionError(ErrorCode.NOT_RUNNING, f"Execution {self.record.id} has ended ({self.record.status.value}).", "")
        if self._link is None or self._link.closed:
            yield from self.attach()
        if self._link is None:
            raise KeeperError(ErrorCode.KEEPER_UNREACHABLE, "The keeper is gone.", "See `proctor show`.")
        return (yield from self._link.ask(op, **fields))

    def _find_out(self, until: float | None) -> Steps[None]:
        """Ask the folder, the lock and the machine, when the connection ended without an ending."""
        if self._link is not None:
            self._link.close()
            self._link = None
        for attempt in range(ATTACH_ATTEMPTS):
            self.record = yield from self._reconciler.reconcile(self.folder, until=until)
            self._check_here()
            if self.record.ended or self.record.stale or self.record.status is Status.UNRESOLVED:
                return
            try:
                yield from self.attach()  # its keeper lives: only the connection was lost
            except KeeperError:
                # A keeper that is killed hangs up a moment before its lock is free: it may have been dead already when it looked alive.
                if self.folder.keeper_alive() or attempt == ATTACH_ATTEMPTS - 1:
                    raise
            else:
                return

    def _check_here(self) -> None:
        if self.record.elsewhere is not None:
            message = f"Execution {self.record.id} belongs to {self.record.elsewhere}, another machine or pid namespace."
            raise KeeperError(ErrorCode.KEEPER_UNREACHABLE, message, "Ask there; nothing can be known about its processes from here.")
