"""Driving the runtime's steps from the command line: one piece of work or many at once, in one poll loop that signals can wake.

A signal is not thrown into the work: the wait it sleeps in returns early, and the work looks at ``Signals.received`` where it can act.
Only a start, which offers nothing to ask yet, is given up by ``Abandoned``.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..data import Data, changed
from ..errors import ProctorError
from ..runtime import Abandoned, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..runtime import Steps
    from .signals import Signals

__all__ = ["Outcome", "abandonable", "also_writing", "drive", "drive_all"]

T = TypeVar("T")


class Outcome(Data, Generic[T], kw_only=False, frozen=False):
    """What one of several pieces of work came to: a value, or the error that it ended with."""

    value: T | None = None
    error: ProctorError | None = None
    done: bool = False


class _Work(Data, kw_only=False, frozen=False):
    steps: Steps[Any]
    outcome: Outcome[Any]
    wait: Wait | None = None

    def resume(self) -> None:
        try:
            self.wait = self.steps.send(None)
        except StopIteration as done:
            self.wait, self.outcome.value, self.outcome.done = None, done.value, True
        except ProctorError as error:
            self.wait, self.outcome.error, self.outcome.done = None, error, True


def drive(steps: Steps[T], signals: Signals | None = None) -> T:
    """Run one piece of work to its end and return its value; raises what it raises."""
    while True:
        try:
            wait = steps.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # StopIteration.value is Any in typeshed
        _poll([wait], signals)


def drive_all(
    pieces: Sequence[Steps[T]], signals: Signals | None = None, *, first_only: bool = False, look: Callable[[], None] | None = None
) -> list[Outcome[T]]:
    """Run several pieces of work at once; a ``ProctorError`` of one is its outcome and does not touch the others.

    With ``first_only`` the rest is given up, closed and not ``done``, as soon as one of them is. ``look`` is called after each wait.
    """
    works = [_Work(steps, Outcome()) for steps in pieces]
    for work in works:
        work.resume()
    while waiting := [work for work in works if work.wait is not None]:
        if first_only and len(waiting) < len(works):
            for work in waiting:
                work.steps.close()
            break
        woken = _poll([work.wait for work in waiting if work.wait is not None], signals)
        now = time.monotonic()
        for work in waiting:
            if work.wait is not None and (woken is None or _is_due(work.wait, woken, now)):
                work.resume()
        if look is not None:
            look()
    return [work.outcome for work in works]


def abandonable(steps: Steps[T], signals: Signals, *, by: str, reason: str) -> Steps[T]:
    """Let the first signal give the work up: it stops what it began, and ``Abandoned`` comes out."""
    thrown = False
    while True:
        try:
            if signals.received and not thrown:
                thrown = True
                wait = steps.throw(Abandoned(by=by, reason=reason))
            else:
                wait = steps.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # StopIteration.value is Any in typeshed
        yield wait


def also_writing(steps: Steps[T], descriptor: int | None) -> Steps[T]:
    """Let every wait of the work end as well when ``descriptor`` takes more."""
    if descriptor is None:
        return (yield from steps)
    while True:
        try:
            wait = steps.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        yield changed(wait, writing=descriptor)


def _is_due(wait: Wait, woken: frozenset[int], now: float) -> bool:
    return wait.reading in woken or wait.writing in woken or (wait.until is not None and now >= wait.until)


def _poll(waits: Sequence[Wait], signals: Signals | None) -> frozenset[int] | None:
    """Wait; return the descriptors that are ready, or ``None`` when a signal came and everybody should look."""
    poller = select.poll()
    events: dict[int, int] = {}
    for wait in waits:
        if wait.reading is not None:
            events[wait.reading] = events.get(wait.reading, 0) | select.POLLIN
        if wait.writing is not None:
            events[wait.writing] = events.get(wait.writing, 0) | select.POLLOUT
    for descriptor, mask in events.items():
        poller.register(descriptor, mask)
    if signals is not None:
        poller.register(signals.descriptor, select.POLLIN)
    until = min((wait.until for wait in waits if wait.until is not None), default=None)
    ready = poller.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000)
    woken = frozenset(descriptor for descriptor, _ in ready)
    if signals is not None and signals.descriptor in woken:
        signals.clear_wake()
        return None
    return woken
