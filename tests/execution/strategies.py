"""Values of every kind that an execution's data can hold, for property tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from proctor.execution import (
    Drained,
    Ended,
    EndedBy,
    Event,
    Fault,
    Forced,
    KeeperStarted,
    Lifetime,
    LifetimePair,
    Limits,
    Lost,
    Machine,
    Member,
    NotStarted,
    OnLinger,
    OutputCounts,
    ProofMethod,
    RootEnded,
    Spec,
    Started,
    StopAsked,
    Streams,
    Tree,
    Unresolved,
    make_id,
)

START = datetime(2026, 12, 1, tzinfo=UTC)

times = st.integers(0, 10**12).map(lambda microseconds: START + timedelta(microseconds=microseconds))
pids = st.integers(1, 1 << 22)
ticks = st.integers(0, 1 << 50)
texts = st.text(max_size=8)
seconds = st.floats(0, 1e6)
sizes = st.integers(0, 1 << 50)
ids = st.builds(make_id, st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))

members = st.builds(
    Member,
    pid=pids,
    started_at=st.none() | times,
    command=texts,
    holds_output=st.none() | st.booleans(),
    listening=st.lists(st.integers(1, 65_535), max_size=2).map(tuple),
    reason=st.none() | texts,
)
several_members = st.lists(members, max_size=2).map(tuple)
counts = st.builds(OutputCounts, bytes=sizes, kept_bytes=sizes, dropped_bytes=sizes, late_bytes=sizes, incomplete=st.none() | texts)
trees = st.builds(
    Tree,
    proved=st.booleans(),
    method=st.sampled_from(ProofMethod),
    survivors=several_members,
    escalated=st.booleans(),
    signals=st.lists(texts, max_size=2).map(tuple),
    took_ms=seconds,
)
faults = st.builds(Fault, code=texts, message=texts, hint=texts)
causes = st.sampled_from(EndedBy)

events: st.SearchStrategy[Event] = st.one_of(
    st.builds(KeeperStarted, at=times, pid=pids, start_ticks=ticks, zygote_pid=st.none() | pids, zygote_start_ticks=st.none() | ticks),
    st.builds(Started, at=times, pid=pids, start_ticks=ticks, process_started_at=times),
    st.builds(NotStarted, at=times, ended_by=causes, error=st.none() | faults),
    st.builds(StopAsked, at=times, ended_by=causes, by=texts, reason=texts),
    st.builds(RootEnded, at=times, exit_code=st.none() | st.integers(0, 255), signal=st.none() | texts),
    st.builds(Drained, at=times, left=several_members, stopping=st.booleans(), output=counts),
    st.builds(Forced, at=times),
    st.builds(Unresolved, at=times, tree=trees, output=st.none() | counts),
    st.builds(Ended, at=times, tree=trees, output=counts, duration_s=seconds, suspended_s=seconds),
    st.builds(Lost, at=times, ended_by=causes, tree=trees, output=st.none() | counts),
)
limits = st.builds(
    Limits,
    timeout_s=st.none() | seconds,
    idle_timeout_s=st.none() | seconds,
    output_bytes=st.none() | sizes,
    ttl_s=st.none() | seconds,
    grace_s=seconds,
    clamped=st.lists(texts, max_size=2).map(tuple),
)
specs = st.builds(
    Spec,
    id=ids,
    machine=st.builds(Machine, id=texts, boot_id=texts, pid_namespace=texts, hostname=texts),
    lifetime=st.builds(LifetimePair, requested=st.sampled_from(Lifetime), effective=st.sampled_from(Lifetime)),
    cwd=texts,
    created_at=times,
    command=st.none() | texts,
    argv=st.none() | st.lists(texts, max_size=3).map(tuple),
    session=st.none() | texts,
    streams=st.sampled_from(Streams),
    on_linger=st.sampled_from(OnLinger),
    limits=limits,
    notices=st.lists(texts, max_size=2).map(tuple),
)
