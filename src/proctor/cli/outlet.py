"""A descriptor of this process to write to without ever waiting: a slow reader must not keep signals and deadlines from being seen.

O_NONBLOCK belongs to the open file, which is shared with whoever gave it to us, so it is never set on the descriptor itself. A pipe or a
terminal is opened once more through /proc; what cannot be (a socket, another user's pipe) gets 4 KiB at a time once poll says that there is
room, which is what a pipe then takes without blocking (PIPE_BUF, pipe(7)). A regular file never makes anybody wait.
"""

from __future__ import annotations

import os
import select
import stat

__all__ = ["Outlet"]

_STEP_BYTES = select.PIPE_BUF
_FILE_STEP_BYTES = 1 << 20


class Outlet:
    """One destination; ``terminal`` says whether a person looks at it, ``closed`` that nobody can read it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.closed = False
        self._own: int | None = None
        self._step = _STEP_BYTES
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:
            self.terminal, self.closed = False, True
            return
        self.terminal = stat.S_ISCHR(mode) and os.isatty(descriptor)
        if stat.S_ISREG(mode):
            self._step = _FILE_STEP_BYTES
        elif stat.S_ISFIFO(mode) or self.terminal:
            self._own = _opened_again(descriptor)

    def write(self, data: memoryview) -> int:
        """Write what can be written now and return how much; 0 when there is no room. Raises ``OSError``, BrokenPipeError among them."""
        if self.closed:
            return len(data)  # standard output was closed before we began: there is nowhere to write to
        if self._own is not None:
            try:
                return os.write(self._own, data)
            except BlockingIOError:
                return 0
        if not self.ready():
            return 0
        return os.write(self.descriptor, data[: self._step])

    def ready(self) -> bool:
        """Tell whether a write would take something, or fail, now."""
        poller = select.poll()
        poller.register(self.descriptor, select.POLLOUT)
        return bool(poller.poll(0))

    def close(self) -> None:
        """Close what was opened here; the descriptor itself stays as it is."""
        if self._own is not None:
            os.close(self._own)
            self._own = None


def _opened_again(descriptor: int) -> int | None:
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
