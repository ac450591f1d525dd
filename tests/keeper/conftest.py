"""A keeper's supervisor on a stage: a pretended tree below it, a caller beside it, everything else real."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from proctor.execution import EndedBy, Launch, Lifetime, LifetimePair, Limits, Machine, Record, Spec, encode, make_id, read_journal, replay
from proctor.keeper import LineBuffer, line_of
from proctor.keeper.assignment import Assignment
from proctor.keeper.supervise import Identity, Supervisor
from proctor.process import Checkpoints, HostSurroundings
from proctor.store import RunFolder, open_home
from proctor.testing import FakeBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIMIT_S = 20.0


class Caller:
    """Who started the execution, at the other end of the starting connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(LIMIT_S)
        self._lines = LineBuffer()
        self._waiting: list[dict[str, Any]] = []
        self._numbers = 0
        self.events: list[dict[str, Any]] = []

    def until(self, name: str) -> dict[str, Any]:
        """Return the next event of this name."""
        while True:
            while self._waiting:
                message = self._waiting.pop(0)
                if "event" in message:
                    self.events.append(message)
                    if message["event"] == name:
                        return message
            self._hear()

    def ask(self, op: str, **fields: object) -> dict[str, Any]:
        """Send a request and return its whole answer."""
        self._numbers += 1
        self._connection.sendall(line_of({"n": self._numbers, "op": op, **fields}))
        while True:
            for message in self._waiting:
                if "event" not in message and message.get("n") == self._numbers:
                    self._waiting.remove(message)
                    return message
            self._hear()

    def write(self, data: bytes, *, eof: bool = False) -> dict[str, Any]:
        """Send bytes to the command's standard input."""
        return self.ask("write", data=base64.b64encode(data).decode(), eof=eof)

    def hang_up(self) -> None:
        """Close the connection, as a dead caller does."""
        self._connection.close()

    def _hear(self) -> None:
        data = self._connection.recv(65_536)
        assert data, f"the keeper hung up; it said {self.events}"
        self._waiting.extend(self._lines.feed(data))


class Stage:
    """One execution to keep: its folder, its pretended tree, its caller, and the process that it belongs to."""

    def __init__(self, home: str, *, limits: dict[str, Any] | None = None, failing: Any = None, **spec: Any) -> None:
        lifetime = spec.pop("lifetime", Lifetime.HOST)
        moment = datetime.now(UTC)
        self.spec = Spec(
            **{
                "id": make_id(int(moment.timestamp() * 1000), os.urandom(10)),
                "machine": Machine(id="m", boot_id="b", pid_namespace="p", hostname="h"),
                "lifetime": LifetimePair(requested=lifetime, effective=lifetime),
                "cwd": "/",
                "created_at": moment,
                "argv": ("fake",),
                "limits": Limits(**{"grace_s": 0.1, **(limits or {})}),
                **spec,
            }
        )
        self._main = main = threading.get_ident()
        self.backend = FakeBackend(on_death=lambda: signal.pthread_kill(main, signal.SIGCHLD), failing=failing)
        self.folder = RunFolder.create(home, self.spec.id, json.dumps(encode(self.spec)).encode())
        self.ours, self._theirs = socket.socketpair()
        self.host_end, self._host_gone = os.pipe()
        self.caller = Caller(self.ours)
        self.supervisor: Supervisor | None = None
        self.failures: list[BaseException] = []

    def end_host(self) -> None:
        """Let the process that the execution belongs to be gone, as its pidfd would say."""
        if self._host_gone >= 0:
            os.close(self._host_gone)
            self._host_gone = -1

    def run(self, play: Callable[[Caller], object] | None = None) -> Record:
        """Keep the execution to its sealed ending while ``play`` acts as its caller; return the record of the journal."""
        thread = threading.Thread(target=self._play, args=(play,))
        handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)}
        self.supervisor = self._supervisor()
        thread.start()
        try:
            self.supervisor.run()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            thread.join(LIMIT_S)
        assert not self.failures, self.failures
        return self.stored()

    def stored(self) -> Record:
        """Return the record that the journal amounts to."""
        with open(os.path.join(self.folder.path, "journal.jsonl"), "rb") as file:
            content = read_journal(file.read())
        assert not content.damaged
        return replay(self.spec, content.events)

    def close(self) -> None:
        """Close what the end of a keeper's process would."""
        self.ours.close()
        if self.supervisor is not None:
            self.supervisor._journal.close()
            self.supervisor._selector.close()
        self.end_host()
        os.close(self.host_end)
        self.folder.close()

    def _play(self, play: Callable[[Caller], object] | None) -> None:
        try:
            if play is not None:
                play(self.caller)
        except BaseException as error:  # noqa: BLE001 - the main thread is to tell it
            self.failures.append(error)
            self._give_up()

    def _give_up(self) -> None:
        """Let the supervisor end whatever the play had in mind, so that the failure is told and not a time limit."""
        self.backend.on_force = None
        for process in self.backend.living:
            process.refuses = process.stopped = False
            process.ignores = frozenset()
            self.backend.wake(process.pid)
        assert self.supervisor is not None
        self.supervisor.stop(EndedBy.SHUTDOWN, by="test", reason="the play failed", grace_s=0)
        signal.pthread_kill(self._main, signal.SIGCHLD)

    def _supervisor(self) -> Supervisor:
        assignment = Assignment(
            spec=self.spec,
            launch=Launch(argv=("fake",), env={}, cwd="/", umask=0o022, nice=0),
            folder_path=self.folder.path,
            folder=self.folder.descriptor,
            lock=self.folder.lock or -1,
            connection=self._theirs.detach(),
            host=self.host_end,
            stdin=None,
            script=None,
            live_output=False,
        )
        return Supervisor(
            assignment,
            backend=self.backend,
            surroundings=HostSurroundings(),
            checkpoints=Checkpoints("keeper", None),
            identity=Identity(os.getpid(), 0, os.getppid(), 0),
        )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Set stages up; ``stage(limits={...}, lifetime=..., on_linger=...)``."""
    home = open_home(str(tmp_path / "home"), allow_network=True)
    made: list[Stage] = []

    def make(**options: Any) -> Stage:
        made.append(Stage(home, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
