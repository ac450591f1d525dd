"""The zygote: a small warm interpreter, one for each host process, from which keepers are forked.

It keeps spare keepers waiting on the host's socket, so that a request is taken up by a process that exists already (a fork costs three
times a posix_spawn here); each spare says so on the roster as it takes one, and is replaced. As a subreaper it inherits the tree of a
keeper that was killed, ends it, and writes the ending. It goes once its host and its last keeper are gone; without it keepers run on.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import NoReturn

from ..data import Data
from ..errors import ProctorError
from ..execution.layout import KEEPER_LOG
from ..process import Backend, Checkpoints, HostSurroundings, rename_process
from .assignment import receive, unpack
from .burial import Burial
from .rehearsal import rehearse
from .supervise import Identity, Supervisor

__all__ = ["main"]

SPARES = 2
MESSAGE_LIMIT = 65_536
REFILL_S = 0.005
FORK_RETRY_S = 0.2  # after a fork was refused (EAGAIN): the limit may be the user's own, and others give processes back


class Ward(Data, kw_only=False, frozen=False):
    """A keeper that took a request: which execution, and where its folder is."""

    execution_id: str
    folder: str


class Zygote:
    """The loop that forks keepers and buries what they leave."""

    def __init__(self, requests: socket.socket, checkpoints_at: str | None, *, once: bool) -> None:
        self._requests = requests
        self._once = once
        self._wanted_spares = 1 if once else SPARES
        self._checkpoints_at = checkpoints_at
        self._reach = Checkpoints("zygote", checkpoints_at).reach
        self._surroundings = HostSurroundings()
        self._pid = os.getpid()
        self._start_ticks = self._surroundings.start_ticks(self._pid)
        self._backend = Backend()
        self._backend.adopt()
        self._spares: set[int] = set()
        self._wards: dict[int, Ward] = {}
        self._burial: Burial | None = None
        self._host_gone = False
        self._fork_at = 0.0
        self._roster, self._roster_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wake, self._wake_end = socket.socketpair()
        for end in (self._roster, self._wake, self._wake_end):
            end.setblocking(False)

    def serve(self) -> None:
        """Run until host and keepers are gone."""
        signal.set_wakeup_fd(self._wake_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.PollSelector()
        selector.register(self._wake, selectors.EVENT_READ, lambda: self._wake.recv(4096))
        selector.register(self._roster, selectors.EVENT_READ, self._read_roster)
        hang_up = _HangUp(self._requests)
        gc.freeze()
        while not self._done():
            self._fill()
            for key, _ in selector.select(self._patience()):
                key.data()
            self._host_gone = self._host_gone or hang_up.seen()
            self._reap()
            self._mourn()

    def _done(self) -> bool:
        # One that keeps a single execution goes with it: no spare's end would tell it later that the host is gone.
        served = self._once and self._wanted_spares == 0
        return (self._host_gone or served) and not self._wards and not self._spares and self._burial is None

    def _patience(self) -> float | None:
        if self._burial is not None:
            return self._burial.patience(time.monotonic())
        # A hang-up of the host reaches us as the end of the spares, whose SIGCHLD wakes the loop.
        if len(self._spares) >= self._wanted_spares or self._host_gone:
            return None
        return max(0.0, self._fork_at - time.monotonic())

    def _fill(self) -> None:
        while len(self._spares) < self._wanted_spares and not self._host_gone and time.monotonic() >= self._fork_at:
            try:
                pid = os.fork()
            except OSError:
                self._fork_at = time.monotonic() + FORK_RETRY_S
                return
            if pid == 0:
                self._become_spare()
            self._spares.add(pid)
            if self._once:
                self._wanted_spares = 0

    def _become_spare(self) -> NoReturn:
        """Turn this fork into a keeper that waits for its one request."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._roster, self._wake, self._wake_end):
                end.close()
            os.setsid()
            self._backend.adopt()
            if not self._once and not _is_readable(self._requests):  # else somebody waits already
                rehearse()
            ticks = self._surroundings.start_ticks(os.getpid()) or 0
            rename_process("proctor-keeper")
            identity = Identity(os.getpid(), ticks, self._pid, self._start_ticks)
            status = self._keep(identity, Checkpoints("keeper", self._checkpoints_at))
        except BaseException:  # noqa: BLE001 - a fork must not run its parent's code any further, whatever happened
            sys.__excepthook__(*sys.exc_info())
        finally:
            os._exit(status)

    def _keep(self, identity: Identity, checkpoints: Checkpoints) -> int:
        """Wait for a request, say that it is taken, and keep its execution; returns the exit status of the keeper."""
        data, descriptors = receive(self._requests)
        self._requests.close()
        if not data:
            return 0
        checkpoints.reach("keeper_received")
        message = json.loads(data)
        with suppress(OSError):  # the zygote is gone: this keeper goes on without a second net, and says so
            self._roster_end.send(json.dumps({"pid": os.getpid(), "id": message["id"], "path": message["path"]}).encode())
        self._roster_end.close()
        checkpoints.reach("keeper_taken")
        assignment = unpack(message, descriptors)
        try:
            Supervisor(assignment, backend=self._backend, surroundings=self._surroundings, checkpoints=checkpoints, identity=identity).run()
        except BaseException:  # noqa: BLE001 - the last thing that a broken keeper can do is to say why; the zygote does the rest
            _log(assignment.folder)
            return 1
        return 0

    def _read_roster(self) -> None:
        while True:
            try:
                message = json.loads(self._roster.recv(MESSAGE_LIMIT))
            except BlockingIOError:
                return
            self._spares.discard(message["pid"])
            self._wards[message["pid"]] = Ward(message["id"], message["path"])
            if self._spares:  # the next request has somebody; let this one's command start before a fork competes with it
                self._fork_at = time.monotonic() + REFILL_S
            else:
                self._fork_at = 0.0
            self._reach("zygote_taken")

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._read_roster()  # what a keeper said, it said before it died: a look before the wait could miss it
            if pid in self._spares:
                self._spares.discard(pid)
            elif (ward := self._wards.pop(pid, None)) is not None and status != 0:
                self._reach("zygote_bereft")
                self._burial = self._burial or Burial(self._backend, self._reach)
                self._burial.add(ward.execution_id, ward.folder)

    def _mourn(self) -> None:
        """Go on ending what dead keepers left; their executions end together, for strays carry no name tag that could be trusted."""
        if self._burial is not None and self._burial.advance(time.monotonic(), spared={*self._spares, *self._wards}):
            self._burial = None
            self._reach("zygote_buried")


