"""One line on a terminal's standard error while a person waits for something that says nothing; gone before anything else is written."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Progress"]

SILENCE_S = 1.0  # a wait shorter than this needs no explanation
AGAIN_S = 1.0
_ERASE = "\r\x1b[K"


class Progress:
    """Shows what ``phase`` returns, once it has returned the same for a second; ``None`` is nothing to show."""

    def __init__(self, phase: Callable[[], str | None]) -> None:
        self._phase = phase
        self._on = sys.stderr is not None and sys.stderr.isatty()
        self._shown = False
        self._text: str | None = None
        self._since = 0.0

    def next_at(self) -> float | None:
        """Return when to look again; ``None`` where nobody would see it."""
        return time.monotonic() + AGAIN_S if self._on else None

    def look(self) -> None:
        """Show, renew or remove the line."""
        if not self._on:
            return
        now = time.monotonic()
        text = self._phase()
        if text != self._text:
            self._text, self._since = text, now
            self.clear()
        if text is not None and now >= self._since + SILENCE_S:
            sys.stderr.write(f"{_ERASE}proctor: {text} ({now - self._since:.0f} s)")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._shown = False
