"""Finding out about an execution whose ending this host has not seen: the closed table of DESIGN section 2, carried out.

The journal is the truth, the lock says whether a keeper lives, the machine says whether anything can be known from here. Verdicts are
written into the journal under the lock, so that every host tells the same; nothing is written about another machine's executions.
"""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..data import changed
from ..execution import (
    EndedBy,
    Event,
    Facts,
    Fault,
    KeeperStarted,
    Lost,
    NotStarted,
    ProofMethod,
    Record,
    Started,
    Status,
    Tree,
    Unresolved,
    Verdict,
    judge,
    replay,
)
from ..keeper import append_if_open
from ..process import Root
from .steps import Wait

if TYPE_CHECKING:
    from ..execution import JournalContent, Machine, Member
    from ..process import Surroundings
    from ..store import RunFolder
    from .steps import Steps

__all__ = ["Reconciler"]

ZYGOTE_PATIENCE_S = 10.0  # a zygote that lives ends a dead keeper's tree itself, within its grace and the limit of KILL
LOOK_AGAIN_S = 0.02  # neither the death of a foreign zygote nor a line in a journal comes as an event to a host that is no parent
WRITE_LIMIT_S = 2.0  # a lock that is held for longer belongs to a keeper or a zygote at work, whose word counts
FOUND_GRACE_S = 1.0
FOUND_LIMIT_S = 5.0


