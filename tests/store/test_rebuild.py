"""Whatever happens to a state file, nothing that was there goes missing without a word."""

from __future__ import annotations

import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from proctor.errors import ErrorCode, StoreError
from proctor.execution import EndedBy, KeeperStarted, NotStarted, Record, RootEnded, Started, Status
from proctor.store import Index, RunFolder, open_home, read_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.store.conftest import Builder

    from proctor.execution import Event

NOW = datetime.now(UTC)
KEEPER = KeeperStarted(at=NOW, pid=10, start_ticks=100)
STARTED = Started(at=NOW, pid=11, start_ticks=101, process_started_at=NOW)
NEVER: tuple[Event, ...] = (KEEPER, NotStarted(at=NOW, ended_by=EndedBy.START_ERROR))
RUNNING: tuple[Event, ...] = (KEEPER, STARTED)

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated to half": lambda content: content[: len(content) // 2],
    "truncated to nothing": lambda _: b"",
    "filled with NULs": lambda content: bytes(len(content)),
    "with 1000 old bytes appended": lambda content: content + content[:1000],
}


def _twenty(build: Builder, index: Index) -> dict[str, Record]:
    records = {}
    for number in range(20):
        spec = build.spec(session="s" if number % 2 else None, age=timedelta(seconds=20 - number))
        build.folder(spec, RUNNING if number % 3 else NEVER)
        records[spec.id] = read_record(build.home, spec.id)
        index.put(records[spec.id])
    return records


def _all(index: Index) -> dict[str, Record]:
    return {record.id: record for record in index.recent(1000)}


def _damage(path: str, how: str) -> None:
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(DAMAGE[how](content))


def _aside(home: str) -> list[str]:
    return [name for name in os.listdir(home) if name.startswith("proctor.db.damaged-") and not name.endswith(("-wal", "-shm"))]


@pytest.mark.requirement("O-DU-03", "I2-index-rebuilt")
@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_database_shows_all_of_its_executions(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index], *, how: str, read_only: bool
) -> None:
    records = _twenty(build, index)
    index.close()
    _damage(os.path.join(store_home, "proctor.db"), how)
    before = set(os.listdir(store_home))
    again = opened(store_home, read_only=read_only)
    assert _all(again) == records
    assert len(again.unfinished()) == 13
    if how == "with 1000 old bytes appended":
        assert again.notices == ()  # SQLite knows its length
    elif read_only:
        assert set(os.listdir(store_home)) - before <= {"proctor.db-wal", "proctor.db-shm"}
    else:
        assert again.notices[0].startswith("index_rebuilt: ")
        assert "20 run folders" in again.notices[0]
        assert all(name in again.notices[0] for name in _aside(store_home))
        assert opened(store_home).notices == ()


@pytest.mark.usefixtures("replaced")
@pytest.mark.requirement("O-DU-03")
@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("part", ["proctor.db", "proctor.db-wal", "proctor.db-shm"])
def test_files_of_a_killed_host_that_are_damaged_show_all_of_its_executions(
    index: Index, build: Builder, opened: Callable[..., Index], tmp_path: Path, *, how: str, part: str
) -> None:
    records = _twenty(build, index)
    copy = str(tmp_path / "copy")
    shutil.copytree(build.home, copy)  # as a kill leaves it: the log was not folded into the database
    os.chmod(copy, 0o700)
    _damage(os.path.join(copy, part), how)
    again = opened(copy)
    assert _all(again) == records


@pytest.mark.requirement("O-DU-03")
def test_rows_that_a_machine_crash_took_from_the_index_come_back(
    index: Index, build: Builder, opened: Callable[..., Index], tmp_path: Path
) -> None:
    early = _twenty(build, index)
    index.close()
    index = opened(build.home)
    spec = build.spec(age=timedelta(seconds=-5))
    build.folder(spec, RUNNING)
    index.put(read_record(build.home, spec.id))
    copy = str(tmp_path / "copy")
    shutil.copytree(build.home, copy)
    os.unlink(os.path.join(copy, "proctor.db-wal"))
    again = opened(copy)
    assert set(_all(again)) == {*early, spec.id}
    assert any(notice.startswith("index_completed: 1 ") for notice in again.notices)
    assert opened(copy).notices == ()


@pytest.mark.requirement("O-DU-03")
def test_a_missing_database_is_rebuilt_and_a_new_home_needs_no_word(store_home: str, index: Index, build: Builder, tmp_path: Path) -> None:
    records = _twenty(build, index)
    index.close()
    os.unlink(os.path.join(store_home, "proctor.db"))
    again = Index.open(store_home)
    assert _all(again) == records
    assert again.notices == ("index_rebuilt: The index was missing and was rebuilt from 20 run folders.",)
    again.close()
    new = Index.open(open_home(str(tmp_path / "new"), allow_network=True))
    assert new.notices == ()
    new.close()


@pytest.mark.usefixtures("replaced")
@pytest.mark.requirement("O-DU-03")
def test_a_database_damaged_while_it_is_open_is_rebuilt_in_the_middle_of_work(store_home: str, index: Index, build: Builder) -> None:
    records = _twenty(build, index)
    index._access.read(lambda connection: connection.execute("pragma wal_checkpoint(truncate)").fetchone())
    path = os.path.join(store_home, "proctor.db")
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    other = sqlite3.connect(path)  # another program's write makes every reader look at the file again
    index._access.read(lambda connection: connection.execute("pragma shrink_memory"))
    assert _all(index) == records
    other.close()
    assert len(_aside(store_home)) == 1
    extra = build.record()
    index.put(extra)
    assert index.get(extra.id) == extra


