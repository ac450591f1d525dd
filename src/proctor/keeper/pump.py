"""Pipes from the command into the spool: read what is there, never wait, and never take end-of-file for the end of the command.

64 KiB a read from a default pipe is the measured optimum (facts B6); larger reads and larger pipes are slower.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..data import Data

if TYPE_CHECKING:
    from ..output import Spool

__all__ = ["STDERR", "STDOUT", "Pump", "open_pump"]

STDOUT, STDERR = 1, 2
READ_BYTES = 65_536
READS_AT_ONCE = 16  # so that a command that never stops writing cannot keep the keeper from its deadlines


class Pump(Data, kw_only=False, frozen=False):
    """One pipe: its reading end, the stream it carries, and the pipe's name in /proc."""

    descriptor: int
    stream: int
    name: str

    def drain(self, spool: Spool, *, reads: int = READS_AT_ONCE) -> tuple[bool, bool]:
        """Move what is in the pipe; return whether anything came, and whether the pipe is at its end."""
        moved = False
        for _ in range(reads):
            try:
                data = os.read(self.descriptor, READ_BYTES)
            except BlockingIOError:
                return moved, False
            if not data:
                return moved, True
            spool.write(self.stream, data)
            moved = True
            if len(data) < READ_BYTES:
                return moved, False  # the pipe was empty a moment ago; the selector says when it is not
        return moved, False


def open_pump(stream: int) -> tuple[Pump, int]:
    """Make a pipe; return its pump and the writing end for the command."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    return Pump(reading, stream, os.readlink(f"/proc/self/fd/{reading}")), writing
