"""The contract of ``ProcessBackend``, run over every implementation there is: real trees in a real keeper's place, and pretended ones.

Each test runs in a forked process of its own, because a backend takes every orphan below its process and reaps whatever it finds.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Protocol

import pytest

import proctor
from proctor import ErrorCode, ProctorError
from proctor.execution import Launch, ProofMethod
from proctor.process import Backend, HostSurroundings, ProcessBackend, Root, SpawnError
from proctor.process.darwin import DarwinBackend, DarwinSurroundings
from proctor.process.windows import WindowsBackend, WindowsSurroundings
from proctor.testing import FakeBackend, apart

if TYPE_CHECKING:
    from collections.abc import Callable


LIMIT_S = 10.0


class Stage(Protocol):
    """How one kind of backend grows the trees that the contract speaks of."""

    backend: ProcessBackend

    def grow(self, shape: str) -> Root:
        """Start a tree of this shape and return once all of it is there."""

    def break_spawn(self) -> Launch:
        """Return a launch that cannot come to anything."""


SHAPES: dict[str, tuple[str, int]] = {  # the script, and how many processes it comes to
    "plain": ("exec sleep 60", 1),
    "ends with 7": ("exit 7", 0),
    "mixed": ("setsid sleep 60 & set -m; sleep 60 & set +m; (sleep 60 & exec sleep 60) & exec sleep 60", 5),
    "daemon": ("setsid -f sleep 60; setsid -f sleep 60", 2),
    "stubborn": ("trap '' TERM HUP INT; sleep 60; sleep 60 & wait", 2),
    "stopped": ("(kill -STOP $(sh -c 'echo $PPID'); exec sleep 60) & setsid sh -c 'kill -STOP $$; exec sleep 60' & wait", 3),
}


class RealStage:
    """Real processes below this one."""

    def __init__(self) -> None:
        self.backend: ProcessBackend = Backend()
        self.backend.adopt()

    def grow(self, shape: str) -> Root:
        script, _ = SHAPES[shape]
        if "set -m" in script:
            script = f"exec bash -c '{script}'"
        before = frozenset(member.pid for member in self.backend.members())
        null = os.open("/dev/null", os.O_RDWR)
        root = self.backend.spawn(_launch("sh", "-c", script), (null, null, null))
        os.close(null)
        _until(lambda: shape == "ends with 7" or self._grown(shape, before))
        return root

    def _grown(self, shape: str, before: frozenset[int]) -> bool:
        if shape == "daemon":
            self.backend.reap(None)
        members = [member for member in self.backend.members() if member.pid not in before]
        if shape == "stopped":
            return [member.reason for member in members].count("stopped") == 2
        shells = shape == "stubborn"
        return sum(member.command == "sleep 60" for member in members) == SHAPES[shape][1] - shells

    def break_spawn(self) -> Launch:
        return _launch("/no/such/program")


class PretendedStage:
    """The fake's table."""

    def __init__(self) -> None:
        self.backend: ProcessBackend = FakeBackend()
        self.backend.adopt()

    def grow(self, shape: str) -> Root:
        fake = self.backend
        assert isinstance(fake, FakeBackend)
        root = fake.spawn(_launch("fake", shape), ())
        match shape:
            case "ends with 7":
                fake.end(root.pid, 7 << 8)
            case "mixed":
                fake.fork(root.pid, new_session=True)
                fake.fork(root.pid, new_group=True)
                fake.fork(fake.fork(root.pid).pid)
            case "daemon":
                fake.fork(root.pid, new_session=True)
                fake.fork(root.pid, new_session=True)
                fake.end(root.pid, 0)
                fake.reap(None)
            case "stubborn":
                deaf = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
                fake.processes[root.pid].ignores = deaf
                fake.fork(root.pid, ignores=deaf)
            case "stopped":
                fake.fork(root.pid, stopped=True)
                fake.fork(root.pid, new_session=True, stopped=True)
        return root

    def break_spawn(self) -> Launch:
        fake = self.backend
        assert isinstance(fake, FakeBackend)
        fake._failing = SpawnError(ErrorCode.PROGRAM_NOT_FOUND, "no")
        return _launch("fake")


