"""What a keeper decides, with trees that do what no real tree can be made to do: survive, sleep for ever, die late."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from proctor import EndedBy, ErrorCode, Lifetime, OnLinger, Status
from proctor.execution import ProofMethod, plan
from proctor.keeper import supervise
from proctor.process import SpawnError

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor import Record

    from .conftest import Caller, Stage

FORCE_LIMIT_S = 0.3


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten how long KILL is tried before the survivors are named; one test keeps the real time."""
    monkeypatch.setattr(plan, "FORCE_LIMIT_S", FORCE_LIMIT_S)
    monkeypatch.setattr(plan, "UNRESOLVED_PAUSE_S", 0.05)


def _names(caller: Caller) -> list[str]:
    return [event["event"] for event in caller.events]


@pytest.mark.requirement("I2-unkillable")
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("why", ["refuses", "uninterruptible"])
@pytest.mark.parametrize("who", ["root", "grandchild"])
def test_who_cannot_be_killed_is_named_and_its_later_death_is_the_right_ending(why: str, who: str, stage: Callable[..., Stage]) -> None:
    kept = stage()
    stubborn: list[int] = []

    def spawn(root: Any) -> None:
        chosen = root if who == "root" else kept.backend.fork(kept.backend.fork(root.pid).pid, new_session=True, command="survivor")
        setattr(chosen, why, True)
        stubborn.append(chosen.pid)

    kept.backend.on_spawn = spawn

    def play(caller: Caller) -> None:
        caller.until("started")
        began = time.monotonic()
        caller.ask("stop", by="person", reason="enough")
        told = caller.until("unresolved")
        assert time.monotonic() - began < 0.1 + FORCE_LIMIT_S + 1
        assert (told["tree"]["proved"], told["tree"]["method"]) == (False, "none")
        assert [member["pid"] for member in told["tree"]["survivors"]] == stubborn
        status = caller.ask("status")["ok"]["record"]
        assert (status["status"], status["ended_at"], status["cancelled"]) == ("unresolved", None, True)
        process = kept.backend.processes[stubborn[0]]
        if why == "refuses":
            process.refuses = False
        else:
            kept.backend.wake(process.pid)
        caller.until("ended")

    record = kept.run(play)
    assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.STOP)
    assert record.tree is not None
    assert (record.tree.proved, record.tree.survivors, record.tree.method) == (True, (), ProofMethod.CHILDREN_REAPED)
    assert record.stop is not None
    assert (record.stop.by, record.stop.reason) == ("person", "enough")


@pytest.mark.requirement("I2-unkillable")
def test_survivors_are_named_within_the_grace_and_five_seconds(stage: Callable[..., Stage]) -> None:
    kept = stage(limits={"timeout_s": 0.1, "grace_s": 0.2})
    kept.backend.on_spawn = lambda root: setattr(root, "uninterruptible", True)

    def play(caller: Caller) -> None:
        began = time.monotonic()
        told = caller.until("unresolved")
        assert 5 <= time.monotonic() - began < 0.1 + 0.2 + 5 + 0.7
        assert told["tree"]["survivors"][0]["reason"] == "uninterruptible"
        for process in kept.backend.living:
            kept.backend.wake(process.pid)

    assert kept.run(play).status is Status.TIMED_OUT


@pytest.mark.requirement("I2-unkillable")
@pytest.mark.usefixtures("quick")
def test_the_caller_may_leave_an_unresolved_execution_and_it_is_still_kept(stage: Callable[..., Stage]) -> None:
    kept = stage(lifetime=Lifetime.CALL)
    kept.backend.on_spawn = lambda root: setattr(root, "uninterruptible", True)

    def play(caller: Caller) -> None:
        caller.until("started")
        caller.ask("stop")
        caller.until("unresolved")
        caller.hang_up()
        kept.end_host()
        assert kept.stored().status is Status.UNRESOLVED
        for process in kept.backend.living:
            kept.backend.wake(process.pid)

    assert kept.run(play).status is Status.CANCELLED


