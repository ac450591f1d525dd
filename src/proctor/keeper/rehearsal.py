"""A spare keeper's rehearsal: one execution of nothing, so that the real one meets a warm interpreter and memory of its own.

Measured: a fresh fork spends more time on copying the pages it touches first than on the work itself. The rehearsal goes through the real
supervisor with a backend that starts nothing, on a folder that is removed already, so that nothing is stored anywhere.
"""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..execution import Launch, Lifetime, LifetimePair, Machine, Member, ProofMethod, Spec, encode
from ..process import Checkpoints, HostSurroundings, Reaped, Root, Sent
from .assignment import Handed, pack, unpack
from .supervise import Identity, Supervisor

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["rehearse"]


class _Stage:
    """A backend whose root is this process and has always just ended."""

    proof = ProofMethod.CHILDREN_REAPED

    def adopt(self) -> None:
        """Do nothing."""

    def spawn(self, launch: Launch, ends: tuple[int, ...]) -> Root:
        """Start nothing."""
        del launch, ends
        return Root(os.getpid(), 0)

    def reap(self, root: Root | None) -> Reaped:
        """Say that the root ended well and left nobody."""
        return Reaped(0, 1, empty=True) if root is not None else Reaped(None, 0, empty=True)

    def ask(self, root: Root | None, spared: Collection[int] = ()) -> Sent:
        """Signal nobody."""
        del root, spared
        return Sent(0)

    def force(self, spared: Collection[int] = ()) -> Sent:
        """Signal nobody."""
        del spared
        return Sent(0)

    def deliver(self, root: Root, number: int) -> Sent:
        """Signal nobody."""
        del root, number
        return Sent(0)

    def strays(self, spared: Collection[int]) -> bool:
        """Say that there are none."""
        del spared
        return False

    def members(self, pipes: Collection[str] = (), spared: Collection[int] = ()) -> tuple[Member, ...]:
        """List nobody."""
        del pipes, spared
        return ()


class _Rehearsed(Supervisor):
    """A supervisor whose journal leads nowhere, so that it does not wait for a disk to take it."""

    def _seal(self) -> None:
        self._hang_up()


def rehearse() -> None:
    """Keep an execution of nothing, from its message to its ending."""
    folder = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # nothing can be created there
    ours, theirs = socket.socketpair()
    host = os.pidfd_open(os.getpid())
    handed = Handed(folder=folder, lock=folder, connection=theirs.fileno(), host=host)
    spec, launch = _nothing()
    delivery = pack(json.dumps(encode(spec)).encode(), launch, handed, folder_path="/proc/self", live_output=False)
    message = json.loads(delivery.message)
    assignment = unpack(message, [folder, folder, theirs.detach(), os.dup(delivery.payload), host])
    surroundings = HostSurroundings()
    identity = Identity(os.getpid(), 0, os.getppid(), 0)
    _Rehearsed(
        assignment,
        backend=_Stage(),
        surroundings=surroundings,
        checkpoints=Checkpoints("rehearsal", None),
        identity=identity,
    ).run()
    delivery.close()
    ours.close()
    os.close(folder)
    os.close(host)


def _nothing() -> tuple[Spec, Launch]:
    moment = datetime.now(UTC)
    machine = Machine(id="", boot_id="", pid_namespace="", hostname="")
    lifetime = LifetimePair(requested=Lifetime.DETACHED, effective=Lifetime.DETACHED)
    spec = Spec(id="0" * 26, machine=machine, lifetime=lifetime, cwd="/", created_at=moment, argv=("true",))
    return spec, Launch(argv=("true",), env={}, cwd="/", umask=0o022, nice=0)