STAGES: dict[type, type[Stage]] = {Backend: RealStage, FakeBackend: PretendedStage}
STUBS: tuple[type, ...] = (DarwinBackend, WindowsBackend)
REHEARSAL = "proctor.keeper.rehearsal"  # its stage owns nothing and starts nothing; test_rehearsal shows what it does to a spare keeper


def _launch(*argv: str) -> Launch:
    return Launch(argv=argv, env=dict(os.environ), cwd="/", umask=0o022, nice=os.nice(0))


def _until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < until, "not reached in time"
        select.select([], [], [], 0.005)


def _in_a_process_of_its_own(check: Callable[[Stage], None], stage: type[Stage]) -> None:
    def run() -> None:
        made = stage()
        try:
            check(made)
        finally:
            _end_everything(made.backend)

    apart(run)


def _end_everything(backend: ProcessBackend) -> None:
    until = time.monotonic() + LIMIT_S
    while not backend.reap(None).empty and time.monotonic() < until:
        backend.force()
        select.select([], [], [], 0.002)


def _reap_until_empty(stage: Stage, root: Root) -> int | None:
    statuses: list[int] = []

    def empty() -> bool:
        reaped = stage.backend.reap(root)
        if reaped.root_status is not None:
            statuses.append(reaped.root_status)
        return reaped.empty

    _until(empty)
    assert len(statuses) <= 1, "a status is told once"
    return statuses[0] if statuses else None


@pytest.fixture(params=STAGES, ids=lambda kind: kind.__name__)
def keep(request: pytest.FixtureRequest) -> Callable[[Callable[[Stage], None]], None]:
    return lambda check: _in_a_process_of_its_own(check, STAGES[request.param])


@pytest.mark.requirement("I2-process-contract")
def test_every_implementation_is_listed_here() -> None:
    wanted = {name for name, _ in inspect.getmembers(ProcessBackend, inspect.isfunction) if not name.startswith("_")}
    found: set[type] = set()
    for module in pkgutil.walk_packages(proctor.__path__, "proctor."):
        if module.name.endswith("__main__"):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind is not ProcessBackend and wanted <= set(dir(kind)):
                found.add(kind)
    listed = {*STAGES, *STUBS}
    assert {kind for kind in found if kind.__module__ != REHEARSAL} == listed


