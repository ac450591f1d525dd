"""The index answers for lists, prefixes and quotas, for many hosts, threads and forks at once."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from proctor.errors import ErrorCode, ExecutionError, StoreError
from proctor.execution import Status

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.store.conftest import Builder

    from proctor.execution import Record
    from proctor.store import Index

    Host = Callable[..., subprocess.Popen[str]]


def test_a_record_comes_back_as_it_was_put(index: Index, build: Builder) -> None:
    record = build.record(session="s")
    index.put(record)
    assert index.get(record.id) == record
    assert index.get(build.record().id) is None


def test_the_database_is_readable_by_its_owner_only(index: Index, store_home: str) -> None:
    assert index.notices == ()
    modes = {name: os.stat(os.path.join(store_home, name)).st_mode & 0o777 for name in os.listdir(store_home) if name != "runs"}
    assert "proctor.db" in modes
    assert set(modes.values()) == {0o600}


def test_an_ended_row_never_becomes_unfinished_again(index: Index, build: Builder) -> None:
    record = build.record()
    ending = build.ending_of(record)
    index.put(ending)
    index.put(record)
    index.reserve(record, session_quota=None)
    assert index.get(record.id) == ending
    assert index.unfinished() == []


def test_the_latest_is_the_last_that_was_added_even_if_the_clock_went_back(index: Index, build: Builder) -> None:
    assert index.latest() is None
    index.put(build.record())
    earlier = build.record(age=timedelta(hours=1))
    index.put(earlier)
    assert index.latest() == earlier.id
    assert index.recent(1) == [earlier]


def test_matching_gives_newest_first_and_only_what_begins_so(index: Index, build: Builder) -> None:
    records = [build.record(age=timedelta(days=day)) for day in range(30)]
    for record in records:
        index.put(record)
    first = records[0].id
    assert index.matching(first) == [first]
    assert index.matching(first[:1], limit=3) == [record.id for record in records[:3]]
    assert index.matching(first[:14]) == [first]
    assert index.matching("") == index.matching("%") == index.matching(first + "0") == []


def test_unfinished_and_recent_split_by_state_and_session(index: Index, build: Builder) -> None:
    running, ended, other = build.record(session="a"), build.record(session="a", ended=True), build.record(session="b")
    for record in (running, ended, other):
        index.put(record)
    assert index.unfinished() == [running, other]
    assert index.recent(10) == [other, ended, running]
    assert index.recent(10, "a") == [ended, running]
    assert index.recent(1, "a") == [ended]


def test_removed_rows_are_gone_and_unknown_ones_are_no_error(index: Index, build: Builder) -> None:
    kept, gone = build.record(ended=True), build.record(ended=True)
    index.put(kept)
    index.put(gone)
    index.remove([gone.id, build.record().id])
    assert index.recent(10) == [kept]
    ((name, ended_at_s),) = index.oldest_ended()
    assert name == kept.id
    assert abs(ended_at_s - kept.created_at.timestamp()) < 0.002


def test_a_full_session_is_refused_with_the_list_and_others_are_not(index: Index, build: Builder) -> None:
    first, second = build.record(session="s"), build.record(session="s")
    index.reserve(first, session_quota=2)
    index.reserve(second, session_quota=2)
    index.reserve(second, session_quota=2)  # an execution does not stand in its own way
    refused = build.record(session="s")
    with pytest.raises(ExecutionError) as caught:
        index.reserve(refused, session_quota=2)
    assert caught.value.code is ErrorCode.QUOTA_EXCEEDED
    assert first.id in caught.value.message
    assert second.id in caught.value.message
    assert index.get(refused.id) is None
    index.reserve(build.record(session="t"), session_quota=2)
    index.reserve(build.record(), session_quota=2)
    index.put(build.ending_of(first))
    index.reserve(refused, session_quota=2)


def test_many_threads_share_one_index(index: Index, build: Builder) -> None:
    records = [build.record(session="s") for _ in range(80)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda record: index.reserve(record, session_quota=100), records))
        list(pool.map(lambda record: index.put(build.ending_of(record)), records))
    assert {record.id for record in index.recent(100)} == {record.id for record in records}
    assert index.unfinished() == []


@pytest.mark.requirement("O-CO-04", "I2-two-processes")
def test_two_hosts_writing_at_once_lose_nothing_and_mix_nothing(index: Index, host: Host) -> None:
    script = """
index = Index.open(home)
for number in range(50):
    record = add(index, f"{name} {number}", session=name)
    end(index, record, number)
    print(record.id, number, flush=True)
index.close()
"""
    hosts = {name: host(script, name) for name in ("left", "right")}
    expected = {}
    for name, process in hosts.items():
        for line in process.communicate(timeout=30)[0].splitlines():
            execution_id, number = line.split()
            expected[execution_id] = (f"{name} {number}", name, int(number))
    assert [process.returncode for process in hosts.values()] == [0, 0]
    found = {record.id: (record.command, record.session, record.exit_code) for record in index.recent(1000)}
    assert len(found) == 100
    assert found == expected
    assert index.notices == ()


@pytest.mark.requirement("O-CO-04")
def test_hosts_that_race_for_a_quota_get_exactly_that_many(index: Index, host: Host) -> None:
    script = """
from proctor.errors import ExecutionError
index = Index.open(home)
for number in range(20):
    try:
        add(index, name, session="shared", quota=8)
    except ExecutionError as error:
        assert error.code == "quota_exceeded"
index.close()
"""
    hosts = [host(script, name) for name in ("left", "right")]
    for process in hosts:
        process.communicate(timeout=30)
    assert [process.returncode for process in hosts] == [0, 0]
    assert len(index.unfinished()) == 8


@pytest.mark.requirement("O-DU-03")
def test_every_execution_that_was_acknowledged_survives_forty_kills(store_home: str, opened: Callable[..., Index], host: Host) -> None:
    script = """
