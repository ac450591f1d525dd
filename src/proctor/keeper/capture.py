"""All output of one command: its pipes, the spool behind them, and when something last came."""

from __future__ import annotations

import os
import selectors
from typing import TYPE_CHECKING

from ..output import Spool
from .pump import STDERR, STDOUT, Pump, open_pump

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..execution import Limits, OutputCounts

__all__ = ["Capture"]


class Capture:
    """The pumps of one execution and their spool."""

    def __init__(self, folder: int, limits: Limits, *, split: bool) -> None:
        self.spool = Spool(folder, head_bytes=limits.kept_head_bytes, tail_bytes=limits.kept_tail_bytes, split=split)
        self._split = split
        self._pumps: list[Pump] = []
        self._moved: Callable[[], None] | None = None
        self.held = False

    def open(self, selector: selectors.BaseSelector, moved: Callable[[], None]) -> tuple[int, int]:
        """Make the pipes, watch them, and return the command's ends for descriptors 1 and 2 (the same one when merged)."""
        out, out_end = open_pump(STDOUT)
        self._pumps = [out]
        err_end = out_end
        if self._split:
            err, err_end = open_pump(STDERR)
            self._pumps.append(err)
        self._moved = moved
        for pump in self._pumps:
            selector.register(pump.descriptor, selectors.EVENT_READ, self._reader(selector, pump))
        return out_end, err_end

    def hold(self, selector: selectors.BaseSelector, *, held: bool) -> None:
        """Leave output in the pipes, so that the command waits as it would for any slow reader; or take it again."""
        if held is self.held:
            return
        self.held = held
        for pump in self._pumps:
            if held:
                selector.unregister(pump.descriptor)
            else:
                selector.register(pump.descriptor, selectors.EVENT_READ, self._reader(selector, pump))

    @property
    def names(self) -> frozenset[str]:
        """The pipes' names in /proc, to tell who holds them."""
        return frozenset(pump.name for pump in self._pumps)

    def drain(self, selector: selectors.BaseSelector) -> bool:
        """Take everything that is in the pipes now, up to a bound; return whether anything came."""
        moved = [self._take(selector, pump) for pump in tuple(self._pumps)]
        return any(moved)

    def counts(self) -> OutputCounts:
        """Return the figures so far."""
        return self.spool.counts()

    def settle(self) -> None:
        """Store what can be stored, so that the counts are final; a command that was silent needs no file for it."""
        if self.spool.total_bytes:
            self.spool.close()

    def close(self, selector: selectors.BaseSelector) -> None:
        """Stop listening; a writer that is left gets SIGPIPE, as with any reader that went away."""
        for pump in tuple(self._pumps):
            self._drop(selector, pump)
        self.spool.close()

    def _reader(self, selector: selectors.BaseSelector, pump: Pump) -> Callable[[int], None]:
        def read(_mask: int) -> None:
            if self._take(selector, pump) and self._moved is not None:
                self._moved()

        return read

    def _take(self, selector: selectors.BaseSelector, pump: Pump) -> bool:
        moved, ended = pump.drain(self.spool)
        if ended:
            self._drop(selector, pump)
        return moved

    def _drop(self, selector: selectors.BaseSelector, pump: Pump) -> None:
        if pump in self._pumps:
            self._pumps.remove(pump)
            if not self.held:
                selector.unregister(pump.descriptor)
            os.close(pump.descriptor)