@pytest.mark.requirement("I2-process-contract")
def test_a_new_keeper_has_nobody(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        reaped = stage.backend.reap(None)
        assert (reaped.root_status, reaped.count, reaped.empty) == (None, 0, True)
        assert stage.backend.members() == ()
        assert not stage.backend.strays(())
        assert stage.backend.ask(None).count == stage.backend.force().count == 0
        assert stage.backend.proof is not ProofMethod.NONE

    keep(check)


@pytest.mark.requirement("I2-process-contract", "I2-root-group")
def test_a_root_is_a_member_and_keeps_the_tree_from_being_empty(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        root = stage.grow("plain")
        assert [member.pid for member in stage.backend.members()] == [root.pid]
        assert not stage.backend.reap(root).empty
        assert stage.backend.strays(())
        assert not stage.backend.strays({root.pid})
        if isinstance(stage, RealStage):
            assert os.getpgid(root.pid) == os.getsid(root.pid) == root.pid

    keep(check)


@pytest.mark.requirement("I2-process-contract")
def test_a_start_that_fails_leaves_nothing(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        with pytest.raises(SpawnError) as raised:
            stage.backend.spawn(stage.break_spawn(), ())
        assert raised.value.code is ErrorCode.PROGRAM_NOT_FOUND
        assert stage.backend.reap(None) == type(stage.backend.reap(None))(None, 0, empty=True)

    keep(check)


@pytest.mark.requirement("I2-process-contract")
def test_the_roots_status_is_told_once_and_then_nobody_is_left(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        root = stage.grow("ends with 7")
        status = _reap_until_empty(stage, root)
        assert status is not None
        assert os.waitstatus_to_exitcode(status) == 7
        assert stage.backend.reap(root).root_status is None
        assert not stage.backend.strays(())

    keep(check)


@pytest.mark.requirement("I2-process-contract")
def test_orphans_stay_in_the_tree(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        root = stage.grow("daemon")
        members = stage.backend.members()
        assert len(members) == 2
        assert root.pid not in {member.pid for member in members}
        assert not stage.backend.reap(root).empty

    keep(check)


@pytest.mark.requirement("I2-process-contract")
@pytest.mark.parametrize("shape", ["plain", "mixed", "daemon", "stopped"])
def test_asking_reaches_everybody_whatever_session_group_or_state(shape: str, keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        root = stage.grow(shape)
        sent = stage.backend.ask(root)
        assert sent.count >= 1
        assert sent.refused == ()
        status = _reap_until_empty(stage, root)
        if shape != "daemon":
            assert status is not None
            assert os.WTERMSIG(status) == signal.SIGTERM
        assert stage.backend.members() == ()

    keep(check)


@pytest.mark.requirement("I2-process-contract")
def test_forcing_ends_what_does_not_hear(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        root = stage.grow("stubborn")
        stage.backend.ask(root)
        select.select([], [], [], 0.1)  # that nothing happens has no event
        reaped = stage.backend.reap(root)
        assert not reaped.empty
        assert root.pid in {member.pid for member in stage.backend.members()}
        stage.backend.force()
        _until(lambda: stage.backend.force().count == 0)
        assert _reap_until_empty(stage, root) == signal.SIGKILL

    keep(check)


@pytest.mark.requirement("I2-process-contract")
@pytest.mark.parametrize("way", ["ask", "force"])
def test_what_is_spared_is_spared_with_all_below_it(way: str, keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        kept = stage.grow("mixed")
        below = {member.pid for member in stage.backend.members()}
        other = stage.grow("plain")
        if way == "ask":
            stage.backend.ask(other, {kept.pid})
        else:
            stage.backend.force({kept.pid})
        _until(lambda: not stage.backend.members((), {kept.pid}))
        stage.backend.reap(other)
        assert {member.pid for member in stage.backend.members()} == below
        assert not stage.backend.strays({kept.pid})

    keep(check)


@pytest.mark.requirement("I2-process-contract", "I2-identity")
def test_one_signal_goes_to_the_very_root_and_no_other(keep: Callable[[Callable[[Stage], None]], None]) -> None:
    def check(stage: Stage) -> None:
        root = stage.grow("plain")
        impostor = Root(root.pid, root.start_ticks + 1)
        assert stage.backend.deliver(impostor, signal.SIGKILL).count == 0
        select.select([], [], [], 0.05)  # that nothing happens has no event
        assert stage.backend.reap(root).root_status is None
        assert stage.backend.deliver(root, signal.SIGTERM).count == 1
        assert _reap_until_empty(stage, root) == signal.SIGTERM
        assert stage.backend.deliver(root, signal.SIGTERM).count == 0

    keep(check)


@pytest.mark.requirement("I2-process-stubs")
@pytest.mark.parametrize("kind", [*STUBS, DarwinSurroundings, WindowsSurroundings], ids=lambda kind: kind.__name__)
def test_a_stub_says_unsupported_here_for_everything_and_does_nothing(kind: type) -> None:
    contract = ProcessBackend if hasattr(kind, "adopt") else HostSurroundings
    names = [name for name, _ in inspect.getmembers(contract, inspect.isfunction) if not name.startswith("_")]
    assert names
    for name in names:
        method = getattr(kind(), name)
        arguments = [None for parameter in inspect.signature(method).parameters.values() if parameter.default is parameter.empty]
        with pytest.raises(ProctorError) as raised:
            method(*arguments)
        assert raised.value.code is ErrorCode.UNSUPPORTED_HERE
        assert raised.value.hint


if sys.platform != "linux":
    pytest.skip("the real stage needs Linux", allow_module_level=True)