import random, signal
for round in range(40):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        index = Index.open(home)
        while True:
            record = add(index, f"round {round}")
            os.write(writer, record.id.encode() + b"\\n")
            end(index, record, 0)
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as acknowledged:
        seen = acknowledged.read(27 * random.randint(1, 20))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        seen += acknowledged.read()
    sys.stdout.write(seen.decode())
"""
    process = host(script)
    acknowledged = set(process.communicate(timeout=50)[0].split())
    assert process.returncode == 0
    assert len(acknowledged) >= 40
    index = opened(store_home)
    rows = {record.id for record in index.recent(100_000)}
    assert acknowledged <= rows
    assert rows <= set(os.listdir(os.path.join(store_home, "runs")))
    assert not [notice for notice in index.notices if "damaged" in notice]


def test_a_forked_host_never_uses_the_connection_of_its_parent(store_home: str, opened: Callable[..., Index], host: Host) -> None:
    script = """
index = Index.open(home)
def tell(record):
    os.write(1, record.id.encode() + b"\\n")  # one write: parent and child share the pipe

tell(add(index, "before"))
child = os.fork()
for number in range(20):
    tell(add(index, f"{'parent' if child else 'child'} {number}"))
index.close()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    process = host(script)
    ids = set(process.communicate(timeout=30)[0].split())
    assert process.returncode == 0
    index = opened(store_home)
    assert len(ids) == 41
    assert {record.id for record in index.recent(100)} == ids
    assert index.notices == ()


def test_a_newer_database_is_read_and_never_written(store_home: str, index: Index, build: Builder, opened: Callable[..., Index]) -> None:
    record = build.record()
    index.put(record)
    index.close()
    _execute(store_home, "alter table executions add column later text", "pragma user_version = 99")
    newer = opened(store_home)
    assert newer.recent(5) == [record]
    assert newer.notices[0].startswith("store_newer: ")
    with pytest.raises(StoreError) as caught:
        newer.put(build.record())
    assert caught.value.code is ErrorCode.STORE_NEWER
    assert newer.recent(5) == [record]


def test_a_newer_database_without_the_known_columns_says_that_it_is_newer(
    store_home: str, index: Index, opened: Callable[..., Index]
) -> None:
    index.close()
    _execute(store_home, "drop table executions", "pragma user_version = 99")
    newer = opened(store_home)
    with pytest.raises(StoreError) as caught:
        newer.recent(5)
    assert caught.value.code is ErrorCode.STORE_NEWER


def test_a_database_that_stays_locked_is_an_error_that_says_what_to_do(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.store.connection.BUSY_LIMIT_S", 0.1)
    monkeypatch.setattr("proctor.store.access.BUSY_LIMIT_S", 0.1)
    impatient = opened(store_home)
    holder = sqlite3.connect(os.path.join(store_home, "proctor.db"), isolation_level=None)
    holder.execute("begin immediate")
    try:
        with pytest.raises(StoreError, match="locked") as caught:
            impatient.put(build.record())
        assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
        assert caught.value.hint
        assert index.recent(1) == []  # reading goes on
    finally:
        holder.close()
    impatient.put(build.record())


def test_a_full_disk_is_an_error_that_says_what_to_do(index: Index, build: Builder) -> None:
    index._access.read(lambda connection: connection.execute("pragma max_page_count = 1"))  # SQLite then gives the error of a full disk
    records = [build.record() for _ in range(10)]
    with pytest.raises(StoreError, match="full") as caught:
        _put_all(index, records)
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert "free some space" in caught.value.hint


@pytest.mark.usefixtures("replaced")
def test_a_home_that_was_removed_is_an_error_that_says_what_to_do(store_home: str, index: Index, build: Builder) -> None:
    os.rename(store_home, store_home + "-gone")
    with pytest.raises(StoreError) as caught:
        index.put(build.record())
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    os.rename(store_home + "-gone", store_home)
    record = build.record()
    index.put(record)
    assert index.get(record.id) == record


def test_a_closed_index_refuses_and_closing_twice_does_nothing(index: Index) -> None:
    index.close()
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.recent(1)


def test_an_index_opened_for_reading_changes_no_file(store_home: str, index: Index, build: Builder, opened: Callable[..., Index]) -> None:
    record = build.record()
    index.put(record)
    reader = opened(store_home, read_only=True)
    assert reader.get(record.id) == record
    with pytest.raises(StoreError, match="reading only"):
        reader.put(build.record())


def test_a_row_of_a_status_this_version_does_not_know_does_not_hide_the_others(index: Index, build: Builder) -> None:
    known, strange = build.record(), build.record()
    index.put(known)
    index.put(strange)
    index._access.read(
        lambda c: c.execute("update executions set record = replace(record, 'created', 'dreaming') where id = ?", (strange.id,))
    )
    assert index.recent(10) == [known]
    assert strange.id in index.notices[0]
    with pytest.raises(StoreError, match=strange.id):
        index.get(strange.id)


def test_a_bad_row_is_answered_from_its_run_folder(index: Index, build: Builder) -> None:
    spec = build.spec()
    build.folder(spec)
    assert index.refresh() == 1
    index._access.read(lambda c: c.execute("update executions set record = substr(record, 1, 100)"))
    record = index.get(spec.id)
    assert record is not None
    assert record.status is Status.CREATED
    assert record.command == spec.command


def _put_all(index: Index, records: list[Record]) -> None:
    for record in records:
        index.put(record)


def _execute(home: str, *statements: str) -> None:
    connection = sqlite3.connect(os.path.join(home, "proctor.db"), isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
