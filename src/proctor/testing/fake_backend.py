"""A process backend that is all pretence: trees, deaths and refusals as a test wants them, and the truth about who was signalled how.

It keeps a table of processes with parent, group, session and start time, as a kernel does: orphans go to the nearest keeper, pids may be
taken again by strangers, the dead are children until they are reaped. It fulfils the contract of ``ProcessBackend``; no signal is sent.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..execution import Member, ProofMethod
from ..process import Reaped, Root, Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ..execution import Launch
    from ..process import SpawnError

__all__ = ["FakeBackend", "FakeProcess"]

KEEPER = 1
_ENDING = frozenset({signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT})


@dataclass(slots=True, kw_only=True)
class FakeProcess:
    """One process: where it stands, how it takes signals, and what it heard.

    ``refuses`` is a process of another user (EPERM); ``uninterruptible`` one in a D state, which acts once ``FakeBackend.wake`` is called;
    ``slow`` counts how many KILL rounds it outlives.
    """

    pid: int
    parent: int
    group: int
    session: int
    start_ticks: int
    command: str = "fake"
    ignores: frozenset[int] = frozenset()
    stopped: bool = False
    refuses: bool = False
    uninterruptible: bool = False
    slow: int = 0
    status: int | None = None
    stranger: bool = False
    heard: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether it can still do anything."""
        return self.status is None


