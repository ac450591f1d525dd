"""One execution, from its assignment to its sealed ending: the keeper's selector loop.

Everything that happens is an event: appended to the journal, folded into the record by ``advance``, told to whoever listens, in this
order. The root process decides completion, never end-of-file: after its end output is drained for at most 250 ms of silence and 2 s in
all. A stop follows ``execution.plan``; only ``waitpid`` saying ECHILD is the proof. Any other way out of this loop is a crash, and then
the zygote ends the tree and writes the ending.
"""

from __future__ import annotations

import base64
import fcntl
import os
import select
import selectors
import signal
import socket
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..data import Data
from ..execution import (
    Drained,
    Ended,
    EndedBy,
    Event,
    Fault,
    Forced,
    KeeperStarted,
    Lifetime,
    NotStarted,
    OnLinger,
    ProofMethod,
    Record,
    RootEnded,
    Started,
    StopAsked,
    StopPlan,
    StopStep,
    Streams,
    Tree,
    Unresolved,
    advance,
    next_step,
    record_of,
)
from ..execution.layout import SESSIONS
from ..process import Root, SpawnError
from .capture import Capture
from .control import Control
from .deadlines import Deadlines
from .feed import Feed
from .protocol import line_of
from .requests import Requests
from .sealing import JournalWriter
from .timing import (
    DOOR_AFTER_S,
    DRAIN_LIMIT_S,
    DRAIN_ROUNDS,
    HANDED_TAIL_BYTES,
    HOST_END_S,
    LAST_WORDS_S,
    OUTPUT_NOTICE_S,
    OWNER_GONE_GRACE_S,
    QUIET_S,
    SEAL_LIMIT_S,
    SEAL_RETRY_S,
    SESSION_CHECK_S,
    SESSION_UNHELD_S,
)

if TYPE_CHECKING:
    from ..execution import Member
    from ..process import Checkpoints, ProcessBackend, Surroundings
    from .assignment import Assignment

__all__ = ["Identity", "Supervisor", "signal_name"]

HELD_BACK_LEAST_BYTES = 65_536
BOUND_TO_HOST = frozenset({Lifetime.CALL, Lifetime.HOST})


class Identity(Data, kw_only=False):
    """Pid and start time (ticks since boot) of a keeper and of its zygote; found out before there is anything to do."""

    pid: int
    start_ticks: int
    zygote_pid: int
    zygote_start_ticks: int | None