class Reconciler:
    """Carries out the table for one host."""

    def __init__(self, machine: Machine, surroundings: Surroundings) -> None:
        self._machine = machine
        self._surroundings = surroundings

    def is_here(self, record: Record) -> bool:
        """Tell whether its processes can be seen from here: the same machine, boot and pid namespace."""
        same_machine, same_boot, same_pid_namespace = self._compare(record.machine)
        return same_machine and same_boot and same_pid_namespace

    def _compare(self, machine: Machine) -> tuple[bool, bool, bool]:
        here = self._machine
        same_machine = machine.id == here.id and (bool(machine.id) or machine.hostname == here.hostname)
        return same_machine, machine.boot_id == here.boot_id, machine.pid_namespace == here.pid_namespace

    def look(self, folder: RunFolder) -> tuple[Record, Verdict]:
        """Return the journal's record and the table's verdict, without acting on it."""
        record, _, verdict = self._assess(folder)
        return record, verdict

    def reconcile(self, folder: RunFolder, *, until: float | None = None) -> Steps[Record]:
        """Return the record after acting on the verdict; with ``until`` it may come back as last known (``stale``)."""
        limit = time.monotonic() + ZYGOTE_PATIENCE_S
        while True:
            record, content, verdict = self._assess(folder)
            if verdict is Verdict.ENDED:
                return record
            if verdict is Verdict.ASK_KEEPER:
                return changed(record, second_net=self._zygote_works(content))
            if verdict is Verdict.ELSEWHERE:
                return changed(record, elsewhere=record.machine.hostname)
            if not self._zygote_works(content) or verdict is Verdict.REBOOTED or time.monotonic() >= limit:
                break
            if until is not None and time.monotonic() >= until:
                return changed(record, stale=True)
            yield Wait(until=time.monotonic() + LOOK_AGAIN_S)
        return (yield from self._act(verdict, record, content, folder))

    def _assess(self, folder: RunFolder) -> tuple[Record, JournalContent, Verdict]:
        alive = folder.keeper_alive()  # before the journal is read: a keeper that was gone by then has sealed what it had to say
        record, content = _read(folder)
        same_machine, same_boot, same_pid_namespace = self._compare(record.machine)
        searchable = same_machine and same_boot and same_pid_namespace and not alive and not record.ended
        facts = Facts(
            status=record.status,
            same_machine=same_machine,
            same_boot=same_boot,
            same_pid_namespace=same_pid_namespace,
            keeper_alive=alive,
            keeper_seen=any(isinstance(event, KeeperStarted) for event in content.events) or folder.has_traces_of_a_keeper(),
            members=len(self._members(record.id, content)) if searchable else 0,
            lifetime=record.lifetime.effective,
        )
        return record, content, judge(facts)

    def _members(self, execution_id: str, content: JournalContent) -> tuple[Member, ...]:
        started = next((event for event in content.events if isinstance(event, Started)), None)
        root = None if started is None else Root(started.pid, started.start_ticks)
        return self._surroundings.find_members(execution_id, root)

    def _zygote_works(self, content: JournalContent) -> bool:
        """Tell whether the zygote that will end a dead keeper's tree, and write so, is alive."""
        keeper = next((event for event in content.events if isinstance(event, KeeperStarted)), None)
        if keeper is None or keeper.zygote_pid is None or keeper.zygote_start_ticks is None:
            return False
        return self._surroundings.start_ticks(keeper.zygote_pid) == keeper.zygote_start_ticks

    def _act(self, verdict: Verdict, record: Record, content: JournalContent, folder: RunFolder) -> Steps[Record]:
        match verdict:
            case Verdict.REBOOTED:
                event: Event = Lost(at=_now(), ended_by=EndedBy.HOST_REBOOTED, tree=_unproved())
            case Verdict.NEVER_STARTED:
                fault = Fault(code="spawn_failed", message="No keeper lived to take it; nothing ran.", hint="Start it again.")
                event = NotStarted(at=_now(), ended_by=EndedBy.START_ERROR, error=fault)
            case Verdict.LEAVE_SURVIVORS:
                event = self._admit(record, content)
            case Verdict.STOP_SURVIVORS:
                yield from self.stop_found(record.id)
                event = self._admit(record, content)
            case _:
                event = Lost(at=_now(), ended_by=EndedBy.KEEPER_LOST, tree=_unproved())
        return (yield from self._write(folder, event))

    def stop_found(self, execution_id: str, *, grace_s: float = FOUND_GRACE_S) -> Steps[None]:
        """End what carries the execution's id: TERM, grace, then KILL until nothing is found or the limit comes."""
        for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, FOUND_LIMIT_S)):
            until = time.monotonic() + patience_s
            while self._surroundings.signal_found(execution_id, number) and time.monotonic() < until:
                yield Wait(until=time.monotonic() + LOOK_AGAIN_S)
                if number == signal.SIGTERM:
                    yield from self._await_absence(execution_id, until)
                    break

    def _await_absence(self, execution_id: str, until: float) -> Steps[None]:
        while time.monotonic() < until and self._surroundings.find_members(execution_id, None):
            yield Wait(until=time.monotonic() + LOOK_AGAIN_S)

    def _admit(self, record: Record, content: JournalContent) -> Event:
        survivors = self._members(record.id, content)
        if survivors:
            return Unresolved(at=_now(), tree=Tree(proved=False, method=ProofMethod.NONE, survivors=survivors))
        return Lost(at=_now(), ended_by=EndedBy.KEEPER_LOST, tree=_unproved())

    def _write(self, folder: RunFolder, event: Event) -> Steps[Record]:
        until = time.monotonic() + WRITE_LIMIT_S
        while True:
            known, _ = _read(folder)
            if known.ended or (isinstance(event, Unresolved) and _same_survivors(known, event)):
                return known
            try:
                append_if_open(folder.path, event)
            except BlockingIOError:  # somebody looks at the lock, or writes the same
                if time.monotonic() >= until:
                    return changed(known, stale=True)
                yield Wait(until=time.monotonic() + LOOK_AGAIN_S)
            else:
                return _read(folder)[0]


def _read(folder: RunFolder) -> tuple[Record, JournalContent]:
    spec, content = folder.spec(), folder.journal()
    return replay(spec, content.events), content


def _same_survivors(known: Record, event: Unresolved) -> bool:
    if known.status is not Status.UNRESOLVED or known.tree is None:
        return False
    return {member.pid for member in known.tree.survivors} == {member.pid for member in event.tree.survivors}


def _unproved() -> Tree:
    return Tree(proved=False, method=ProofMethod.NONE)


def _now() -> datetime:
    return datetime.now(UTC)