class FakeBackend:
    """The tree of one execution, pretended. ``on_death`` stands for the SIGCHLD that a kernel would send."""

    proof = ProofMethod.CHILDREN_REAPED

    def __init__(self, *, on_death: Callable[[], None] | None = None, failing: SpawnError | None = None) -> None:
        self.processes: dict[int, FakeProcess] = {}
        self.launches: list[Launch] = []
        self.adopted = False
        self.on_spawn: Callable[[FakeProcess], None] | None = None
        self.on_force: Callable[[int], None] | None = None
        self.rounds = 0
        self._on_death = on_death
        self._failing = failing
        self._pids = 100
        self._clock = 1000

    # -- staging ------------------------------------------------------------------------------------------------------------------------

    def fork(self, parent: int, *, new_session: bool = False, new_group: bool = False, **traits: object) -> FakeProcess:
        """Add a child of ``parent``, in its group and session unless told otherwise."""
        self._pids += 1
        self._clock += 1
        above = self.processes.get(parent)
        own = new_session or new_group or above is None
        made = FakeProcess(
            pid=self._pids,
            parent=parent,
            group=self._pids if own or above is None else above.group,
            session=self._pids if new_session or above is None else above.session,
            start_ticks=self._clock,
        )
        for name, value in traits.items():
            setattr(made, name, value)
        self.processes[made.pid] = made
        return made

    def end(self, pid: int, status: int = 0) -> None:
        """Let a process end; its children go to the keeper, as a subreaper gets them."""
        process = self.processes[pid]
        process.status = status
        for child in self._children(pid):
            child.parent = KEEPER
        if self._on_death is not None:
            self._on_death()

    def wake(self, pid: int) -> None:
        """End an uninterruptible sleep: what was sent meanwhile takes effect."""
        process = self.processes[pid]
        process.uninterruptible = False
        pending, process.pending = process.pending, []
        for number in pending:
            self._act(process, number)

    def reuse(self, pid: int) -> FakeProcess:
        """Give the pid of a process that is gone to a stranger, which no one here may signal."""
        self._clock += 1
        made = FakeProcess(pid=pid, parent=0, group=pid, session=pid, start_ticks=self._clock, command="stranger", stranger=True)
        self.processes[pid] = made
        return made

    @property
    def living(self) -> list[FakeProcess]:
        """Everybody of the tree who is alive."""
        return [process for process in self.processes.values() if process.alive and not process.stranger]

    # -- the contract -------------------------------------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Note that orphans are wanted."""
        self.adopted = True

    def spawn(self, launch: Launch, ends: tuple[int, ...]) -> Root:
        """Add the root, or fail as the test wants it; ``on_spawn`` may add the rest of the tree."""
        del ends
        self.launches.append(launch)
        if self._failing is not None:
            raise self._failing
        root = self.fork(KEEPER, new_session=True, command=" ".join(launch.argv))
        if self.on_spawn is not None:
            self.on_spawn(root)
        return Root(root.pid, root.start_ticks)

    def reap(self, root: Root | None) -> Reaped:
        """Take every dead child off the table."""
        status, count = None, 0
        while dead := [child for child in self._children(KEEPER) if not child.alive]:
            for child in dead:
                del self.processes[child.pid]
                count += 1
                if root is not None and (child.pid, child.start_ticks) == (root.pid, root.start_ticks):
                    status = child.status
        return Reaped(status, count, empty=not self._children(KEEPER))

    def ask(self, root: Root | None, spared: Collection[int] = ()) -> Sent:
        """TERM then CONT, once to everybody."""
        del root  # its group is part of the tree that is walked here
        everyone = list(self._descendants(spared))
        asked = self._send(everyone, signal.SIGTERM)
        self._send(everyone, signal.SIGCONT)
        return asked

    def force(self, spared: Collection[int] = ()) -> Sent:
        """KILL everybody once."""
        self.rounds += 1
        sent = self._send(list(self._descendants(spared)), signal.SIGKILL)
        if self.on_force is not None:
            self.on_force(self.rounds)
        return sent

    def deliver(self, root: Root, number: int) -> Sent:
        """Signal the root's group, if the root is there, is ours, and leads it."""
        leader = self.processes.get(root.pid)
        if leader is None or leader.stranger or leader.start_ticks != root.start_ticks or leader.group != root.pid or not leader.alive:
            return Sent(0)
        members = [process for process in self.processes.values() if process.group == root.pid and process.alive]
        return Sent(1) if self._send(members, number).count else Sent(0)

    def strays(self, spared: Collection[int]) -> bool:
        """Tell whether the keeper has a child, dead or alive, that is not spared."""
        return any(child.pid not in spared for child in self._children(KEEPER))

    def members(self, pipes: Collection[str] = (), spared: Collection[int] = ()) -> tuple[Member, ...]:
        """List who is alive."""
        del pipes
        return tuple(
            Member(pid=process.pid, command=process.command, reason="uninterruptible" if process.uninterruptible else None)
            for process in self._descendants(spared)
            if process.alive
        )

    # -- the kernel's part --------------------------------------------------------------------------------------------------------------

    def _children(self, pid: int) -> list[FakeProcess]:
        return [process for process in tuple(self.processes.values()) if process.parent == pid and not process.stranger]

    def _descendants(self, spared: Collection[int]) -> Iterator[FakeProcess]:
        level = [child for child in self._children(KEEPER) if child.pid not in spared]
        while level:
            yield from level
            level = [child for parent in level for child in self._children(parent.pid)]

    def _send(self, processes: list[FakeProcess], number: int) -> Sent:
        refused = tuple(process.pid for process in processes if process.alive and process.refuses)
        reached = [process for process in processes if process.alive and not process.refuses]
        for process in reached:
            process.heard.append(number)
            self._act(process, number)
        return Sent(len(reached), refused)

    def _act(self, process: FakeProcess, number: int) -> None:
        if not process.alive:
            return
        if process.uninterruptible:
            process.pending.append(number)
        elif number == signal.SIGCONT:
            process.stopped = False
            waiting, process.pending = process.pending, []
            for sent in waiting:
                self._act(process, sent)
        elif process.stopped and number != signal.SIGKILL:
            process.pending.append(number)
        elif number == signal.SIGKILL and process.slow > 0:
            process.slow -= 1
        elif number in _ENDING and (number == signal.SIGKILL or number not in process.ignores):
            self.end(process.pid, number)
