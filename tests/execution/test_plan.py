"""A stop under a clock of its own: what it does, in which order, and when it admits that it could not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.execution import FORCE_LIMIT_S, StopPlan, StopStep, next_step

PATIENCE_S = 60.0


def play(
    plan: StopPlan, *, empty_at: float = 1e9, start: float = 100.0, hurried: tuple[float, float] | None = None
) -> list[tuple[float, StopStep]]:
    """Follow a stop until it is proved, or for a while; times are since its start. ``hurried``: a second stop, when and with what grace."""
    now, taken = start, list[tuple[float, StopStep]]()
    while now < start + PATIENCE_S:
        if hurried is not None and now >= start + hurried[0]:
            plan, hurried = plan.within(now, hurried[1]), None
        step, plan, again = next_step(plan, now=now, empty=now >= start + empty_at)
        taken.append((now - start, step))
        if step is StopStep.PROVED:
            return taken
        assert again >= now
        if step is StopStep.WAIT and again == now:
            pytest.fail("a plan that waits must say until when")
        events = [again, start + empty_at, *([] if hurried is None else [start + hurried[0]])]
        now = max(now, min(event for event in events if event >= now)) if again > now else now
    return taken


def first(taken: list[tuple[float, StopStep]], step: StopStep) -> float | None:
    return next((at for at, one in taken if one is step), None)


def count(taken: list[tuple[float, StopStep]], step: StopStep) -> int:
    return sum(one is step for _, one in taken)


@pytest.mark.requirement("I2-stop-plan")
def test_an_unkillable_tree_is_asked_once_forced_after_the_grace_and_admitted_after_five_seconds_of_force() -> None:
    taken = play(StopPlan(grace_s=3.0))
    assert taken[0] == (0.0, StopStep.ASK)
    assert count(taken, StopStep.ASK) == 1
    assert first(taken, StopStep.FORCE) == pytest.approx(3.0)
    assert first(taken, StopStep.ADMIT) == pytest.approx(3.0 + FORCE_LIMIT_S, abs=0.01)
    assert count(taken, StopStep.ADMIT) == 1
    assert taken[-1][1] in {StopStep.FORCE, StopStep.WAIT}


@pytest.mark.requirement("I2-stop-plan")
def test_after_it_was_admitted_force_goes_on_once_a_second() -> None:
    forced = [at for at, step in play(StopPlan(grace_s=0.0)) if step is StopStep.FORCE and at > FORCE_LIMIT_S]
    assert len(forced) >= 50
    assert all(later - earlier == pytest.approx(1.0) for earlier, later in pairwise(forced))


@pytest.mark.requirement("I2-stop-plan")
@given(empty_at=st.floats(0, 30), grace_s=st.floats(0, 10))
def test_an_empty_tree_is_proved_at_the_moment_it_is_empty_and_never_before(empty_at: float, grace_s: float) -> None:
    taken = play(StopPlan(grace_s=grace_s), empty_at=empty_at)
    assert taken[-1][1] is StopStep.PROVED
    assert taken[-1][0] == pytest.approx(empty_at, abs=0.01)
    assert count(taken, StopStep.PROVED) == 1


@pytest.mark.requirement("I2-stop-plan", "O-TK-05")
@given(empty_at=st.floats(0.1, 30), grace_s=st.floats(0, 10))
def test_nothing_is_forced_before_it_was_asked_and_had_its_grace(empty_at: float, grace_s: float) -> None:
    taken = play(StopPlan(grace_s=grace_s), empty_at=empty_at)
    forced = first(taken, StopStep.FORCE)
    assert taken[0][1] is StopStep.ASK
    assert forced is None or forced >= grace_s - 1e-6


@pytest.mark.requirement("I2-stop-plan")
def test_a_tree_that_is_empty_at_once_is_not_even_asked() -> None:
    assert play(StopPlan(grace_s=3.0), empty_at=0.0) == [(0.0, StopStep.PROVED)]


@pytest.mark.requirement("I2-stop-plan", "I2-stop-twice")
def test_a_second_stop_without_grace_forces_now() -> None:
    taken = play(StopPlan(grace_s=60.0), hurried=(1.0, 0.0))
    assert first(taken, StopStep.FORCE) == pytest.approx(1.0)
    assert count(taken, StopStep.ASK) == 1


@pytest.mark.requirement("I2-stop-plan", "I2-stop-twice")
def test_a_second_stop_with_a_longer_grace_does_not_prolong_the_first() -> None:
    taken = play(StopPlan(grace_s=2.0), hurried=(1.0, 50.0))
    assert first(taken, StopStep.FORCE) == pytest.approx(2.0)


@pytest.mark.requirement("I2-stop-plan", "I2-stop-twice")
def test_a_second_stop_before_the_first_was_carried_out_counts_from_the_asking() -> None:
    assert StopPlan(grace_s=9.0).within(100.0, 2.0) == StopPlan(grace_s=2.0)


@pytest.mark.requirement("I2-stop-plan")
@given(grace_s=st.floats(0, 10), hurried=st.tuples(st.floats(0, 20), st.floats(0, 10)), empty_at=st.floats(0, 40))
def test_a_stop_ends_or_is_admitted_within_grace_and_the_time_of_force(
    grace_s: float, hurried: tuple[float, float], empty_at: float
) -> None:
    taken = play(StopPlan(grace_s=grace_s), hurried=hurried, empty_at=empty_at)
    decided = [at for at, step in taken if step in {StopStep.ADMIT, StopStep.PROVED}]
    assert decided[0] <= grace_s + FORCE_LIMIT_S + 0.01