@pytest.mark.requirement("O-DU-03", "O-DU-04")
def test_of_many_that_find_the_damage_at_once_one_rebuilds(store_home: str, index: Index, build: Builder) -> None:
    records = _twenty(build, index)
    index.close()
    _damage(os.path.join(store_home, "proctor.db"), "filled with NULs")
    with open(os.path.join(store_home, "index.lock"), "w", encoding="utf-8") as lock:
        lock.write("1\n")  # what a lock file says never mattered
    with ThreadPoolExecutor(20) as pool:
        indexes = list(pool.map(lambda _: Index.open(store_home), range(50)))
    try:
        assert all(_all(each) == records for each in indexes)
        assert len(_aside(store_home)) == 1
        assert sum(bool(each.notices) for each in indexes) == 1
    finally:
        for each in indexes:
            each.close()


@pytest.mark.usefixtures("replaced")
@pytest.mark.requirement("O-DU-03")
def test_a_host_whose_database_was_replaced_by_another_goes_on_in_the_new_one(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index]
) -> None:
    records = _twenty(build, index)
    os.rename(os.path.join(store_home, "proctor.db"), os.path.join(store_home, "proctor.db.stolen"))
    other = opened(store_home)
    added = build.record()
    index.put(added)
    index.close()  # must not take the log of the new database away
    records[added.id] = added
    assert _all(other) == records
    second = build.record()
    other.put(second)
    assert opened(store_home).get(second.id) == second


@pytest.mark.requirement("O-DU-03")
@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("database", ["kept", "gone", "damaged"])
def test_a_damaged_spec_is_named_and_hides_no_other(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index], *, how: str, database: str
) -> None:
    records = _twenty(build, index)
    index.close()
    victim = sorted(records)[7]
    folder = os.path.join(store_home, "runs", victim)
    _damage(os.path.join(folder, "spec.json"), how)
    if database == "gone":
        os.unlink(os.path.join(store_home, "proctor.db"))
        del records[victim]
    elif database == "damaged":
        with open(os.path.join(store_home, "proctor.db"), "r+b") as file:
            file.write(bytes(16))  # the header; nothing of it can be read
        del records[victim]
    again = opened(store_home)
    assert _all(again) == records
    assert sorted(os.listdir(folder)) == ["journal.jsonl", "lock", "spec.json"]
    if database != "kept":
        assert any(notice.startswith(f"run_damaged: {victim}: ") for notice in again.notices)
        assert any(notice.startswith(f"run_damaged: {victim}: ") for notice in opened(store_home).notices)
    with pytest.raises(StoreError) as caught:
        read_record(store_home, victim)
    assert caught.value.code is ErrorCode.STORE_CORRUPT
    assert victim in caught.value.message


def test_a_row_that_can_still_be_read_in_a_damaged_database_stands_in_for_a_damaged_folder(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index]
) -> None:
    records = _twenty(build, index)
    index._access.read(lambda connection: connection.execute("pragma user_version = 0"))
    index.close()
    victim = sorted(records)[7]
    _damage(os.path.join(store_home, "runs", victim, "spec.json"), "filled with NULs")
    again = opened(store_home)
    assert _all(again) == records
    assert any(victim in notice for notice in again.notices)


@pytest.mark.requirement("O-DU-03")
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_journal_is_believed_up_to_its_last_good_line_and_the_record_says_so(build: Builder, how: str) -> None:
    spec = build.spec()
    folder = build.folder(spec, (KEEPER, STARTED, RootEnded(at=NOW, exit_code=3, signal=None)))
    _damage(os.path.join(folder, "journal.jsonl"), how)
    record = read_record(build.home, spec.id)
    assert record.status is (Status.RUNNING if "appended" in how else Status.CREATED)
    assert record.exit_code == (3 if "appended" in how else None)
    assert (how == "truncated to nothing") is not any(notice.startswith("journal_damaged: ") for notice in record.notices)


@pytest.mark.requirement("O-DU-03")
def test_an_ended_row_survives_the_loss_of_its_journal(store_home: str, index: Index, build: Builder, opened: Callable[..., Index]) -> None:
    records = _twenty(build, index)
    victim = next(record for record in records.values() if record.ended)
    _damage(os.path.join(store_home, "runs", victim.id, "journal.jsonl"), "truncated to nothing")
    index.refresh()
    index.close()
    assert opened(store_home).get(victim.id) == victim


def test_a_start_in_flight_is_left_to_its_host_and_is_no_damage(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index]
) -> None:
    spec = build.spec()
    folder = RunFolder.create(store_home, spec.id, b'{"half')
    again = opened(store_home)
    assert again.recent(5) == []
    assert again.notices == ()
    folder.close()
    assert opened(store_home).notices == ()  # its host died before anything ran
    assert index.recent(5) == []


def test_a_folder_that_was_removed_is_no_longer_named_as_damaged(
    store_home: str, index: Index, build: Builder, opened: Callable[..., Index]
) -> None:
    spec = build.spec()
    folder = build.folder(spec, RUNNING)
    _damage(os.path.join(folder, "spec.json"), "filled with NULs")
    assert index.refresh() == 0
    assert spec.id in opened(store_home).notices[0]
    shutil.rmtree(folder)
    assert opened(store_home).notices == ()


def test_names_that_are_no_ids_and_links_are_left_alone(
    store_home: str, build: Builder, opened: Callable[..., Index], tmp_path: Path
) -> None:
    os.mkdir(os.path.join(store_home, "runs", "notes"))
    elsewhere = build.spec()
    os.symlink(tmp_path, os.path.join(store_home, "runs", elsewhere.id))
    index = opened(store_home)
    assert index.recent(5) == []
    assert elsewhere.id in "".join(index.notices)
