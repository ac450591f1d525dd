"""Ctrl-C in a script while work is driven: heard at once while the work waits, kept until it waits while it is busy.

Python raises KeyboardInterrupt between any two instructions. Inside the work that would cut a start or a stop in two, with a tree that runs
on and nobody who knows of it; only a wait can be given up cleanly. A program that handles SIGINT itself is left alone.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

__all__ = ["Interruptions"]


class Interruptions:
    """A context in which an interruption is raised only inside ``during``, or at its end when it came too late for that."""

    __slots__ = ("_kept", "_previous", "_waiting")

    def __init__(self) -> None:
        self._previous: Any = None
        self._waiting = False
        self._kept = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if self._kept and kind is None:
            raise KeyboardInterrupt

    def during(self, wait: Callable[[], None]) -> None:
        """Wait; raises ``KeyboardInterrupt`` for an interruption that comes now or came before."""
        self._waiting = True
        try:
            if self._kept:
                self._kept = False
                raise KeyboardInterrupt
            wait()
        finally:
            self._waiting = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if not self._waiting:
            self._kept = True
            return
        self._waiting = False
        raise KeyboardInterrupt