class _HangUp:
    """Tells whether the host's end of the socket is closed, without taking the messages that are meant for the spares."""

    def __init__(self, requests: socket.socket) -> None:
        self._poll = select.poll()
        self._poll.register(requests.fileno(), 0)  # POLLHUP and POLLERR are reported unasked

    def seen(self) -> bool:
        return bool(self._poll.poll(0))


def _is_readable(requests: socket.socket) -> bool:
    return bool(select.select([requests], [], [], 0)[0])


def _log(folder: int) -> None:
    descriptor = os.open(KEEPER_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    os.dup2(descriptor, 2)
    sys.__excepthook__(*sys.exc_info())  # the interpreter's own printer imports nothing


def _raise_own_limits() -> None:
    """Free a keeper from limits that the host means for its commands: it must be able to write its output and its ending."""
    for which in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, hard = resource.getrlimit(which)
        if soft != hard:
            resource.setrlimit(which, (hard, hard))


def main(requests: int, *, once: bool = False) -> None:
    """Serve the host at the other end of ``requests`` (SOCK_SEQPACKET), in a session of its own; ``once``: one keeper, no spare."""
    os.setsid()
    os.chdir("/")
    os.closerange(requests + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] if sys.platform != "linux" else 1 << 20)
    rename_process("proctor-zygote")
    _raise_own_limits()
    checkpoints_at = os.environ.get("PROCTOR_CHECKPOINTS")
    try:
        Zygote(socket.socket(fileno=requests), checkpoints_at, once=once).serve()
    except ProctorError as error:
        sys.exit(str(error))
