"""What may follow what: the fold of events over a spec, against the table."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.data import changed
from proctor.errors import ErrorCode, TransitionError
from proctor.execution import (
    CAUSES,
    ENDINGS,
    TRANSITIONS,
    UNFINISHED,
    Drained,
    Ended,
    EndedBy,
    Event,
    Fault,
    Forced,
    KeeperStarted,
    Lifetime,
    LifetimePair,
    Lost,
    Machine,
    Member,
    NotStarted,
    OutputCounts,
    ProofMethod,
    Record,
    RootEnded,
    Spec,
    Started,
    Status,
    StopAsked,
    Tree,
    Unresolved,
    advance,
    record_from_json,
    record_of,
    record_to_json,
    replay,
)

from .strategies import START, events, specs

MACHINE = Machine(id="m", boot_id="b", pid_namespace="4026531836", hostname="here")
GONE = Tree(proved=True, method=ProofMethod.CHILDREN_REAPED)
COUNTS = OutputCounts(bytes=3, kept_bytes=3)
KEEPER = KeeperStarted(at=START, pid=10, start_ticks=100, zygote_pid=9, zygote_start_ticks=90)
STARTED = Started(at=START, pid=11, start_ticks=110, process_started_at=START)
LEFT = (Member(pid=12, command="sleep 300"),)
EXITED = RootEnded(at=START, exit_code=0, signal=None)
ENDED = Ended(at=START + timedelta(seconds=2), tree=GONE, output=COUNTS, duration_s=2.0)


def asked(ended_by: EndedBy = EndedBy.STOP, by: str = "person") -> StopAsked:
    return StopAsked(at=START, ended_by=ended_by, by=by, reason="enough")


def drained(*, stopping: bool) -> Drained:
    return Drained(at=START, left=LEFT, stopping=stopping, output=COUNTS)


def spec_of(lifetime: Lifetime = Lifetime.CALL, session: str | None = None) -> Spec:
    pair = LifetimePair(requested=lifetime, effective=lifetime)
    return Spec(id="0" * 26, machine=MACHINE, lifetime=pair, cwd="/", created_at=START, command="true", session=session)


def after(*happened: Event, spec: Spec | None = None) -> Record:
    return replay(spec or spec_of(), happened)


@pytest.mark.requirement("I2-transitions")
@settings(max_examples=400)
@given(spec=st.builds(spec_of, st.sampled_from(Lifetime), st.sampled_from([None, "s"])), happening=st.lists(events, max_size=12))
def test_no_order_of_events_leads_to_a_state_that_the_table_does_not_allow(spec: Spec, happening: list[Event]) -> None:
    record = record_of(spec)
    for event in happening:
        try:
            following = advance(record, event)
        except TransitionError as error:
            assert error.code is ErrorCode.STORE_CORRUPT  # noqa: PT017 - whether it is raised depends on the order
            continue
        assert record.status in UNFINISHED
        assert following.status is record.status or following.status in TRANSITIONS[record.status]
        if following.ended:
            assert following.ended_by in CAUSES[following.status]
            assert following.ended_at is not None
        else:
            assert following.ended_at is None
        if record.stop is not None:
            assert following.stop == record.stop
        record = following


@pytest.mark.requirement("I2-transitions")
@pytest.mark.parametrize("ending", sorted(ENDINGS))
@given(event=events)
def test_nothing_leaves_an_ending(ending: Status, event: Event) -> None:
    record = changed(record_of(spec_of()), status=ending)
    with pytest.raises(TransitionError, match=ending.value):
        advance(record, event)


@pytest.mark.requirement("I2-transitions")
def test_the_table_is_closed_and_every_state_in_it_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(Status)
    assert set(Status) == ENDINGS | UNFINISHED
    assert all(not TRANSITIONS[ending] for ending in ENDINGS)
    assert set().union(*TRANSITIONS.values()) == set(Status) - {Status.CREATED}


@pytest.mark.requirement("I2-transitions")
def test_the_table_allows_exactly_what_can_happen() -> None:
    tree_alive = Tree(proved=False, method=ProofMethod.NONE, survivors=LEFT)
    happening: list[Event] = [
        KEEPER,
        STARTED,
        *(NotStarted(at=START, ended_by=cause) for cause in (EndedBy.START_ERROR, EndedBy.POLICY, EndedBy.STOP)),
        *(asked(cause) for cause in (EndedBy.STOP, EndedBy.TIMEOUT)),
        EXITED,
        drained(stopping=False),
        Unresolved(at=START, tree=tree_alive),
        ENDED,
        Lost(at=START, ended_by=EndedBy.KEEPER_LOST, tree=GONE),
    ]
    happened: set[tuple[Status, Status]] = set()
    seen: dict[str, Record] = {}
    waiting = [record_of(spec_of())]
    while waiting:
        record = waiting.pop()
        for event in happening:
            with suppress(TransitionError):
                following = advance(record, event)
                happened.add((record.status, following.status))
                if repr(following) not in seen:
                    seen[repr(following)] = following
                    waiting.append(following)
    assert {(before, after) for before, after in happened if before is not after} == {
        (before, after) for before, following in TRANSITIONS.items() for after in following
    }


def test_every_cause_belongs_to_exactly_one_ending() -> None:
    assert sorted(cause for causes in CAUSES.values() for cause in causes) == sorted(EndedBy)


@pytest.mark.requirement("I2-transitions")
@pytest.mark.parametrize(
    ("happened", "status", "ended_by"),
    [
        ((), Status.CREATED, None),
        ((KEEPER,), Status.CREATED, None),
        ((KEEPER, STARTED), Status.RUNNING, None),
        ((KEEPER, STARTED, EXITED), Status.RUNNING, None),
        ((KEEPER, STARTED, EXITED, ENDED), Status.EXITED, EndedBy.EXIT),
        ((KEEPER, STARTED, RootEnded(at=START, exit_code=None, signal="KILL"), ENDED), Status.EXITED, EndedBy.SIGNAL),
        ((KEEPER, STARTED, EXITED, drained(stopping=False)), Status.LINGERING, None),
        ((KEEPER, STARTED, EXITED, drained(stopping=False), ENDED), Status.EXITED, EndedBy.EXIT),
        ((KEEPER, STARTED, EXITED, drained(stopping=False), asked(), ENDED), Status.CANCELLED, EndedBy.STOP),
        ((KEEPER, STARTED, asked()), Status.STOPPING, EndedBy.STOP),
        ((KEEPER, STARTED, asked(), Forced(at=START), ENDED), Status.CANCELLED, EndedBy.STOP),
        ((KEEPER, STARTED, asked(EndedBy.TIMEOUT), EXITED, ENDED), Status.TIMED_OUT, EndedBy.TIMEOUT),
        ((KEEPER, STARTED, asked(EndedBy.TIMEOUT), Unresolved(at=START, tree=GONE)), Status.UNRESOLVED, EndedBy.TIMEOUT),
        ((KEEPER, STARTED, asked(EndedBy.TIMEOUT), Unresolved(at=START, tree=GONE), ENDED), Status.TIMED_OUT, EndedBy.TIMEOUT),
        ((KEEPER, STARTED, Unresolved(at=START, tree=GONE), asked(), ENDED), Status.CANCELLED, EndedBy.STOP),
        ((NotStarted(at=START, ended_by=EndedBy.START_ERROR),), Status.FAILED, EndedBy.START_ERROR),
        ((NotStarted(at=START, ended_by=EndedBy.POLICY),), Status.DENIED, EndedBy.POLICY),
        ((KEEPER, NotStarted(at=START, ended_by=EndedBy.OWNER_GONE)), Status.CANCELLED, EndedBy.OWNER_GONE),
        ((KEEPER, STARTED, Lost(at=START, ended_by=EndedBy.KEEPER_LOST, tree=GONE)), Status.LOST, EndedBy.KEEPER_LOST),
        ((KEEPER, STARTED, asked(), Lost(at=START, ended_by=EndedBy.HOST_REBOOTED, tree=GONE)), Status.LOST, EndedBy.HOST_REBOOTED),
    ],
)
def test_a_life_leads_where_the_table_says(happened: tuple[Event, ...], status: Status, ended_by: EndedBy | None) -> None:
    record = after(*happened)
    assert (record.status, record.ended_by) == (status, ended_by)


@pytest.mark.requirement("I2-transitions")
@pytest.mark.parametrize(
    "happened",
    [
        (ENDED,),
        (KEEPER, ENDED),
        (STARTED, STARTED),
        (STARTED, NotStarted(at=START, ended_by=EndedBy.START_ERROR)),
        (NotStarted(at=START, ended_by=EndedBy.EXIT),),
        (NotStarted(at=START, ended_by=EndedBy.TIMEOUT),),
        (STARTED, EXITED, ENDED, asked()),
        (STARTED, Lost(at=START, ended_by=EndedBy.EXIT, tree=GONE)),
        (STARTED, asked(EndedBy.EXIT)),
        (STARTED, asked(EndedBy.KEEPER_LOST)),
    ],
    ids=repr,
)
def test_what_cannot_have_happened_is_refused_and_the_words_say_what_to_do(happened: tuple[Event, ...]) -> None:
    with pytest.raises(TransitionError, match=r"cannot follow.*journal\.jsonl"):
        after(*happened)


@pytest.mark.requirement("O-TC-03")
def test_the_cause_is_that_of_the_first_who_asked_whatever_the_root_answers() -> None:
    record = after(KEEPER, STARTED, asked(EndedBy.TIMEOUT, "system"), asked(EndedBy.STOP, "person"), EXITED, ENDED)
    assert (record.status, record.exit_code, record.timed_out, record.cancelled) == (Status.TIMED_OUT, 0, True, False)
    assert record.stop is not None
    assert record.stop.by == "system"


def test_the_facts_of_the_events_are_in_the_record() -> None:
    record = after(KEEPER, STARTED, EXITED, drained(stopping=True), ENDED)
    assert (record.keeper_pid, record.second_net, record.pid, record.started_at) == (10, True, 11, START)
    assert (record.exit_code, record.signal, record.lingering, record.duration_s) == (0, None, LEFT, 2.0)
    assert (record.output.bytes, record.tree, record.ended_at) == (3, GONE, START + timedelta(seconds=2))


def test_a_start_error_is_in_the_record() -> None:
    fault = Fault(code="program_not_found", message="no such program", hint="install it")
    record = after(NotStarted(at=START, ended_by=EndedBy.START_ERROR, error=fault))
    assert (record.error, record.cancelled, record.pid, record.exit_code) == (fault, False, None, None)


@pytest.mark.parametrize(
    ("lifetime", "session", "stopping", "effective"),
    [
        (Lifetime.CALL, None, False, Lifetime.DETACHED),
        (Lifetime.CALL, "s", False, Lifetime.SESSION),
        (Lifetime.CALL, "s", True, Lifetime.CALL),
        (Lifetime.HOST, None, False, Lifetime.HOST),
    ],
)
def test_what_is_kept_lingering_outlives_its_call(lifetime: Lifetime, session: str | None, effective: Lifetime, *, stopping: bool) -> None:
    record = after(KEEPER, STARTED, EXITED, drained(stopping=stopping), spec=spec_of(lifetime, session))
    assert record.lifetime == LifetimePair(requested=lifetime, effective=effective)


@settings(deadline=None)
@given(spec=specs, happening=st.lists(events, max_size=6))
def test_a_record_of_any_kind_survives_its_json(spec: Spec, happening: list[Event]) -> None:
    record = record_of(spec)
    for event in happening:
        try:
            record = advance(record, event)
        except TransitionError:
            continue
    assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record


def test_what_is_not_known_is_null_and_never_false() -> None:
    told = record_to_json(record_of(spec_of()))
    unknown = [
        "exit_code",
        "signal",
        "started_at",
        "ended_at",
        "duration_s",
        "pid",
        "keeper_pid",
        "second_net",
        "tree",
        "ended_by",
        "error",
    ]
    assert {name: told[name] for name in unknown} == dict.fromkeys(unknown)
