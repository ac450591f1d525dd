"""Commands that wait at a gate of their own, so that a test decides what is written before a host dies and what after it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Barrier:
    """A named pipe that any number of commands read one line from; each line lets exactly one of them on."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDWR)  # held open on both sides: nobody waits for a partner, and a line stays until it is read

    def let_on(self, count: int) -> None:
        """Let this many of them on."""
        os.write(self._end, b"\n" * count)

    def close(self) -> None:
        """Close it; whoever waits reads the end of the file."""
        os.close(self._end)


@pytest.fixture
def barrier(work: Path) -> Iterator[Barrier]:
    """Make a barrier in the working folder."""
    made = Barrier(work / "barrier")
    yield made
    made.close()
