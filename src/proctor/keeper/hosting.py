"""The host's end of a zygote: started at first use, addressed over one socket, reaped when it goes.

Sending is atomic and thread-safe (SOCK_SEQPACKET). The zygote's descriptors 0-2 are /dev/null, so that nothing a host's caller waits on is
held open by it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from ..errors import ErrorCode, KeeperError

if TYPE_CHECKING:
    from .assignment import Delivery

__all__ = ["Zygote"]

_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_REQUESTS = 3
# Isolated (-I, -E), without site (-S): nothing of the user's environment can get into a process that outlives its host.
_PROGRAM = f"import sys; sys.path.insert(0, sys.argv[1]); from proctor.keeper.zygote import main; main({_REQUESTS})"


class Zygote:
    """A running zygote. ``ours`` tells whether this process started it: a fork of the host must start its own."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._socket = connection
        self._host_pid = os.getpid()

    @classmethod
    def start(cls) -> Zygote:
        """Start one by exec: right for any host, whatever it has in memory and however many threads."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # dup2 onto itself would leave a descriptor close-on-exec, so the source must not be the target.
        source = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, _REQUESTS + 1)
        theirs.close()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, source, _REQUESTS),
        ]
        command = [sys.executable, "-S", "-E", "-I", "-c", _PROGRAM, _PACKAGE_PARENT]
        try:
            pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setsigmask=())
        except OSError as error:
            ours.close()
            raise _refused(error) from error
        finally:
            os.close(source)
        return cls(pid, ours)

    @classmethod
    def fork_for_one(cls) -> Zygote:
        """Fork one that keeps a single execution: right for a small process that has one thread and runs one command.

        It costs a tenth of a fresh interpreter. The calling process must not have other threads, nor buffered output, nor a database open.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pid = os.fork()
        except OSError as error:
            ours.close()
            theirs.close()
            raise _refused(error) from error
        if pid == 0:
            _become_zygote(theirs.detach())
        theirs.close()
        return cls(pid, ours)

    @property
    def ours(self) -> bool:
        """Whether this process started it."""
        return self._host_pid == os.getpid()

    @property
    def alive(self) -> bool:
        """Whether it still runs. Keepers that wait already would take a request without it, but then nobody stands behind them."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False  # the host application has waited for it

    def assign(self, delivery: Delivery) -> bool:
        """Send one assignment; return False when the zygote is gone and nothing was taken."""
        try:
            socket.send_fds(self._socket, [delivery.message], list(delivery.descriptors))
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def close(self) -> None:
        """Let go: the zygote goes after its last keeper. It is reaped now if it is gone soon, else by a waiting thread."""
        self._socket.close()
        if not self.ours:
            return
        threading.Thread(target=_reap, args=(self.pid,), name="proctor-zygote-reaper", daemon=True).start()


def _refused(error: OSError) -> KeeperError:
    message = f"No keeper could be started: {error.strerror}."
    return KeeperError(ErrorCode.SPAWN_FAILED, message, "Free processes or memory, then try again.")


def _become_zygote(requests: int) -> NoReturn:
    """Turn this fork into a zygote; nothing of the host's may run in it any more, whatever happens."""
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        source = fcntl.fcntl(requests, fcntl.F_DUPFD_CLOEXEC, _REQUESTS + 1)
        os.dup2(source, _REQUESTS)
        from .zygote import main

        main(_REQUESTS, once=True)
    finally:
        os._exit(1)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return  # the host application waits for all children itself