@pytest.mark.requirement("I2-nasty-trees")
def test_slow_deaths_are_waited_for_and_the_escalation_is_told(stage: Callable[..., Stage]) -> None:
    kept = stage()
    deaf = frozenset({signal.SIGTERM})

    def spawn(root: Any) -> None:
        for _ in range(4):
            kept.backend.fork(root.pid, ignores=deaf, slow=3)

    kept.backend.on_spawn = spawn

    def play(caller: Caller) -> None:
        caller.until("started")
        caller.ask("stop")
        caller.until("ended")
        assert _names(caller)[-4:] == ["asked", "root_ended", "forced", "ended"]

    record = kept.run(play)
    assert record.tree is not None
    assert (record.tree.proved, record.tree.escalated, record.tree.signals) == (True, True, ("TERM", "CONT", "KILL"))
    assert kept.backend.rounds >= 4


@pytest.mark.requirement("I2-nasty-trees")
def test_new_forks_during_the_force_are_ended_too(stage: Callable[..., Stage]) -> None:
    kept = stage()
    deaf = frozenset({signal.SIGTERM})
    kept.backend.on_spawn = lambda root: setattr(root, "ignores", deaf)

    def breed(number: int) -> None:
        if number <= 5:
            kept.backend.fork(1, new_session=True, ignores=deaf)

    kept.backend.on_force = breed
    record = kept.run(lambda caller: (caller.until("started"), caller.ask("stop"), caller.until("ended")))
    assert record.tree is not None
    assert record.tree.proved
    assert kept.backend.living == []


@pytest.mark.requirement("I2-stop-twice")
@pytest.mark.usefixtures("quick")
def test_a_second_stop_keeps_the_first_cause_and_can_only_shorten_the_grace(stage: Callable[..., Stage]) -> None:
    kept = stage(limits={"grace_s": 30.0})
    kept.backend.on_spawn = lambda root: setattr(root, "ignores", frozenset({signal.SIGTERM}))

    def play(caller: Caller) -> None:
        caller.until("started")
        caller.ask("stop", by="first", reason="one")
        caller.until("asked")
        caller.ask("stop", by="second", reason="two", grace_s=600)
        caller.ask("stop", by="third", reason="three", grace_s=0)
        caller.until("ended")

    began = time.monotonic()
    record = kept.run(play)
    assert time.monotonic() - began < 5
    assert record.stop is not None
    assert (record.stop.by, record.stop.reason) == ("first", "one")
    assert record.limits.grace_s == 30.0


@pytest.mark.requirement("I2-leftover")
def test_leftovers_are_stopped_politely_and_the_ending_stays_the_roots(stage: Callable[..., Stage]) -> None:
    kept = stage(on_linger=OnLinger.STOP)
    left: list[int] = []

    def spawn(root: Any) -> None:
        left.append(kept.backend.fork(root.pid, new_session=True, command="left").pid)
        kept.backend.end(root.pid, 3 << 8)

    kept.backend.on_spawn = spawn

    def play(caller: Caller) -> None:
        drained = caller.until("drained")
        assert ([member["pid"] for member in drained["left"]], drained["stopping"]) == (left, True)
        caller.until("ended")

    record = kept.run(play)
    assert (record.status, record.exit_code, record.stop) == (Status.EXITED, 3, None)
    assert [member.pid for member in record.lingering] == left
    assert record.tree is not None
    assert record.tree.signals == ("TERM", "CONT")


@pytest.mark.requirement("I2-leftover", "I2-lifetime")
@pytest.mark.parametrize(("session", "lifetime"), [(None, Lifetime.DETACHED), ("mine", Lifetime.SESSION)])
def test_leftovers_that_are_kept_outlive_their_call_until_they_are_stopped(
    session: str | None, lifetime: Lifetime, stage: Callable[..., Stage]
) -> None:
    kept = stage(lifetime=Lifetime.CALL, on_linger=OnLinger.KEEP, session=session)

    def spawn(root: Any) -> None:
        kept.backend.fork(root.pid, command="left")
        kept.backend.end(root.pid, 0)

    kept.backend.on_spawn = spawn

    def play(caller: Caller) -> None:
        caller.until("drained")
        kept.end_host()  # the keeper sees it before the next answer, and does not mind
        status = caller.ask("status")["ok"]
        assert (status["record"]["status"], status["record"]["lifetime"]["effective"]) == ("lingering", lifetime.value)
        assert [member["command"] for member in status["leftovers"]] == ["left"]
        caller.ask("stop")
        caller.until("ended")

    record = kept.run(play)
    assert (record.status, record.ended_by, record.exit_code) == (Status.CANCELLED, EndedBy.STOP, 0)


