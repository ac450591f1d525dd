"""Standard input of the command, when it is a pipe: bytes wait here, at most 1 MiB of them, and never hold up the keeper's loop."""

from __future__ import annotations

import os

from ..errors import ErrorCode, ExecutionError

__all__ = ["HELD_LIMIT_BYTES", "Feed"]

HELD_LIMIT_BYTES = 1 << 20


class Feed:
    """The writing end of the command's standard input, and what the command has not taken yet."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._held = bytearray()
        self._ending = False
        self.closed = False

    @property
    def waiting(self) -> bool:
        """Whether there is something to write, or an end to make, once the pipe takes it."""
        return not self.closed and (bool(self._held) or self._ending)

    def accept(self, data: bytes, *, eof: bool) -> int:
        """Take as much as there is room for and return how much; raises ``stdin_closed``, or ``stdin_full`` when nothing fits."""
        if self.closed or self._ending:
            raise _closed()
        taken = data[: HELD_LIMIT_BYTES - len(self._held)]
        if data and not taken:
            raise ExecutionError(
                ErrorCode.STDIN_FULL, "The command has not read 1 MiB of its standard input.", "Send again once it has read some of it."
            )
        watched = self.waiting  # then the selector says when there is room, and only after it may the descriptor be closed
        self._held += taken
        self._ending = eof and len(taken) == len(data)
        if not watched and not self.push() and data:
            raise _closed()
        return len(taken)

    def push(self) -> bool:
        """Write what the pipe takes now; return False when the command has closed its end, and what waited is gone."""
        try:
            while self._held:
                del self._held[: os.write(self.descriptor, self._held[:65_536])]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.close()
            return False
        if self._ending:
            self.close()
        return True

    def close(self) -> None:
        """Close the pipe; what was not taken is gone."""
        if not self.closed:
            self.closed = True
            self._held.clear()
            os.close(self.descriptor)


def _closed() -> ExecutionError:
    return ExecutionError(ErrorCode.STDIN_CLOSED, "Standard input of the command is closed.", "Nothing more can be sent to it.")
