"""One round: a host starts and stops a nasty tree, somebody is killed at a named point, and everything told about it must be true.

What may be told depends on who was killed where, and nothing else: the table is ``Expected``. The witness looks at the processes while
the journal is watched, so that an ending that claims too much is caught in the act.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import proctor
from proctor import Status
from proctor.errors import ProctorError
from proctor.store import RunFolder, read_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Script

    from proctor import Record
    from proctor.testing import Marker

    from .conftest import Gate, Held

GONE_LIMIT_S = 3.0  # DESIGN section 2: whoever is killed, the tree of a `call` or `host` execution is gone within this
SETTLED_LIMIT_S = 5.0
LOOK_AGAIN_S = 0.005

# Says its steps; each line from the test lets it take the next one. An exception is a step, too: a test expects none.
HOST = """
import json
def said(what, *more):
    print(json.dumps([what, *more]))
    input()
try:
    with proctor.open_sync(home=home) as p:
        said("open")
        execution = p.start(sys.argv[3], lifetime=sys.argv[2], grace=0.2)
        said("started", execution.record.status.value, execution.id)
        record = execution.stop(grace=0.2)
        said("stopped", record.status.value)
        again = p.run(["true"])
        said("again", again.exit_code)
except proctor.ProctorError as error:
    print(json.dumps(["raised", error.code.value, error.message]))
"""

STUBBORN = "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; echo up > up; sleep 600 & wait' & sleep 600 & wait; wait"
POLITE = "echo up > up; setsid sleep 600 & sleep 600 & wait"


@dataclass(frozen=True, slots=True)
class Round:
    """Who is killed at which point, and what may be told of it afterwards."""

    victim: str
    point: str
    may_tell: frozenset[str]
    lifetime: str = "host"
    second: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """The round's name among the tests."""
        more = "" if self.second is None else "-then-" + "-at-".join(self.second)
        return f"{self.victim}-at-{self.point}{more}-{self.lifetime}"


class Stage:
    """Everything that a round plays on."""

    def __init__(self, gate: Gate, script: Callable[..., Script], marker: Marker, home: str, work: Path) -> None:
        self.gate = gate
        self.marker = marker
        self.home = home
        self.work = work
        self._script = script
        self.host: Script

    def raise_curtain(self, command: str, lifetime: str) -> None:
        """Start the host program and hear that it is open."""
        self.host = self._script(HOST, lifetime, command)
        self.hear("open")

    def hear(self, *expected: object) -> list[object]:
        """Return what the host says next; it must begin with what is expected."""
        told: list[object] = json.loads(self.host.line() or '["ended"]')
        assert told[: len(expected)] == list(expected), told
        return told

    def await_command(self) -> None:
        """Wait until the command is up: its traps are set."""
        until = time.monotonic() + SETTLED_LIMIT_S
        while not (self.work / "up").exists():
            assert time.monotonic() < until
            select.select([], [], [], LOOK_AGAIN_S)

    def let_host_on(self) -> None:
        """Let the host take its next step."""
        assert self.host.process.stdin is not None
        with suppress(BrokenPipeError):
            self.host.process.stdin.write("\n")
            self.host.process.stdin.flush()

    def strike(self, victim: str, held: Held) -> float:
        """Kill the victim, see it dead, and let on whom the point held; returns the moment of the kill."""
        pid = self.pid_of(victim, held)
        if victim == "host":
            self.host.process.kill()
            self.host.process.wait()
        else:
            kill(pid)
        moment = time.monotonic()
        held.let_on()
        return moment

    def pid_of(self, victim: str, held: Held) -> int:
        """Return the pid of somebody, at the moment when ``held`` is."""
        if victim == held.role:
            return held.pid
        if victim == "host":
            return self.host.process.pid
        if victim == "keeper":
            return self.gate.pids["keeper"]
        return zygote_of(self.marker, self.host.process.pid)


def zygote_of(marker: Marker, host: int) -> int:
    """Return the pid of the zygote that a host has started."""
    (zygote,) = [one.pid for one in marker.living() if not one.execution and _parent_of(one.pid) == host]
    return zygote


def kill(pid: int) -> None:
    """Kill a process and see it dead."""
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        assert select.select([descriptor], [], [], 5)[0]
    finally:
        os.close(descriptor)


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def watch_to_the_end(stage: Stage, since: float) -> None:
    """Watch until no process of the execution is left; catch a proof that is told too early in the act."""
    while True:
        proved = [record.id for record in told_records(stage.home) if record.ended and record.tree is not None and record.tree.proved]
        living = stage.marker.commands()  # looked at after the journal was read, so a proof in it must hold already
        false_proofs = [process for process in living if process.execution in proved]
        assert not false_proofs, f"proved to be gone, and here they are: {false_proofs}"
        if not living and not kept_alive(stage.home):
            return
        assert time.monotonic() < since + GONE_LIMIT_S, f"left {GONE_LIMIT_S:g} s after the kill: {living}"
        select.select([], [], [], LOOK_AGAIN_S)


def kept_alive(home: str) -> bool:
    """Tell whether a keeper still holds an execution."""
    for name in os.listdir(os.path.join(home, "runs")):
        folder = RunFolder.open(home, name)
        try:
            if folder.keeper_alive():
                return True
        finally:
            folder.close()
    return False


def told_records(home: str) -> list[Record]:
    """Return what the run folders tell now, without asking anybody or writing anything."""
    found: list[Record] = []
    for name in os.listdir(os.path.join(home, "runs")):
        with suppress(ProctorError):  # a start that was cut off before its description was written
            found.append(read_record(home, name))
    return found


def look_anew(home: str) -> list[Record]:
    """Return all records as a new host sees them; none of them may be without an ending any more."""
    began = time.monotonic()
    with proctor.open_sync(home=home) as host:
        left = host.unfinished()
        records = host.runtime.index.recent(10)
    assert left == []
    assert time.monotonic() < began + SETTLED_LIMIT_S
    return records


def judge(stage: Stage, played: Round, record: Record) -> None:
    """Hold what is told against what happened."""
    told = f"{record.status.value}/{record.ended_by.value if record.ended_by else None}"
    assert told in played.may_tell, record
    if record.status is Status.FAILED:
        assert not (stage.work / "up").exists(), "told as never started, and it ran"
    if record.status is Status.CANCELLED and record.started_at is not None:
        assert record.tree is not None
        assert record.tree.proved