@pytest.mark.requirement("I2-leftover")
def test_leftovers_that_end_by_themselves_end_the_execution_as_exited(stage: Callable[..., Stage]) -> None:
    kept = stage(on_linger=OnLinger.KEEP)

    def spawn(root: Any) -> None:
        kept.backend.fork(root.pid, command="left")
        kept.backend.end(root.pid, 0)

    kept.backend.on_spawn = spawn

    def play(caller: Caller) -> None:
        caller.until("drained")
        (left,) = kept.backend.living
        kept.backend.end(left.pid)
        caller.until("ended")

    record = kept.run(play)
    assert (record.status, record.ended_by, record.tree.proved if record.tree else None) == (Status.EXITED, EndedBy.EXIT, True)


def _waits(caller: Caller) -> None:
    caller.until("ended")


@pytest.mark.requirement("I2-lifetime")
@pytest.mark.parametrize("lifetime", [Lifetime.CALL, Lifetime.HOST])
def test_an_owner_that_is_gone_before_the_spawn_means_that_nothing_is_spawned(lifetime: Lifetime, stage: Callable[..., Stage]) -> None:
    kept = stage(lifetime=lifetime)
    kept.end_host()
    record = kept.run()
    assert (record.status, record.ended_by, record.started_at) == (Status.CANCELLED, EndedBy.OWNER_GONE, None)
    assert kept.backend.launches == []


@pytest.mark.requirement("I2-lifetime")
@pytest.mark.parametrize("lifetime", list(Lifetime))
def test_an_owner_that_goes_takes_along_what_was_bound_to_it(lifetime: Lifetime, stage: Callable[..., Stage]) -> None:
    kept = stage(lifetime=lifetime, session="mine")
    bound = lifetime in {Lifetime.CALL, Lifetime.HOST}

    def play(caller: Caller) -> None:
        caller.until("started")
        kept.end_host()
        if not bound:
            assert caller.ask("status")["ok"]["record"]["status"] == "running"
            caller.ask("stop")
        caller.until("ended")

    record = kept.run(play)
    assert record.ended_by is (EndedBy.OWNER_GONE if bound else EndedBy.STOP)
    assert record.status is Status.CANCELLED


@pytest.mark.requirement("I2-lifetime", "I2-cancel")
@pytest.mark.parametrize("lifetime", [Lifetime.CALL, Lifetime.HOST])
def test_a_caller_that_hangs_up_gives_up_its_call_and_nothing_else(lifetime: Lifetime, stage: Callable[..., Stage]) -> None:
    kept = stage(lifetime=lifetime)

    def play(caller: Caller) -> None:
        caller.until("started")
        caller.hang_up()
        if lifetime is Lifetime.HOST:
            kept.backend.end(kept.backend.living[0].pid, 4 << 8)

    record = kept.run(play)
    if lifetime is Lifetime.CALL:
        assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.CALLER_CANCELLED)
    else:
        assert (record.status, record.exit_code) == (Status.EXITED, 4)


@pytest.mark.requirement("I2-error-codes")
def test_a_start_that_fails_is_told_with_its_reason(stage: Callable[..., Stage]) -> None:
    kept = stage(failing=SpawnError(ErrorCode.PROGRAM_NOT_FOUND, "The program fake was not found.", "Check."))
    record = kept.run(lambda caller: caller.until("not_started"))
    assert (record.status, record.ended_by, record.pid) == (Status.FAILED, EndedBy.START_ERROR, None)
    assert record.error is not None
    assert (record.error.code, record.error.hint) == ("program_not_found", "Check.")


@pytest.mark.requirement("I2-deadlines")
@pytest.mark.parametrize(
    ("limits", "status", "cause"),
    [
        ({"timeout_s": 0.1}, Status.TIMED_OUT, EndedBy.TIMEOUT),
        ({"idle_timeout_s": 0.1}, Status.TIMED_OUT, EndedBy.IDLE_TIMEOUT),
        ({"ttl_s": 0.1}, Status.CANCELLED, EndedBy.TTL),
        ({"timeout_s": 0.1, "ttl_s": 0.15}, Status.TIMED_OUT, EndedBy.TIMEOUT),
        ({"timeout_s": 5.0, "idle_timeout_s": 5.0, "ttl_s": 0.1}, Status.CANCELLED, EndedBy.TTL),
    ],
)
def test_each_deadline_has_its_own_cause(limits: dict[str, float], status: Status, cause: EndedBy, stage: Callable[..., Stage]) -> None:
    began = time.monotonic()
    record = stage(limits=limits).run(_waits)
    assert 0.1 <= time.monotonic() - began < 1.5
    assert (record.status, record.ended_by) == (status, cause)
    assert record.stop is not None
    assert record.stop.by == "system"


