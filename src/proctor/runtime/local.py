"""The runtime on this machine: where request, store, keeper and record meet.

A start goes: plan, run folder (locked), row in the index, assignment to the zygote. Everything after that is told by the keeper; this
side folds it into the record. Nothing here is shared between processes but files, so any number of hosts work on one home.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from .. import dialects, workspace
from ..errors import ErrorCode, ExecutionError, KeeperError, RequestError, StoreError
from ..execution import (
    MAXIMUM_TIMEOUT_S,
    Lifetime,
    Limits,
    OnLinger,
    Record,
    Verdict,
    changed,
    encode,
    is_id,
    is_id_prefix,
    make_id,
    record_of,
)
from ..execution.layout import SESSIONS
from ..keeper import Handed, Zygote, pack
from ..process import Checkpoints, HostSurroundings
from ..store import DAY_S, Index, Presence, RunFolder, collect, due, home_path, open_home
from . import bounds
from .environment import Environment
from .link import Link
from .live import Live
from .prepare import Plan, World, now, plan
from .reattach import Reconciler
from .steps import Abandoned
from .view import with_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config import Settings
    from .base import Request
    from .steps import Steps

__all__ = ["LocalRuntime"]

BRIEF_S = 0.05  # a call that is over by then is written into the index once, with its ending
START_LIMIT_S = 60.0  # a start is forks and execs; a machine that takes longer gets an honest error, and the keeper goes on or dies
ZYGOTE_ATTEMPTS = 3
GC_OLDER_THAN_S = 14 * DAY_S  # DESIGN section 4
GC_MAX_BYTES = 5_000_000_000


class LocalRuntime:
    """One host's access to one home. Thread-safe; a fork of the process gets a zygote of its own at its next start."""

    def __init__(
        self,
        *,
        home: str | None = None,
        environ: Mapping[str, str] | None = None,
        environment: Environment | None = None,
        zygote: Zygote | None = None,
    ) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self.home = open_home(
            home or home_path(self._environ, dialects.platform_name(), os.path.expanduser("~")),
            allow_network=self._environ.get("PROCTOR_ALLOW_NETWORK_HOME") == "1",
        )
        self.index = Index.open(self.home)
        self.environment = environment or Environment(self._environ)
        self._surroundings = HostSurroundings()
        self._machine = self._surroundings.machine()
        self.reconciler = Reconciler(self._machine, self._surroundings)
        self._reach = Checkpoints("host", self._environ.get("PROCTOR_CHECKPOINTS")).reach
        self._zygote = zygote
        self._locks: dict[int, threading.Lock] = {}
        self._host_fd: int | None = None
        self._host_pid = 0
        self._bounded_by = bounds.bounded_by(self._environ)
        self._presence = Presence(self.home)
        self._unsaved: deque[tuple[Record, int | None]] = deque()
        self._limits = Limits()
        self._maximum_timeout_s = MAXIMUM_TIMEOUT_S
        self._gc_older_than_s, self._gc_max_bytes = GC_OLDER_THAN_S, GC_MAX_BYTES

    @classmethod
    def for_one_command(cls) -> LocalRuntime:
        """Return a runtime for a process with one thread that runs one command: its zygote is a fork, made before anything is open."""
        zygote = Zygote.fork_for_one()
        try:
            return cls(zygote=zygote)
        except BaseException:
            zygote.close()
            raise

    def configure(self, settings: Settings) -> None:
        """Let settings decide what a request does not say itself: how much is kept, the longest timeout, which variables pass."""
        self._limits = changed(self._limits, kept_head_bytes=settings.kept_head_bytes, kept_tail_bytes=settings.kept_tail_bytes)
        self._maximum_timeout_s = settings.maximum_timeout_s
        self._gc_older_than_s, self._gc_max_bytes = settings.gc_older_than_s, settings.gc_max_bytes
        if settings.env_allow or settings.env_withhold:
            self.environment = Environment(self._environ, allowed=settings.env_allow, withhold=settings.env_withhold)

    # -- starting -----------------------------------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """Start the zygote ahead of the first command."""
        self._ensure_zygote()

    def start(self, request: Request) -> Steps[Live]:
        """Start a command; returns once its root runs, or once it is known that it never will (the record says why)."""
        return (yield from self._started(request, brief=False))

    def _started(self, request: Request, *, brief: bool) -> Steps[Live]:
        """Start a command; one that may be ``brief`` is noted in the index together with its ending, if that comes at once."""
        decided = plan(request, self._world(), execution_id=_new_id(), created_at=now())
        live, handed = self._create(decided, request)
        if not brief:
            self._save_what_can_be()
        try:
            yield from self._follow_start(live)
        except BaseException:
            live.close()
            raise
        finally:
            if handed is not None:
                os.close(handed)
        return live

    def _follow_start(self, live: Live) -> Steps[None]:
        try:
            yield from live.advance_until(lambda: live.started, time.monotonic() + START_LIMIT_S)
        except Abandoned:
            yield from live.stop(by="caller", ended_by="caller_cancelled", reason="the call was given up")
            self.remember(live.record)
            raise
        if live.record.ended:
            self.remember(live.record)
        elif live.record.lifetime.requested is not Lifetime.CALL:
            self._note(live.record, RunFolder.glance(self.home, live.record.id)[1])
        if not live.started:
            raise KeeperError(
                ErrorCode.KEEPER_UNREACHABLE, f"Execution {live.record.id} did not start within {START_LIMIT_S:g} s.", "See `proctor show`."
            )

    def run(self, request: Request) -> Steps[Record]:
        """Run a command to its result; giving up stops the tree, proved, before the giving up goes on."""
        live = yield from self._started(request, brief=True)
        try:
            return (yield from self.finish(live, encoding=request.encoding))
        finally:
            live.close()

    def finish(self, live: Live, *, encoding: str | None = None) -> Steps[Record]:
        """Follow an execution of this host to its result, with the view of its output."""
        try:
            if not (yield from live.advance_until(lambda: live.settled, time.monotonic() + BRIEF_S)):
                self._save_what_can_be()  # it is not over in a moment: let others see it in their lists
                yield from live.advance_until(lambda: live.settled)
        except Abandoned as given_up:
            yield from live.stop(by=given_up.by, ended_by="caller_cancelled", reason=given_up.reason)
            self.remember(live.record)
            raise
        self.remember(live.record)
        return with_view(live.record, live.folder, live.memory_tail, encoding=encoding)

    def _create(self, decided: Plan, request: Request) -> tuple[Live, int | None]:
        spec_json = json.dumps(encode(decided.spec)).encode()
        with self._lock:
            announced = self._presence.announce()
        folder = RunFolder.create(self.home, decided.spec.id, spec_json)
        self._reach("host_described")
        record = record_of(decided.spec)
        # What dies with this host can be noted while its keeper works already; what outlives it must be in the list before it runs.
        outlives = request.lifetime in {Lifetime.SESSION, Lifetime.DETACHED}
        if outlives or not announced:
            self._reserve(record, folder)
        self._reach("host_reserved")
        if request.session is not None:
            _hold_session(self.home, request.session)
        live = Live(record, folder, self.reconciler)
        stdin, ours = self._stdin(request)
        try:
            self._assign(live, spec_json, decided, stdin, live_output=request.live_output)
        finally:
            folder.release_lock()
        self._reach("host_released")
        self._save_what_can_be()  # what came before, while the keeper works
        if not outlives:
            self._note(record, None)
        return live, ours

    def _reserve(self, record: Record, folder: RunFolder) -> None:
        try:
            self.index.reserve(record, session_quota=None)
        except BaseException:
            folder.discard()
            raise

    def _assign(self, live: Live, spec_json: bytes, decided: Plan, stdin: int | None, *, live_output: bool) -> None:
        folder = live.folder
        script = None if decided.script is None else _sealed(decided.script)
        ours, theirs = socket.socketpair()
        if folder.lock is None:
            raise KeeperError(ErrorCode.KEEPER_UNREACHABLE, "The run folder's lock was given away already.", "")
        handed = Handed(
            folder=folder.descriptor, lock=folder.lock, connection=theirs.fileno(), host=self._own_pidfd(), stdin=stdin, script=script
        )
        delivery = pack(spec_json, decided.launch, handed, folder_path=folder.path, live_output=live_output)
        try:
            for _ in range(ZYGOTE_ATTEMPTS):
                if self._ensure_zygote().assign(delivery):
                    self._reach("host_assigned")
                    live.follow(Link(ours, live.hear))
                    return
                self._drop_zygote()
            raise KeeperError(ErrorCode.KEEPER_UNREACHABLE, "No zygote stays alive to start commands.", "See whether something kills it.")
        finally:
            delivery.close()
            theirs.close()
            if script is not None:
                os.close(script)

    @staticmethod
    def _stdin(request: Request) -> tuple[int | None, int | None]:
        """Return the descriptor for the command's standard input, and the one to close here afterwards."""
        if isinstance(request.stdin, int):
            return request.stdin, None
        if isinstance(request.stdin, bytes):
            descriptor = _sealed(request.stdin)
            return descriptor, descriptor
        return None, None

    def _world(self) -> World:
        cwd, notice = bounds.host_cwd(self._environ)
        return World(
            machine=self._machine,
            environment=self.environment,
            host_environ=self._environ,
            platform=dialects.platform(),
            exists=_is_program,
            cwd=cwd,
            cwd_notice=notice,
            find_workspace=self._find_workspace,
            bounded_by=self._bounded_by,
            umask=bounds.current_umask(),
            nice=os.nice(0),
            rlimits=bounds.current_limits(),
            defaults=self._limits,
            on_linger=OnLinger.STOP,
            maximum_timeout_s=self._maximum_timeout_s,
        )

    def _find_workspace(self, cwd: str, given: str | None) -> tuple[str | None, tuple[str, ...]]:
        try:
            found = workspace.find(cwd, given, home=os.path.expanduser("~"))
        except RequestError:
            if given is not None:
                raise
            return None, ()  # started in /, which is nobody's workspace
        return found.root, found.notices

    @property
    def _lock(self) -> threading.Lock:
        """Return the process's own lock: a fork's copy of its parent's may be held by a thread that the fork does not have."""
        return self._locks.setdefault(os.getpid(), threading.Lock())

    def _ensure_zygote(self) -> Zygote:
        with self._lock:
            if self._zygote is not None and not (self._zygote.ours and self._zygote.alive):
                self._zygote.close()  # the fork's copy of its parent's socket, or a dead one's
                self._zygote = None
            if self._zygote is None:
                self._zygote = Zygote.start()
            return self._zygote

    def _drop_zygote(self) -> None:
        with self._lock:
            if self._zygote is not None:
                self._zygote.close()
                self._zygote = None

    def _own_pidfd(self) -> int:
        with self._lock:
            if self._host_fd is None or self._host_pid != os.getpid():
                if self._host_fd is not None:
                    os.close(self._host_fd)
                self._host_fd, self._host_pid = os.pidfd_open(os.getpid()), os.getpid()
            return self._host_fd

    # -- looking ------------------------------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        """Return the whole id for an id, a unique prefix, or ``-`` for the last; raises ``unknown_execution``."""
        self._save_what_can_be()
        if name == "-":
            latest = self.index.latest()
            if latest is None:
                raise _unknown("There is no execution yet.")
            return latest
        if is_id(name):
            return name
        found = self.index.matching(name) if is_id_prefix(name) else []
        if len(found) == 1:
            return found[0]
        if found:
            raise _unknown(f"{name!r} could be any of {', '.join(found[:5])}{' …' if len(found) > len(found[:5]) else ''}.")
        raise _unknown(f"No execution's id begins with {name!r}.")

    def record(self, execution_id: str, *, until: float | None = None) -> Steps[Record]:
        """Return what is known now about one execution, found out where it was not known."""
        record = self.index.get(execution_id)
        if record is not None and record.ended:
            return record
        try:
            folder = RunFolder.open(self.home, execution_id)
        except ExecutionError:
            if record is None:
                raise
            return changed(record, notices=(*record.notices, "folder_gone: The run folder was removed; nothing more can be known."))
        try:
            record = yield from self.reconciler.reconcile(folder, until=until)
        finally:
            folder.close()
        self.remember(record)
        return record

    def attach(self, execution_id: str, *, output: bool = False) -> Steps[Live]:
        """Follow an execution that anybody started; one that has ended can still be read."""
        folder = RunFolder.open(self.home, execution_id)
        try:
            record, verdict = self.reconciler.look(folder)
            live = Live(record, folder, self.reconciler)
            if verdict is Verdict.ASK_KEEPER:
                try:
                    yield from live.attach(output=output)
                except KeeperError:
                    found = yield from self.reconciler.reconcile(folder)
                    live.record = found if found.ended else changed(found, stale=True)
            elif not record.ended:
                live.record = yield from self.reconciler.reconcile(folder)
                self.remember(live.record)
        except BaseException:
            folder.close()
            raise
        return live

    def view(self, record: Record, *, encoding: str | None = None) -> Record:
        """Return the record with the view of its output, where the run folder is still there."""
        try:
            folder = RunFolder.open(self.home, record.id)
        except ExecutionError:
            return record
        try:
            return with_view(record, folder, None, encoding=encoding)
        finally:
            folder.close()

    def unfinished(self, *, until: float | None = None) -> Steps[list[Record]]:
        """Return every execution without an ending, each looked at now; those that turn out to have ended are saved and left out.

        Its keeper alive and its journal as long as when it was read: then the row is what the keeper last said, and nothing more is asked.
        """
        self.save()
        self.index.complete()
        found: list[Record] = []
        read: list[tuple[Record, int]] = []
        for known, length in self.index.unfinished_seen():
            alive, size = RunFolder.glance(self.home, known.id)
            if alive and size == length and self.reconciler.is_here(known):
                found.append(known)
                continue
            record = yield from self.record(known.id, until=until)
            if not record.ended:
                found.append(record)
                if record.elsewhere is None and not record.stale:
                    read.append((record, size))
        self.save()
        if read:
            self.index.put_seen(read)
        return found

    # -- remembering --------------------------------------------------------------------------------------------------------------------

    def remember(self, record: Record) -> None:
        """Note a record for the index; it is written with the next start, list or close. The run folder has the truth already."""
        if record.elsewhere is None and not record.stale:
            self._note(record, None)

    def _note(self, record: Record, length: int | None) -> None:
        with self._lock:
            if self._unsaved and self._unsaved[-1][0].id == record.id:
                self._unsaved.pop()  # an earlier word about the same execution
            self._unsaved.append((record, length))

    def _save_pending(self) -> None:
        while True:
            with self._lock:
                if not self._unsaved:
                    return
                record, length = self._unsaved.popleft()
            try:
                self._put(record, length)
            except StoreError:
                with self._lock:
                    self._unsaved.appendleft((record, length))
                raise

    def _put(self, record: Record, length: int | None) -> None:
        if length is None:
            self.index.put(record)
        else:
            self.index.put_seen([(record, length)])

    def _save_what_can_be(self) -> None:
        """Write what was noted, unless the store refuses (a full disk): the run folders have it, and it is tried again."""
        with suppress(StoreError):
            self._save_pending()

    def save(self) -> None:
        """Write what was noted."""
        self._save_pending()

    def close(self) -> None:
        """Let go of zygote and store; executions are not touched."""
        try:
            self._save_what_can_be()
            self._collect_if_due()
        finally:
            self._presence.withdraw(noted=not self._unsaved)
            self.index.close()
            self._drop_zygote()
            if self._host_fd is not None:
                os.close(self._host_fd)
                self._host_fd = None

    def _collect_if_due(self) -> None:
        """Once a day, the host whose turn it is removes what is old, after its own work is done."""
        with suppress(StoreError, OSError):  # another host, or another day, will do it
            now_s = time.time()
            if due(self.home, now_s):
                collect(self.home, self.index, now_s, older_than_s=self._gc_older_than_s, max_bytes=self._gc_max_bytes)


def _new_id() -> str:
    return make_id(time.time_ns() // 1_000_000, os.urandom(10))


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK)


def _sealed(data: bytes) -> int:
    """Return a read-only view of the bytes as a descriptor that nobody can change any more (memfd_create(2), F_ADD_SEALS)."""
    import fcntl

    descriptor = os.memfd_create("proctor-input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def _hold_session(home: str, name: str) -> None:
    """Note that somebody uses the session now: keepers of lifetime ``session`` go by the time of this file."""
    folder = os.path.join(home, SESSIONS)
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, name)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    os.utime(path)


def _unknown(message: str) -> ExecutionError:
    return ExecutionError(ErrorCode.UNKNOWN_EXECUTION, message, "See `proctor ps --all`.")