class Supervisor:
    """Keeps one execution. ``run`` returns once the ending is sealed."""

    def __init__(
        self,
        assignment: Assignment,
        *,
        backend: ProcessBackend,
        surroundings: Surroundings,
        checkpoints: Checkpoints,
        identity: Identity,
    ) -> None:
        self._assignment = assignment
        self._backend = backend
        self._surroundings = surroundings
        self._reach = checkpoints.reach
        self._selector = selectors.DefaultSelector()
        spec = assignment.spec
        self.record: Record = record_of(spec)
        self.capture = Capture(assignment.folder, spec.limits, split=spec.streams is Streams.SPLIT)
        self._journal = JournalWriter(assignment.folder, make_room=self.capture.spool.make_room)
        self._control = Control(self._selector, Requests(self))
        self.feed: Feed | None = None
        self.root: Root | None = None
        self._identity = identity
        self._deadlines: Deadlines | None = None
        self._plan: StopPlan | None = None
        self._plan_at = 0.0
        self._signals: list[str] = []
        self._empty = False
        self._root_ended_at: float | None = None
        self._drained = False
        self._heard_at = 0.0
        self._told_bytes = 0
        self._held_back_at = max(HELD_BACK_LEAST_BYTES, spec.limits.kept_tail_bytes // 2)
        self._told_at = 0.0
        self._started_at = 0.0
        self._booted_at = 0.0
        self._finished = False
        self._session_checked_at = self._listened_at = time.monotonic()

    # -- life ---------------------------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Keep the execution until nothing of it is left and that is written down."""
        self._listen()
        self._reach("keeper_listening")
        if self._owner_is_gone():
            self._note(NotStarted(at=_now(), ended_by=EndedBy.OWNER_GONE))
            self._finished = True
        else:
            self._start()
        self._control.flush()
        while not self._finished:
            for key, mask in self._selector.select(self._patience()):
                key.data(mask)
            self._step(time.monotonic())
            self._journal.flush()
            self._control.flush()
        self._journal.flush()
        self._control.flush()
        self._seal()

    def _listen(self) -> None:
        self._wake, wake_end = socket.socketpair()
        self._wake.setblocking(False)
        wake_end.setblocking(False)
        self._wake_end = wake_end
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._selector.register(self._wake, selectors.EVENT_READ, self._on_signal)
        starting = self._control.adopt(socket.socket(fileno=self._assignment.connection))
        starting.on_gone = self._on_caller_gone
        starting.wants_output = self._assignment.live_output
        starting.passed_bytes = 0 if self._assignment.live_output else None
        self._selector.register(self._assignment.host, selectors.EVENT_READ, self._on_owner_gone)
        known = self._identity
        self._note(
            KeeperStarted(
                at=_now(),
                pid=known.pid,
                start_ticks=known.start_ticks,
                zygote_pid=known.zygote_pid if self.second_net else None,
                zygote_start_ticks=known.zygote_start_ticks if self.second_net else None,
            )
        )
        self._listened_at = time.monotonic()

    def _start(self) -> None:
        ends = (self._open_stdin(), *self.capture.open(self._selector, self._on_output), *self._open_script())
        self._reach("keeper_spawning")
        try:
            self.root = self._backend.spawn(self._assignment.launch, ends)
        except SpawnError as error:
            fault = Fault(code=error.code.value, message=error.message, hint=error.hint)
            self._note(NotStarted(at=_now(), ended_by=EndedBy.START_ERROR, error=fault))
            self._finished = True
            return
        finally:
            for descriptor in set(ends):
                os.close(descriptor)
        self._reach("keeper_spawned")
        self._started_at = self._heard_at = time.monotonic()
        self._booted_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._deadlines = Deadlines.of(self._assignment.spec.limits, self._started_at)
        started_at = self._surroundings.started_at(self.root.start_ticks)
        self._note(Started(at=_now(), pid=self.root.pid, start_ticks=self.root.start_ticks, process_started_at=started_at))
        self._reach("keeper_started")

    def _open_stdin(self) -> int:
        if self._assignment.stdin is not None:
            return self._assignment.stdin
        if self._assignment.spec.stdin == "pipe":
            reading, writing = os.pipe()
            self.feed = Feed(writing)
            return reading
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def _open_script(self) -> tuple[int, ...]:
        """Return the script's descriptor, for the command's descriptor 3, away from the low numbers that it is copied to."""
        if self._assignment.script is None:
            return ()
        high = fcntl.fcntl(self._assignment.script, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(self._assignment.script)
        return (high,)

    def _seal(self) -> None:
        """Write the ending for good, hang up, and only then care for the disk."""
        self._reach("keeper_ended")
        self._control.finish(LAST_WORDS_S)
        self._hang_up()
        gives_up_at = time.monotonic() + SEAL_LIMIT_S
        while not self._journal.flush() and os.fstat(self._assignment.folder).st_nlink and time.monotonic() < gives_up_at:
            select.select((), (), (), SEAL_RETRY_S)  # not by the selector: the host's end would wake it all the time
        self._journal.sync()

    def _hang_up(self) -> None:
        self.capture.close(self._selector)
        self._control.close()
        signal.set_wakeup_fd(-1)
        self._wake.close()
        self._wake_end.close()

    # -- events -------------------------------------------------------------------------------------------------------------------------

    def _note(self, event: Event) -> None:
        self.record = advance(self.record, event)
        notice = self._journal.add(event) + b"\n"
        if not isinstance(event, RootEnded):  # what comes with it comes in this very turn of the loop: one write for both
            self._journal.flush()
        self._control.tell(notice, lambda peer: peer.wants_events)

    def _on_signal(self, _mask: int) -> None:
        numbers = self._wake.recv(4096)
        if signal.SIGTERM in numbers or signal.SIGHUP in numbers:
            self.stop(EndedBy.SHUTDOWN, by="system", reason="the keeper was told to end")

    def _on_output(self) -> None:
        self._heard_at = time.monotonic()

    def _on_owner_gone(self, _mask: int) -> None:
        self._selector.unregister(self._assignment.host)
        if self.record.lifetime.effective in BOUND_TO_HOST:
            self.stop(EndedBy.OWNER_GONE, by="system", reason="the process that started it is gone", grace_s=OWNER_GONE_GRACE_S)

    def _on_caller_gone(self) -> None:
        if self.record.lifetime.effective is not Lifetime.CALL or self._finished:
            return
        # A process that ends closes its connections just before its pidfd says so (do_exit: exit_files, then exit_notify).
        if select.select([self._assignment.host], [], [], HOST_END_S)[0]:
            return  # the loop hears it next, as the end of the owner
        self.stop(EndedBy.CALLER_CANCELLED, by="caller", reason="the call was given up", grace_s=OWNER_GONE_GRACE_S)

    def _owner_is_gone(self) -> bool:
        if self.record.lifetime.effective not in BOUND_TO_HOST:
            return False
        return any(key.fd == self._assignment.host for key, _ in self._selector.select(0))

    # -- stopping -----------------------------------------------------------------------------------------------------------------------

    def stop(self, ended_by: EndedBy, *, by: str, reason: str, grace_s: float | None = None) -> None:
        """Begin a stop, or join the one that is under way: a second one ends the polite phase."""
        if self._finished or self.record.ended:
            return
        grace_s = self._assignment.spec.limits.grace_s if grace_s is None else grace_s
        if self.record.stop is None:
            self._note(StopAsked(at=_now(), ended_by=ended_by, by=by, reason=reason))
            self._reach("keeper_asked")
        self._plan = StopPlan(grace_s=grace_s) if self._plan is None else self._plan.within(time.monotonic(), grace_s)
        self._plan_at = 0.0

    def _advance_stop(self, now: float) -> None:
        while self._plan is not None and now >= self._plan_at:
            step, self._plan, self._plan_at = next_step(self._plan, now=now, empty=self._empty)
            match step:
                case StopStep.PROVED:
                    self._end()
                    return
                case StopStep.ASK:
                    self._signalled("TERM", "CONT")
                    self._backend.ask(self.root)
                    self._reach("keeper_termed")
                case StopStep.FORCE:
                    self._force()
                case StopStep.ADMIT:
                    self._note(Unresolved(at=_now(), tree=self._tree(proved=False), output=self.capture.counts()))
                case StopStep.WAIT:
                    return
            self._reap()
            if self._empty:
                self._plan_at = now

    def _force(self) -> None:
        if "KILL" not in self._signals:
            self._signalled("KILL")
            self._note(Forced(at=_now()))
            self._reach("keeper_forced")
        self._backend.force()

    def _signalled(self, *names: str) -> None:
        self._signals.extend(name for name in names if name not in self._signals)

    # -- the loop's decisions -----------------------------------------------------------------------------------------------------------

    def _step(self, now: float) -> None:
        self._reap()
        self._hold_back(now)
        if self._deadlines is not None:
            self._deadlines.active_at = self._heard_at
            passed = self._deadlines.passed(now)
            if passed is not None:
                self.stop(passed[0], by="system", reason=passed[1])
                self._deadlines = None
        self._open_door(now)
        self._check_output_limit()
        self._check_session(now)
        self._tell_output(now)
        if self._plan is not None:
            if self._empty:
                self._plan_at = now
            self._advance_stop(now)
        elif self._root_ended_at is not None:
            self._settle(now)

    def _reap(self) -> None:
        reaped = self._backend.reap(self.root)
        self._empty = reaped.empty
        if reaped.root_status is not None:
            self._root_ended_at = time.monotonic()
            self._heard_at = self._root_ended_at
            if self._deadlines is not None:
                self._deadlines.root_ended()
            exit_code, name = _outcome(reaped.root_status)
            self._note(RootEnded(at=_now(), exit_code=exit_code, signal=name))
            self._reach("keeper_root_ended")

    def _settle(self, now: float) -> None:
        """End with a root that ended by itself, or decide about what it left once output is quiet."""
        if self._empty:
            self._end()
            return
        if self._drained:
            return
        ended_at = self._root_ended_at or now
        if now < ended_at + DRAIN_LIMIT_S and now < self._heard_at + QUIET_S:
            return
        self._drained = True
        left = self._members()
        stopping = self._assignment.spec.on_linger is OnLinger.STOP
        if stopping:
            self._plan = StopPlan(grace_s=self._assignment.spec.limits.grace_s)
        else:
            self.capture.spool.mark_late()
        self._note(Drained(at=_now(), left=left, stopping=stopping, output=self.capture.counts()))
        if stopping:
            self._advance_stop(now)

    def _end(self) -> None:
        """Tell the ending of a tree proved empty, after what it left in the pipes; a pipe that a stranger holds is not waited for."""
        for _ in range(DRAIN_ROUNDS):
            if not self.capture.drain(self._selector):
                break
        tree = self._tree(proved=True)
        self._plan = None
        self._finished = True
        now = time.monotonic()
        suspended_s = time.clock_gettime(time.CLOCK_BOOTTIME) - self._booted_at - (now - self._started_at)
        self._reach("keeper_proved")
        self.capture.settle()
        self._hand_over_tail()
        self._note(
            Ended(
                at=_now(),
                tree=tree,
                output=self.capture.counts(),
                duration_s=round(now - self._started_at, 6),
                suspended_s=round(max(0.0, suspended_s), 3),
            )
        )

    def _hand_over_tail(self) -> None:
        """Output that could not be stored exists only here: give it to whoever listens before it is gone."""
        offset, data = self.capture.spool.memory_tail()
        if data:
            offset, data = offset + max(0, len(data) - HANDED_TAIL_BYTES), data[-HANDED_TAIL_BYTES:]
            tail = {"offset": offset, "data": base64.b64encode(data).decode()}
            self._control.tell(line_of({"tail": tail}), lambda peer: peer.wants_events)

    def _tree(self, *, proved: bool) -> Tree:
        asked_at = self._plan.asked_at if self._plan is not None else None
        return Tree(
            proved=proved,
            method=self._backend.proof if proved else ProofMethod.NONE,
            survivors=() if proved else self._members(),
            escalated="KILL" in self._signals,
            signals=tuple(self._signals),
            took_ms=0.0 if asked_at is None else round((time.monotonic() - asked_at) * 1000, 3),
        )

    def _members(self) -> tuple[Member, ...]:
        return self._backend.members(self.capture.names)

    def _open_door(self, now: float) -> None:
        """Let others connect, once the command has lived for longer than most: the two files cost a short one a tenth of its time."""
        if not self._control.listening and now >= self._listened_at + DOOR_AFTER_S and not self._finished:
            self._control.listen(self._assignment.folder)
            self._listened_at = now + SEAL_RETRY_S  # not there again at once, when the disk is full

    def _check_output_limit(self) -> None:
        limit = self._assignment.spec.limits.output_bytes
        if limit is not None and self.record.stop is None and self.capture.spool.total_bytes > limit:
            self.stop(EndedBy.OUTPUT_LIMIT, by="system", reason=f"output went over {limit} bytes")

    def _check_session(self, now: float) -> None:
        if self.record.lifetime.effective is not Lifetime.SESSION or now < self._session_checked_at + SESSION_CHECK_S:
            return
        self._session_checked_at = now
        if _unheld_s(self._assignment) > SESSION_UNHELD_S:
            self.stop(EndedBy.SESSION_CLOSED, by="system", reason="nobody has held the session for 24 h")

    def _hold_back(self, now: float) -> None:
        """Let the command wait while a live reader is so far behind that it would lose output; that is no silence of the command's."""
        passed = [peer.passed_bytes for peer in self._control.peers if peer.passed_bytes is not None]
        behind = bool(passed) and self.capture.spool.total_bytes - min(passed) > self._held_back_at
        self.capture.hold(self._selector, held=behind)
        if behind:
            self._heard_at = now

    def _tell_output(self, now: float) -> None:
        total = self.capture.spool.total_bytes
        if total > self._told_bytes and now >= self._told_at + OUTPUT_NOTICE_S:
            self._told_bytes, self._told_at = total, now
            self._control.tell(line_of({"output": total}), lambda peer: peer.wants_output)

    def _patience(self) -> float | None:
        """Return how long nothing can be due."""
        moments: list[float | None] = [self._deadlines.next_at() if self._deadlines else None]
        if self._plan is not None:
            moments.append(self._plan_at)
        elif self._root_ended_at is not None and not self._drained:
            moments.append(min(self._root_ended_at + DRAIN_LIMIT_S, self._heard_at + QUIET_S))
        if self.capture.spool.total_bytes > self._told_bytes and any(peer.wants_output for peer in self._control.peers):
            moments.append(self._told_at + OUTPUT_NOTICE_S)
        if self.record.lifetime.effective is Lifetime.SESSION:
            moments.append(self._session_checked_at + SESSION_CHECK_S)
        if not self._control.listening:
            moments.append(self._listened_at + DOOR_AFTER_S)
        due = min((moment for moment in moments if moment is not None), default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    # -- what requests need -------------------------------------------------------------------------------------------------------------

    @property
    def second_net(self) -> bool:
        """Whether the zygote that would end the tree in this keeper's place still lives."""
        return os.getppid() == self._identity.zygote_pid

    @property
    def leftovers(self) -> tuple[Member, ...]:
        """The living processes of the tree, now."""
        return self._members() if self.root is not None else ()

    def deliver(self, number: int) -> bool:
        """Send a signal to the root's group; return whether it reached one."""
        return self.root is not None and self._backend.deliver(self.root, number).count > 0

    def watch_feed(self) -> None:
        """Watch standard input for room while something waits for it."""
        if self.feed is None:
            return
        watched = self.feed.descriptor in {key.fd for key in self._selector.get_map().values()} if not self.feed.closed else False
        if self.feed.waiting and not watched:
            self._selector.register(self.feed.descriptor, selectors.EVENT_WRITE, self._on_feed)

    def _on_feed(self, _mask: int) -> None:
        if self.feed is not None:
            self._selector.unregister(self.feed.descriptor)
            self.feed.push()
            self.watch_feed()


def _outcome(status: int) -> tuple[int | None, str | None]:
    if os.WIFSIGNALED(status):
        return None, signal_name(os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status), None


def signal_name(number: int) -> str:
    """Return a signal's name without SIG, or its number where it has none."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)


def _unheld_s(assignment: Assignment) -> float:
    home = os.path.dirname(os.path.dirname(assignment.folder_path))
    try:
        held_at = os.stat(os.path.join(home, SESSIONS, assignment.spec.session or "")).st_mtime
    except OSError:
        held_at = assignment.spec.created_at.timestamp()
    return time.time() - held_at


def _now() -> datetime:
    return datetime.now(UTC)
