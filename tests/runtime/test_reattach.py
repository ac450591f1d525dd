"""The reconcile table carried out on real folders: by which facts an execution is judged, and what is written about it."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import EndedBy, ErrorCode, ExecutionError, Status
from proctor.execution import Event, KeeperStarted, Lifetime, LifetimePair, Spec, Started, encode, journal_line, make_id, read_journal
from proctor.process import HostSurroundings
from proctor.store import RunFolder, open_home

if TYPE_CHECKING:
    from pathlib import Path

    from proctor import SyncExecution, SyncProctor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEAD = 3_999_999  # above any pid_max of a test machine's processes


def _folder(home: str, *events: Event, **machine: str) -> str:
    """Make the run folder that a dead keeper left, and return the execution's id."""
    here = HostSurroundings().machine()
    where = {name: getattr(here, name) for name in ("id", "boot_id", "pid_namespace", "hostname")}
    spec = Spec(
        id=make_id(time.time_ns() // 1_000_000, os.urandom(10)),
        machine=type(here)(**{**where, **machine}),
        lifetime=LifetimePair(requested=Lifetime.DETACHED, effective=Lifetime.DETACHED),
        cwd="/",
        created_at=datetime.now(UTC),
        command="forged",
    )
    made = RunFolder.create(open_home(home, allow_network=True), spec.id, json.dumps(encode(spec)).encode())
    made.close()
    if events:  # a journal is a keeper's: without one nothing of it is there
        with open(os.path.join(made.path, "journal.jsonl"), "wb") as file:
            file.writelines(journal_line(number, event) for number, event in enumerate(events))
    return spec.id


KEEPER = KeeperStarted(at=NOW, pid=DEAD, start_ticks=1)
ROOT = Started(at=NOW, pid=DEAD + 1, start_ticks=2, process_started_at=NOW)


@pytest.mark.requirement("I2-reconcile")
@pytest.mark.parametrize(
    ("events", "machine", "status", "ended_by"),
    [
        ((), {}, Status.FAILED, EndedBy.START_ERROR),
        ((KEEPER,), {}, Status.LOST, EndedBy.KEEPER_LOST),
        ((KEEPER, ROOT), {}, Status.LOST, EndedBy.KEEPER_LOST),
        ((), {"boot_id": "another"}, Status.LOST, EndedBy.HOST_REBOOTED),
        ((KEEPER, ROOT), {"boot_id": "another"}, Status.LOST, EndedBy.HOST_REBOOTED),
        ((KEEPER, ROOT), {"boot_id": "another", "pid_namespace": "another"}, Status.LOST, EndedBy.HOST_REBOOTED),
    ],
)
def test_a_row_of_the_table_is_written_once_and_stays(
    events: tuple[Event, ...], machine: dict[str, str], status: Status, ended_by: EndedBy, home: str
) -> None:
    name = _folder(home, *events, **machine)
    for _ in range(2):
        with proctor.open_sync(home=home) as p:
            record = p.show(name)
        assert (record.status, record.ended_by, record.exit_code) == (status, ended_by, None)
        assert record.tree is None or not record.tree.proved
    with open(os.path.join(home, "runs", name, "journal.jsonl"), "rb") as file:
        assert len(read_journal(file.read()).events) == len(events) + 1


@pytest.mark.requirement("I2-reconcile", "I2-elsewhere")
@pytest.mark.parametrize("machine", [{"id": "another"}, {"pid_namespace": "pid:[1]"}, {"id": "another", "boot_id": "another"}])
def test_what_is_elsewhere_is_shown_so_and_nothing_is_written_about_it(machine: dict[str, str], home: str) -> None:
    name = _folder(home, KEEPER, ROOT, hostname="there", **machine)
    path = os.path.join(home, "runs", name, "journal.jsonl")
    with open(path, "rb") as file:
        before = file.read()
    with proctor.open_sync(home=home) as p:
        record = p.show(name)
        assert (record.status, record.elsewhere, record.ended_by) == (Status.RUNNING, "there", None)
        assert [found.id for found in p.unfinished()] == [name]
    with open(path, "rb") as file:
        assert file.read() == before


@pytest.fixture
def frozen(host: SyncProctor) -> SyncExecution:
    execution = host.start(["sleep", "60"])
    host.show(execution.id)
    keeper = execution.record.keeper_pid
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)
    return execution


@pytest.mark.requirement("I2-reconcile")
def test_a_keeper_that_does_not_answer_leaves_what_was_last_known(frozen: SyncExecution, home: str) -> None:
    keeper = frozen.record.keeper_pid
    assert keeper is not None
    try:
        with proctor.open_sync(home=home) as other:
            began = time.monotonic()
            record = other.show(frozen.id)
            assert time.monotonic() - began < 3
            assert record.status is Status.RUNNING  # the lock is held, so it lives, whatever it answers
            with other.attach(frozen.id) as attached:
                assert (attached.record.status, attached.record.stale) == (Status.RUNNING, True)
            assert time.monotonic() - began < 6
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert frozen.stop().status is Status.CANCELLED
    frozen.close()


@pytest.mark.requirement("I2-error-codes")
def test_what_is_not_there_is_unknown_and_what_was_removed_is_said_to_be_gone(host: SyncProctor, home: str, tmp_path: Path) -> None:
    for name in ("0" * 26, "zzz", "not an id", ""):
        with pytest.raises(ExecutionError) as raised:
            host.show(name)
        assert raised.value.code is ErrorCode.UNKNOWN_EXECUTION
    record = host.run(["true"])
    os.rename(os.path.join(home, "runs", record.id), tmp_path / "moved")
    shown = host.show(record.id)
    assert (shown.status, shown.exit_code) == (Status.EXITED, 0)  # the index knows the ending
    assert shown.output.text is None


@pytest.mark.requirement("I2-reconcile")
def test_an_execution_that_has_ended_can_be_followed_read_and_stopped_without_effect(host: SyncProctor, home: str) -> None:
    record = host.run("echo one; echo two >&2; exit 3")
    with proctor.open_sync(home=home) as other, other.attach(record.id) as attached:
        assert attached.wait(timeout=1).exit_code == 3
        assert attached.wait_ended().exit_code == 3
        assert attached.stop().stop is None
        assert list(attached.events()) == []
        assert attached.read_since(0).data == b"one\ntwo\n"
        with pytest.raises(ExecutionError) as raised:
            attached.signal(signal.SIGTERM)
        assert raised.value.code is ErrorCode.NOT_RUNNING
