"""What a platform must be able to do with processes: the contract that every backend file fulfils.

A keeper uses ``ProcessBackend`` for the one tree it owns (spawn, reap, ask, force, look); a host uses ``Surroundings`` to know where it is
and to look for what a dead keeper left. A process is its pid and its kernel start time; nothing is ever signalled by pid alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..data import Data

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ..errors import ErrorCode
    from ..execution import Launch, Machine, Member, ProofMethod

__all__ = ["ProcessBackend", "Reaped", "Root", "Sent", "SpawnError", "Surroundings"]


class SpawnError(Exception):
    """The root process could not be started; nothing runs. ``code`` is one of the stable error codes."""

    def __init__(self, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint


class Root(Data, kw_only=False):
    """The root process of a tree: it leads a session and a group of its own (``getpgid(pid) == pid``)."""

    pid: int
    start_ticks: int


class Reaped(Data, kw_only=False):
    """What one pass of reaping saw: the root's wait status if it was among the dead, how many died, whether nothing is left."""

    root_status: int | None
    count: int
    empty: bool


class Sent(Data, kw_only=False):
    """How many processes a signal reached, and which pids refused it (EPERM)."""

    count: int
    refused: tuple[int, ...] = ()


class ProcessBackend(Protocol):
    """The tree of one execution, as its keeper sees it. Not thread-safe: a keeper has one thread."""

    proof: ProofMethod

    def adopt(self) -> None:
        """Make every orphan below this process a child of it, from now on; called before the first spawn."""

    def spawn(self, launch: Launch, ends: tuple[int, ...]) -> Root:
        """Start the root process with exactly these descriptors, from 0 on; raises ``SpawnError`` when exec did not happen."""

    def reap(self, root: Root | None) -> Reaped:
        """Collect every dead child without waiting; ``empty`` is the proof that no process of the tree exists."""

    def ask(self, root: Root | None, spared: Collection[int] = ()) -> Sent:
        """Ask the whole tree to end (TERM, then CONT so that stopped processes hear it), except children in ``spared`` and their trees."""

    def force(self, spared: Collection[int] = ()) -> Sent:
        """Send KILL once to everything that is known of the tree now, children in ``spared`` and what is below them excepted."""

    def deliver(self, root: Root, number: int) -> Sent:
        """Send one signal to the root's group."""

    def strays(self, spared: Collection[int]) -> bool:
        """Tell whether this process has a child, dead or alive, that is not in ``spared``; exact when nothing is reaped meanwhile."""

    def members(self, pipes: Collection[str] = (), spared: Collection[int] = ()) -> tuple[Member, ...]:
        """List the living processes of the tree; ``pipes`` are names such as ``pipe:[123]`` to tell who holds the output."""


class Surroundings(Protocol):
    """What a host can know about the machine and about processes that are not its own."""

    def machine(self) -> Machine:
        """Return this machine, boot and pid namespace."""

    def start_ticks(self, pid: int) -> int | None:
        """Return the kernel's start time of a living process, or ``None`` when there is none of that pid."""

    def started_at(self, start_ticks: int) -> datetime:
        """Return the wall-clock time of a kernel start time."""

    def find_members(self, execution_id: str, root: Root | None) -> tuple[Member, ...]:
        """Look for processes of an execution whose keeper is gone: by the id in their environment, or the root's session."""

    def signal_found(self, execution_id: str, number: int) -> int:
        """Signal every process that carries the execution's id in its environment, each checked by start time; returns how many."""