@pytest.mark.requirement("I2-deadlines")
def test_a_timeout_is_about_the_root_and_a_time_to_live_about_all(stage: Callable[..., Stage]) -> None:
    kept = stage(limits={"timeout_s": 0.05, "ttl_s": 0.6}, on_linger=OnLinger.KEEP)

    def spawn(root: Any) -> None:
        kept.backend.fork(root.pid, command="left")
        kept.backend.end(root.pid, 0)

    kept.backend.on_spawn = spawn
    record = kept.run(_waits)
    assert (record.status, record.ended_by, record.timed_out, record.exit_code) == (Status.CANCELLED, EndedBy.TTL, False, 0)


@pytest.mark.requirement("I2-lifetime")
def test_a_session_that_nobody_holds_any_more_is_closed(stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "SESSION_CHECK_S", 0.05)
    kept = stage(lifetime=Lifetime.SESSION, session="mine")
    folder = os.path.join(os.path.dirname(os.path.dirname(kept.folder.path)), "sessions")
    os.makedirs(folder, exist_ok=True)
    held = os.path.join(folder, "mine")
    with open(held, "w"):
        pass

    def play(caller: Caller) -> None:
        caller.until("started")
        time_of_last_hold = time.time() - 86_400 - 1
        os.utime(held, (time_of_last_hold, time_of_last_hold))
        caller.until("ended")

    record = kept.run(play)
    assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.SESSION_CLOSED)


@pytest.mark.requirement("I2-shutdown")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_keeper_that_is_told_to_go_stops_its_tree_first(number: int, stage: Callable[..., Stage]) -> None:
    kept = stage(lifetime=Lifetime.DETACHED)

    def play(caller: Caller) -> None:
        caller.until("started")
        os.kill(os.getpid(), number)
        caller.until("ended")

    record = kept.run(play)
    assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.SHUTDOWN)
    assert kept.backend.living == []


@pytest.mark.requirement("I2-stop-of-nothing")
def test_a_stop_that_comes_with_the_end_changes_nothing(stage: Callable[..., Stage]) -> None:
    kept = stage()

    def play(caller: Caller) -> None:
        caller.until("started")
        kept.backend.end(kept.backend.living[0].pid, 0)
        caller.until("ended")
        assert kept.supervisor is not None
        kept.supervisor.stop(EndedBy.STOP, by="late", reason="late")

    record = kept.run(play)
    assert (record.status, record.stop) == (Status.EXITED, None)


def _answered(answer: dict[str, Any]) -> str:
    return str(answer["error"]["code"]) if "error" in answer else "ok"


@pytest.mark.requirement("I2-control")
def test_bad_requests_are_refused_by_name_and_do_no_harm(stage: Callable[..., Stage]) -> None:
    kept = stage()

    def play(caller: Caller) -> None:
        caller.until("started")
        told = [
            _answered(caller.ask("nonsense")),
            _answered(caller.ask("stop", grace_s="soon")),
            _answered(caller.ask("stop", ended_by="boredom")),
            _answered(caller.ask("signal")),
            _answered(caller.ask("signal", number=0)),
            _answered(caller.ask("signal", number=65)),
            _answered(caller.ask("write", data="!!!")),
            _answered(caller.write(b"x")),
            _answered(caller.ask("status", v=99)),
        ]
        assert told == ["invalid_request"] * 7 + ["stdin_closed", "keeper_unreachable"]
        assert caller.ask("status")["ok"]["record"]["status"] == "running"
        assert caller.ask("signal", number=int(signal.SIGTERM)) == {"v": 1, "n": 11, "ok": {}}
        caller.until("ended")

    record: Record = kept.run(play)
    assert (record.status, record.signal, record.stop) == (Status.EXITED, "TERM", None)


@pytest.mark.requirement("I2-journal")
def test_every_event_is_stored_before_it_is_told(stage: Callable[..., Stage]) -> None:
    kept = stage()

    def play(caller: Caller) -> None:
        for name in ("keeper", "started"):
            caller.until(name)
            assert kept.stored().status.value == {"keeper": "created", "started": "running"}[name] or name == "keeper"
        caller.ask("stop")
        caller.until("ended")
        assert kept.stored().ended

    kept.run(play)
