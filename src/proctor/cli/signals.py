"""Signals that end the command line, turned into something that a wait can see: nothing is interrupted in the middle of anything.

The handlers only note the number; a byte in a pipe wakes whoever waits (``driving``). A signal that was ignored when this process began
stays ignored, as ``nohup`` expects.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import FrameType, TracebackType

__all__ = ["Signals"]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_DRAIN_BYTES = 4096


class Signals:
    """INT, TERM and HUP while this context is open: ``received`` in their order, ``descriptor`` readable when one came."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.descriptor = -1
        self._writing = -1
        self._before: list[tuple[int, signal.Handlers | object]] = []

    def __enter__(self) -> Self:
        self.descriptor, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for name in _NAMES:
            number = getattr(signal, name)
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before.append((number, before))
                signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, before in self._before:
            signal.signal(number, before)  # type: ignore[arg-type] # what getsignal gave
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._writing)

    def clear_wake(self) -> None:
        """Empty the pipe, so that the next wait waits."""
        try:
            while os.read(self.descriptor, _DRAIN_BYTES):
                pass
        except BlockingIOError:
            return

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.received.append(number)
