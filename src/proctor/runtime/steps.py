"""One implementation, two faces: a piece of work yields what it waits for, and a driver does the waiting, blocking or in asyncio.

Giving up (a cancelled task, Ctrl-C in a script) is thrown into the work as ``Abandoned``; the work then stops what it started, still
yielding its waits, and only after that the driver lets the cancellation go on. A driver never swallows a cancellation.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..data import Data
from ..errors import ProctorError
from .interruption import Interruptions

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["Abandoned", "Steps", "Wait", "Waker", "run_async", "run_blocking"]

T = TypeVar("T")


class Waker:
    """A way to end a wait from beside it: the driver puts in how, for as long as it waits."""

    __slots__ = ("wake",)

    def __init__(self) -> None:
        self.wake: Callable[[], None] | None = None


class Wait(Data, kw_only=False):
    """Wait until a descriptor can be read or written, or until a moment of the monotonic clock; ``None`` is no descriptor, no limit.

    With a ``waker``, another piece of work on the same loop can end the wait, since it may have read what was waited for.
    """

    reading: int | None = None
    writing: int | None = None
    until: float | None = None
    waker: Waker | None = None


class Abandoned(BaseException):
    """The caller gave up waiting: thrown into the work, never seen by users. ``by`` and ``reason`` go into the record's stop."""

    def __init__(self, *, by: str = "caller", reason: str = "the call was given up") -> None:
        super().__init__(by, reason)
        self.by = by
        self.reason = reason


Steps = Generator[Wait, None, T]


def run_blocking(steps: Steps[T]) -> T:
    """Drive the work in this thread; a KeyboardInterrupt abandons it and is raised once the work has cleaned up."""
    with Interruptions() as interruptions:
        return _drive(steps, interruptions)


def _drive(steps: Steps[T], interruptions: Interruptions) -> T:
    interruption: KeyboardInterrupt | None = None
    throw: BaseException | None = None
    while True:
        try:
            wait = steps.send(None) if throw is None else steps.throw(throw)
        except StopIteration as done:
            if interruption is not None:
                raise interruption from None
            return done.value  # type: ignore[no-any-return] # StopIteration.value is Any in typeshed
        except Abandoned:
            raise interruption or KeyboardInterrupt from None
        except ProctorError as error:
            if interruption is not None:  # the clean-up failed, and the interruption goes on all the same
                raise interruption from error
            raise
        throw = None
        try:
            interruptions.during(partial(_poll, wait))
        except KeyboardInterrupt as error:
            # The first one is thrown into the work; its clean-up is bounded and is not interrupted by a second one.
            if interruption is None:
                throw = Abandoned()
            interruption = error


def _poll(wait: Wait) -> None:
    poller = select.poll()
    if wait.reading is not None:
        poller.register(wait.reading, select.POLLIN)
    if wait.writing is not None:
        poller.register(wait.writing, select.POLLOUT)
    poller.poll(None if wait.until is None else max(0.0, wait.until - time.monotonic()) * 1000)


async def run_async(steps: Steps[T]) -> T:
    """Drive the work on the running loop; a cancellation abandons it and goes on once the work has cleaned up."""
    import asyncio

    cancellation: asyncio.CancelledError | None = None
    throw: BaseException | None = None
    while True:
        try:
            wait = steps.send(None) if throw is None else steps.throw(throw)
        except StopIteration as done:
            if cancellation is not None:
                raise cancellation from None
            return done.value  # type: ignore[no-any-return] # StopIteration.value is Any in typeshed
        except Abandoned:
            raise cancellation or asyncio.CancelledError from None
        except ProctorError as error:
            if cancellation is not None:  # the clean-up failed, and the cancellation goes on all the same
                raise cancellation from error
            raise
        throw = None
        try:
            await _ready(asyncio.get_running_loop(), wait)
        except asyncio.CancelledError as error:
            # The first one is thrown into the work; later ones (anyio delivers one at every await) find the clean-up under way.
            if cancellation is None:
                throw = Abandoned()
            cancellation = error


async def _ready(loop: asyncio.AbstractEventLoop, wait: Wait) -> None:
    future: asyncio.Future[None] = loop.create_future()

    def wake(*_: Any) -> None:
        if not future.done():
            future.set_result(None)

    timer = None if wait.until is None else loop.call_later(max(0.0, wait.until - time.monotonic()), wake)
    # A loop knows one reader for a descriptor; another task may wait for the same one, so each watches a copy of its own.
    reading = None if wait.reading is None else os.dup(wait.reading)
    writing = None if wait.writing is None else os.dup(wait.writing)
    if reading is not None:
        loop.add_reader(reading, wake)
    if writing is not None:
        loop.add_writer(writing, wake)
    if wait.waker is not None:
        wait.waker.wake = wake
    try:
        await future
    finally:
        if wait.waker is not None:
            wait.waker.wake = None
        if timer is not None:
            timer.cancel()
        if reading is not None:
            loop.remove_reader(reading)
            os.close(reading)
        if writing is not None:
            loop.remove_writer(writing)
            os.close(writing)
