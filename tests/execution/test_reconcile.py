"""Each row of the table for an execution that a host finds (DESIGN section 2)."""

from __future__ import annotations

import itertools

import pytest

from proctor.data import changed
from proctor.execution import ENDINGS, UNFINISHED, Facts, Lifetime, Status, Verdict, judge

FOUND = Facts(
    status=Status.RUNNING,
    same_machine=True,
    same_boot=True,
    same_pid_namespace=True,
    keeper_alive=False,
    keeper_seen=True,
    members=0,
    lifetime=Lifetime.CALL,
)


@pytest.mark.requirement("I2-reconcile")
@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (changed(FOUND, status=Status.EXITED), Verdict.ENDED),
        (changed(FOUND, same_machine=False), Verdict.ELSEWHERE),
        (changed(FOUND, same_pid_namespace=False), Verdict.ELSEWHERE),
        (changed(FOUND, same_boot=False), Verdict.REBOOTED),
        (changed(FOUND, keeper_alive=True), Verdict.ASK_KEEPER),
        (changed(FOUND, status=Status.CREATED, keeper_seen=False), Verdict.NEVER_STARTED),
        (changed(FOUND, status=Status.CREATED), Verdict.LOST),
        (FOUND, Verdict.LOST),
        (changed(FOUND, status=Status.UNRESOLVED), Verdict.LOST),
        (changed(FOUND, members=2), Verdict.STOP_SURVIVORS),
        (changed(FOUND, members=2, lifetime=Lifetime.HOST), Verdict.STOP_SURVIVORS),
        (changed(FOUND, members=2, lifetime=Lifetime.SESSION), Verdict.LEAVE_SURVIVORS),
        (changed(FOUND, members=2, lifetime=Lifetime.DETACHED), Verdict.LEAVE_SURVIVORS),
    ],
)
def test_each_row_has_its_verdict(facts: Facts, verdict: Verdict) -> None:
    assert judge(facts) is verdict


def every_case() -> list[Facts]:
    flags = itertools.product([False, True], repeat=5)
    return [
        Facts(
            status=status,
            same_machine=machine,
            same_boot=boot,
            same_pid_namespace=namespace,
            keeper_alive=alive,
            keeper_seen=seen,
            members=members,
            lifetime=lifetime,
        )
        for (machine, boot, namespace, alive, seen), status, members, lifetime in itertools.product(flags, Status, [0, 1], Lifetime)
    ]


@pytest.mark.requirement("I2-reconcile")
def test_an_ending_is_never_judged_anew() -> None:
    assert {judge(facts) for facts in every_case() if facts.status in ENDINGS} == {Verdict.ENDED}
    assert Verdict.ENDED not in {judge(facts) for facts in every_case() if facts.status in UNFINISHED}


@pytest.mark.requirement("I2-reconcile", "I2-elsewhere")
def test_what_runs_elsewhere_is_never_touched() -> None:
    elsewhere = [facts for facts in every_case() if facts.status in UNFINISHED and not facts.same_machine]
    assert {judge(facts) for facts in elsewhere} == {Verdict.ELSEWHERE}
    other_namespace = [f for f in every_case() if f.status in UNFINISHED and f.same_machine and f.same_boot and not f.same_pid_namespace]
    assert {judge(facts) for facts in other_namespace} == {Verdict.ELSEWHERE}


@pytest.mark.requirement("I2-reconcile", "O-DU-02")
def test_nothing_is_lost_while_its_keeper_lives_or_its_processes_are_there() -> None:
    lost = [facts for facts in every_case() if judge(facts) in {Verdict.LOST, Verdict.NEVER_STARTED}]
    assert lost
    assert not any(facts.keeper_alive or facts.members for facts in lost)
