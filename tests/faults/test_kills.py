"""SIGKILL of host, zygote and keeper at each named point of a start and of a stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .rounds import POLITE, STUBBORN, Round, Stage, judge, look_anew, watch_to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proctor.testing import Marker
    from tests.conftest import Script

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
BURIAL_ROUNDS = [
    Round("keeper", "keeper_started", LOST, second=(victim, point)) for victim in ("host", "zygote") for point in BURYING
]


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
