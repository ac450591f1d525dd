"""SIGKILL of host, zygote and keeper at each named point of a start and of a stop."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import EndedBy, Status

from .rounds import POLITE, STUBBORN, Round, Stage, judge, kill, look_anew, watch_to_the_end, zygote_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Script

    from proctor import SyncProctor
    from proctor.testing import Marker

    from .conftest import Gate

NOT_STARTED = frozenset({"failed/start_error"})
OWNER_GONE = frozenset({"cancelled/owner_gone", "cancelled/caller_cancelled"})
STOPPED = frozenset({"cancelled/stop"})
LOST = frozenset({"lost/keeper_lost"})

BEFORE_A_KEEPER = ("host_described", "host_reserved")
HANDING_OVER = ("host_assigned", "host_released")
NOT_LISTENING = ("keeper_received", "keeper_taken", "zygote_taken")
STARTING = ("keeper_listening", "keeper_spawning", "keeper_spawned", "keeper_started")
STOPPING = ("keeper_asked", "keeper_termed", "keeper_forced", "keeper_root_ended", "keeper_proved")
BURYING = ("zygote_bereft", "zygote_termed", "zygote_proved", "zygote_buried")

START_ROUNDS = [
    *(Round("host", point, NOT_STARTED) for point in BEFORE_A_KEEPER),
    *(Round("host", point, OWNER_GONE) for point in (*HANDING_OVER, *NOT_LISTENING, *STARTING)),
    *(Round("zygote", point, STOPPED | NOT_STARTED) for point in (*BEFORE_A_KEEPER, *HANDING_OVER)),  # taken by a keeper, or by nobody
    *(Round("zygote", point, STOPPED) for point in (*NOT_LISTENING, *STARTING)),
    *(Round("keeper", point, NOT_STARTED | LOST) for point in NOT_LISTENING),
    *(Round("keeper", point, LOST) for point in STARTING),
]
STOP_ROUNDS = [
    *(Round(victim, point, STOPPED) for victim in ("host", "zygote") for point in (*STOPPING, "keeper_ended")),
    *(Round("keeper", point, LOST) for point in STOPPING),
    Round("keeper", "keeper_ended", STOPPED),
]
BURIAL_ROUNDS = [Round("keeper", "keeper_started", LOST, second=(victim, point)) for victim in ("host", "zygote") for point in BURYING]


@pytest.fixture
def stage(gate: Gate, script: Callable[..., Script], marker: Marker, home: str, work: Path) -> Stage:
    return Stage(gate, script, marker, home, work)


def names(played: Round) -> str:
    return played.name


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("played", START_ROUNDS, ids=names)
def test_a_kill_during_a_start_leaves_no_process_and_no_false_word(played: Round, stage: Stage) -> None:
    play_start(stage, played, POLITE)


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("played", STOP_ROUNDS, ids=names)
def test_a_kill_during_a_stop_leaves_no_process_and_no_false_word(played: Round, stage: Stage) -> None:
    play_stop(stage, played)


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("played", BURIAL_ROUNDS, ids=names)
def test_a_second_kill_while_a_dead_keepers_tree_is_ended_leaves_no_process_and_no_false_word(played: Round, stage: Stage) -> None:
    play_start(stage, played, POLITE)


def play_start(stage: Stage, played: Round, command: str) -> None:
    stage.raise_curtain(command, played.lifetime)
    stage.gate.arm(played.point)
    stage.let_host_on()
    held = stage.gate.caught()
    if played.second is not None:
        stage.gate.arm(played.second[1])
    since = stage.strike(played.victim, held)
    victims = {played.victim}
    if played.second is not None:
        since = stage.strike(played.second[0], stage.gate.caught())
        victims.add(played.second[0])
    if "host" not in victims:
        stage.hear("started")
        if played.victim == "zygote":
            stage.let_host_on()
            stage.hear("stopped")
    watch_to_the_end(stage, since)
    if "host" not in victims:
        if played.victim != "zygote":
            stage.let_host_on()
            stage.hear("stopped")
        let_it_run_something_else(stage)
    judge_first(stage, played)


def play_stop(stage: Stage, played: Round) -> None:
    stage.raise_curtain(STUBBORN, played.lifetime)
    stage.let_host_on()
    stage.hear("started", "running")
    stage.await_command()
    stage.gate.arm(played.point)
    stage.let_host_on()
    since = stage.strike(played.victim, stage.gate.caught())
    if played.victim != "host":
        stage.hear("stopped")
    watch_to_the_end(stage, since)
    if played.victim != "host":
        let_it_run_something_else(stage)
    judge_first(stage, played)


def let_it_run_something_else(stage: Stage) -> None:
    """Let the host, which lived through it, run another command: nothing of its own may be broken for good."""
    stage.let_host_on()
    stage.hear("again", 0)
    stage.let_host_on()


def judge_first(stage: Stage, played: Round) -> None:
    records = [record for record in look_anew(stage.home) if record.argv != ("true",)]
    assert len(records) == 1
    judge(stage, played, records[0])


@pytest.mark.requirement("I2-faults")
def test_a_host_whose_zygote_was_killed_starts_another_so_that_somebody_stands_behind_each_keeper(
    host: SyncProctor, marker: Marker
) -> None:
    for _ in range(3):
        record = host.run(["true"])
        assert (record.exit_code, record.second_net) == (0, True)
        kill(zygote_of(marker, os.getpid()))


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("point", [*HANDING_OVER, *NOT_LISTENING, *STARTING])
def test_a_detached_command_whose_host_is_killed_during_its_start_runs_on_and_can_be_stopped(point: str, stage: Stage) -> None:
    stage.raise_curtain(POLITE, "detached")
    stage.gate.arm(point)
    stage.let_host_on()
    stage.strike("host", stage.gate.caught())
    stage.await_command()
    with proctor.open_sync(home=stage.home) as host:
        (record,) = host.unfinished()
        assert record.status in {Status.CREATED, Status.RUNNING}  # its keeper may be about to write that it runs
        stopped = host.stop(record.id)
    assert stopped is not None
    assert (stopped.status, stopped.ended_by) == (Status.CANCELLED, EndedBy.STOP)
    assert stopped.tree is not None
    assert stopped.tree.proved
    assert stage.marker.commands() == []


@pytest.mark.requirement("I2-faults")
@pytest.mark.parametrize("lifetime", ["call", "host", "detached"])
def test_when_all_of_proctor_was_killed_the_next_host_ends_what_is_its_owners_and_tells_the_rest(lifetime: str, stage: Stage) -> None:
    stage.raise_curtain(STUBBORN, lifetime)
    stage.gate.arm("keeper_started")
    stage.let_host_on()
    held = stage.gate.caught()
    stage.await_command()
    pids = [stage.pid_of(victim, held) for victim in ("zygote", "keeper")]
    stage.strike("host", held)
    for pid in pids:
        kill(pid)
    with proctor.open_sync(home=stage.home) as host:
        left = host.unfinished()
        if lifetime == "detached":
            (record,) = left
            assert record.status is Status.UNRESOLVED
            assert record.tree is not None
            assert not record.tree.proved
            assert {member.pid for member in record.tree.survivors} == {process.pid for process in stage.marker.commands()}
            host.stop(record.id)
        else:
            assert left == []
        assert stage.marker.commands() == []
        (record,) = host.runtime.index.recent(10)
        record = host.show(record.id)
    assert (record.status, record.ended_by) == (Status.LOST, EndedBy.KEEPER_LOST)
    assert record.tree is not None
    assert not record.tree.proved


@pytest.mark.soak
@pytest.mark.requirement("I2-faults")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("lifetime", ["call", "host"])
@pytest.mark.parametrize("time", range(2))
@pytest.mark.parametrize("played", [*START_ROUNDS, *STOP_ROUNDS, *BURIAL_ROUNDS], ids=names)
def test_kills_of_a_tree_that_ignores_term_two_hundred_times(played: Round, lifetime: str, time: int, stage: Stage) -> None:
    del time
    again = replace(played, lifetime=lifetime)
    if played in STOP_ROUNDS:
        play_stop(stage, again)
    else:
        play_start(stage, again, STUBBORN)
