"""Old executions go, and nothing that is unfinished, held or elsewhere."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.data import changed
from proctor.execution import RootEnded, record_of
from proctor.store import DAY_S, Entry, Index, RunFolder, collect, due, plan_gc

if TYPE_CHECKING:
    from pathlib import Path

    from tests.store.conftest import Builder

    from proctor.execution import Record

GB = 1 << 30
NOW_S = datetime.now(UTC).timestamp()
FORTNIGHT_S = 14 * DAY_S

ENTRIES = st.lists(
    st.builds(
        lambda number, age, size: Entry(id=f"{number}", folder="", ended_at_s=NOW_S - age, size_bytes=size),
        st.integers(0, 10**9),
        st.integers(0, 30 * 86_400),
        st.integers(0, GB),
    ),
    unique_by=lambda entry: entry.id,
)


@given(ENTRIES, st.integers(0, 30 * 86_400), st.integers(0, 10 * GB))
def test_a_plan_removes_the_oldest_and_no_more_than_age_and_size_ask_for(entries: list[Entry], older_than_s: int, max_bytes: int) -> None:
    remove, keep = plan_gc(entries, NOW_S, older_than_s=older_than_s, max_bytes=max_bytes)
    assert sorted(entry.id for entry in (*remove, *keep)) == sorted(entry.id for entry in entries)
    assert all(NOW_S - entry.ended_at_s <= older_than_s for entry in keep)
    assert sum(entry.size_bytes for entry in keep) <= max_bytes
    if remove and NOW_S - remove[-1].ended_at_s <= older_than_s:  # it went for its size: without it the rest was too large
        assert sum(entry.size_bytes for entry in (remove[-1], *keep)) > max_bytes
    if remove and keep:
        assert remove[-1].ended_at_s <= keep[0].ended_at_s


@pytest.mark.requirement("I2-gc")
def test_what_is_old_and_ended_goes_and_the_rest_stays(store_home: str, index: Index, build: Builder) -> None:
    old, young = (_ended(index, build, timedelta(days=days)) for days in (15, 13))
    running = _unfinished(index, build, timedelta(days=100))
    trial = collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB, dry_run=True)
    assert sorted(os.listdir(os.path.join(store_home, "runs"))) == sorted([old.id, young.id, running.id])
    report = collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB)
    assert report == trial
    assert report.removed == (old.id,)
    assert report.freed_bytes > 0
    assert report.kept == 1
    assert {record.id for record in index.recent(10)} == {young.id, running.id}
    assert sorted(name for name in os.listdir(os.path.join(store_home, "runs")) if name[0] != ".") == sorted([young.id, running.id])


@pytest.mark.requirement("I2-gc")
def test_the_oldest_ended_go_until_the_rest_fits(store_home: str, index: Index, build: Builder) -> None:
    records = [_ended(index, build, timedelta(hours=hours), output=1 << 20) for hours in range(5)]
    report = collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=3 << 20)
    assert report.removed == (records[4].id, records[3].id, records[2].id)  # three would fit but for what else a run folder takes
    assert report.freed_bytes > 3 << 20


@pytest.mark.requirement("I2-gc")
def test_a_folder_whose_lock_is_held_stays_and_is_named(store_home: str, index: Index, build: Builder) -> None:
    spec = build.spec(age=timedelta(days=30))
    folder = RunFolder.create(store_home, spec.id, b"{}")
    index.put(build.ending_of(record_of(spec)))
    report = collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB)
    assert report.removed == ()
    assert report.skipped == (f"{spec.id}: a process holds its lock",)
    assert index.get(spec.id) is not None
    folder.close()
    assert collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB).removed == (spec.id,)


def test_a_symlink_is_removed_and_what_it_leads_to_is_not(store_home: str, index: Index, build: Builder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    linked, holder = build.record(age=timedelta(days=30), ended=True), _ended(index, build, timedelta(days=30))
    index.put(linked)
    (tmp_path / "home" / "runs" / linked.id).symlink_to(precious)
    (tmp_path / "home" / "runs" / holder.id / "link").symlink_to(precious)
    report = collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB)
    assert set(report.removed) == {linked.id, holder.id}
    assert (precious / "file").read_text() == "kept"
    assert index.recent(5) == []


@pytest.mark.parametrize("row_is_there", [True, False])
def test_a_removal_that_was_cut_short_is_finished_next_time(store_home: str, index: Index, build: Builder, *, row_is_there: bool) -> None:
    record = _ended(index, build, timedelta(days=2))
    removed = os.path.join(store_home, "runs", ".removed")
    os.mkdir(removed)
    os.rename(os.path.join(store_home, "runs", record.id), os.path.join(removed, record.id))
    if not row_is_there:
        index.remove([record.id])
    collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB)
    assert index.recent(5) == []
    assert os.listdir(removed) == []


def test_a_start_that_was_cut_short_is_cleared_after_a_day(store_home: str, index: Index, build: Builder) -> None:
    for age in (timedelta(days=2), timedelta(0)):
        spec = build.spec(age=age)
        folder = RunFolder.create(store_home, spec.id, b"{")
        folder.close()
        os.utime(folder.path, (NOW_S - age.total_seconds(),) * 2)
    report = collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB)
    assert len(report.removed) == 1
    assert [name for name in os.listdir(os.path.join(store_home, "runs")) if name[0] != "."] == [spec.id]


def test_old_patches_go_by_their_modification_time(store_home: str, index: Index, tmp_path: Path) -> None:
    for name, days in (("old", 15), ("young", 1)):
        folder = tmp_path / "home" / "patches" / name
        folder.mkdir(parents=True)
        (folder / "diff").write_text("x")
        os.utime(folder, (NOW_S - days * DAY_S,) * 2)
    assert collect(store_home, index, NOW_S, older_than_s=FORTNIGHT_S, max_bytes=5 * GB).removed == ("old",)
    assert os.listdir(tmp_path / "home" / "patches") == ["young"]


def test_one_host_a_day_is_told_to_collect(store_home: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: due(store_home, NOW_S), range(50)))
    assert told.count(True) == 1
    assert not due(store_home, NOW_S + DAY_S - 5)
    assert due(store_home, NOW_S + DAY_S + 5)
    assert not due(store_home, NOW_S + DAY_S + 5)


@pytest.mark.requirement("O-DU-03", "O-DU-04")
@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"1\n" * 600, b"nonsense", b"\xff\xfe"])
def test_a_damaged_stamp_is_as_good_as_none(store_home: str, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "home" / "gc.stamp").write_bytes(content)
    assert due(store_home, NOW_S)
    assert not due(store_home, NOW_S)


def _ended(index: Index, build: Builder, age: timedelta, output: int = 0) -> Record:
    spec = build.spec(age=age)
    folder = build.folder(spec, (RootEnded(at=spec.created_at, exit_code=0, signal=None),))
    with open(os.path.join(folder, "output"), "wb") as file:
        file.write(b"x" * output)
    record = changed(build.ending_of(record_of(spec)))
    index.put(record)
    return record


def _unfinished(index: Index, build: Builder, age: timedelta) -> Record:
    spec = build.spec(age=age)
    build.folder(spec)
    index.put(record_of(spec))
    return record_of(spec)
