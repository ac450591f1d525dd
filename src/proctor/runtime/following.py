"""What both faces of an execution do, as steps: wait, stop, write, read; the faces only choose the driver."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError
from ..execution import EndedBy
from ..output import SpoolReader

if TYPE_CHECKING:
    from ..execution import Event, Record
    from ..output import Chunk
    from .live import Live
    from .local import LocalRuntime
    from .steps import Steps

__all__ = ["READ_LIMIT_BYTES", "Following"]

READ_LIMIT_BYTES = 1 << 20


class Following:
    """One execution and the runtime it belongs to."""

    def __init__(self, runtime: LocalRuntime, live: Live) -> None:
        self._runtime = runtime
        self.live = live

    def wait(self, *, timeout_s: float | None, encoding: str | None = None) -> Steps[Record]:
        """Follow to an ending, survivors that do not die, or kept leftovers. Raises ``wait_timeout``; nothing is stopped by that."""
        live = self.live
        until = None if timeout_s is None else time.monotonic() + timeout_s
        if not (yield from live.advance_until(lambda: live.settled, until)):
            raise ExecutionError(
                ErrorCode.WAIT_TIMEOUT,
                f"Execution {live.record.id} still runs after {timeout_s:g} s; nothing was stopped.",
                "Wait again, or stop it.",
            )
        return self.viewed(encoding=encoding)

    def wait_ended(self) -> Steps[Record]:
        """Follow to an ending or survivors, past kept leftovers."""
        live = self.live
        yield from live.advance_until(lambda: live.record.ended or live.record.status == "unresolved")
        return self.viewed()

    def viewed(self, *, encoding: str | None = None) -> Record:
        """Return the record as it stands, with the view of its output."""
        from .view import with_view

        self._runtime.remember(self.live.record)
        return with_view(self.live.record, self.live.folder, self.live.memory_tail, encoding=encoding)

    def stop(self, *, by: str, reason: str, grace_s: float | None, ended_by: EndedBy = EndedBy.STOP) -> Steps[Record]:
        """Stop the tree and follow it to the proof; returns the record: an ending, or ``unresolved`` with the survivors."""
        request: dict[str, object] = {"by": by, "reason": reason, "ended_by": ended_by.value}
        if grace_s is not None:
            request["grace_s"] = grace_s
        yield from self.live.stop(**request)
        return self.viewed()

    def read_since(self, offset: int, *, limit: int, stream: int | None) -> Chunk:
        """Read kept output from an absolute offset; reading never consumes."""
        reader = SpoolReader(self.live.folder.descriptor, live=self.live.record.output.bytes == 0)
        return reader.read_since(offset, limit=limit, stream=stream)

    def next_event(self) -> Steps[Event | None]:
        """Return the next event that was not taken yet, waiting for it; ``None`` once the execution has ended and all were taken."""
        live = self.live
        yield from live.advance_until(lambda: bool(live.events) or live.record.ended)
        return live.events.popleft() if live.events else None
