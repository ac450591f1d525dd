"""Faults of the kind "after the crash, what was told about it was not true"."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import EndedBy, Lifetime, Status
from proctor.execution import Event, KeeperStarted, Started, journal_line, read_journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tests.conftest import Script

    from proctor.testing import Marker

DETACHED = """
p = proctor.open_sync(home=home)
execution = p.start(sys.argv[2], lifetime="detached", login=False)
print(execution.id)
print(p.runtime._zygote.pid, flush=True)
sys.stdin.read()
"""


def _start_detached(script: Callable[..., Script], text: str) -> tuple[Script, str, int]:
    running = script(DETACHED, text)
    return running, running.line(), int(running.line())


def _until_output(home: str, name: str, wanted: bytes, limit_s: float = 10.0) -> None:
    until = time.monotonic() + limit_s
    with proctor.open_sync(home=home) as p, p.attach(name) as execution:
        while wanted not in execution.read_since(0).data:
            assert time.monotonic() < until
            select.select([], [], [], 0.02)  # a growing file gives no event


def _kill_all(marker: Marker) -> None:
    """End host, zygote, keeper and command as a crash does: at once, by a signal that nobody can answer."""
    for process in marker.living():
        os.kill(process.pid, signal.SIGSTOP)
    for process in marker.living():
        os.kill(process.pid, signal.SIGKILL)
    assert marker.gone_within(5) == []


@pytest.mark.requirement("O-DU-01")
def test_after_a_crash_of_everything_the_execution_is_lost_at_once_with_its_output(
    home: str, script: Callable[..., Script], marker: Marker
) -> None:
    _, name, _ = _start_detached(script, "echo was here; sleep 600")
    _until_output(home, name, b"was here")
    _kill_all(marker)
    with proctor.open_sync(home=home) as p:
        began = time.monotonic()
        assert p.unfinished() == []
        record = p.show(name)
        assert time.monotonic() - began < 1
    assert (record.status, record.ended_by, record.exit_code) == (Status.LOST, EndedBy.KEEPER_LOST, None)
    assert record.tree is not None
    assert not record.tree.proved  # nobody saw it end, so nobody claims it
    assert record.output.stdout == "was here\n"
    assert record.output.bytes == len("was here\n")


@pytest.mark.requirement("O-DU-01")
def test_after_a_reboot_the_execution_is_lost_to_the_reboot(home: str, script: Callable[..., Script], marker: Marker) -> None:
    _, name, _ = _start_detached(script, "echo was here; sleep 600")
    _until_output(home, name, b"was here")
    _kill_all(marker)
    path = os.path.join(home, "runs", name, "spec.json")
    with open(path) as file:
        spec = json.load(file)
    spec["machine"]["boot_id"] = "00000000-0000-0000-0000-000000000000"
    with open(path, "w") as file:
        json.dump(spec, file)
    with proctor.open_sync(home=home) as p:
        assert p.unfinished() == []
        record = p.show(name)
    assert (record.status, record.ended_by, record.exit_code) == (Status.LOST, EndedBy.HOST_REBOOTED, None)
    assert record.output.stdout == "was here\n"


@pytest.mark.requirement("O-DU-02")
@pytest.mark.parametrize("victims", ["host", "host and zygote"])
def test_what_outlives_its_host_is_adopted_whole_with_its_real_exit_code(victims: str, home: str, script: Callable[..., Script]) -> None:
    running, name, zygote = _start_detached(script, "for i in 1 2 3 4 5 6 7 8; do echo n$i; sleep 0.15; done; exit 5")
    _until_output(home, name, b"n2")
    running.kill()
    if victims == "host and zygote":
        os.kill(zygote, signal.SIGKILL)
    with proctor.open_sync(home=home) as p:
        assert [(record.id, record.status, record.stale) for record in p.unfinished()] == [(name, Status.RUNNING, False)]
        with p.attach(name) as execution:
            record = execution.wait(timeout=10)
    assert (record.status, record.exit_code) == (Status.EXITED, 5)
    assert record.output.stdout == "".join(f"n{number}\n" for number in range(1, 9))
    assert record.tree is not None
    assert record.tree.proved


def _damage(path: str, how: str) -> None:
    with open(path, "r+b") as file:
        content = file.read()
        file.seek(0)
        match how:
            case "half":
                file.truncate(len(content) // 2)
            case "empty":
                file.truncate(0)
            case "nul":
                file.write(bytes(len(content)))
            case "doubled":
                file.write(content + content[-1000:])


@pytest.mark.requirement("O-DU-03")
@pytest.mark.parametrize("how", ["half", "empty", "nul", "doubled"])
@pytest.mark.parametrize("which", ["proctor.db", "spec.json", "journal.jsonl"])
def test_a_damaged_file_hides_nothing_else_and_is_never_an_empty_list(which: str, how: str, home: str) -> None:
    with proctor.open_sync(home=home) as p:
        names = [p.run(["echo", str(number)]).id for number in range(8)]
    victim = names[3]
    if which == "proctor.db":
        _damage(os.path.join(home, which), how)
    else:
        _damage(os.path.join(home, "runs", victim, which), how)
        for part in ("", "-wal", "-shm"):  # without the index the folders are all there is
            path = os.path.join(home, f"proctor.db{part}")
            if os.path.exists(path):
                os.unlink(path)
    with proctor.open_sync(home=home) as p:
        listed = {record.id: record for record in p.runtime.index.recent(100)}
        intact = [name for name in names if name != victim or which == "proctor.db"]
        assert [listed[name].output.bytes for name in intact] == [2] * len(intact)
        assert all(listed[name].status is Status.EXITED for name in intact)
        if which == "spec.json" and how != "doubled":
            assert any(victim in notice for notice in p.runtime.index.notices)
        if which == "journal.jsonl":
            record = p.show(victim)
            assert record.status in {Status.LOST, Status.EXITED, Status.FAILED}
            assert (record.status is Status.EXITED) == (how == "doubled")  # the ending was read before the damage, or is not claimed


ADDING = """
with proctor.open_sync(home=home) as p:
    print("up", flush=True)
    while True:
        print(p.start(["sleep", "0.05"], lifetime="detached").id, flush=True)
"""


@pytest.mark.requirement("O-DU-03")
@pytest.mark.parametrize("round_number", range(5))
def test_what_was_acknowledged_before_a_kill_is_there_after_it(round_number: int, home: str, script: Callable[..., Script]) -> None:
    running = script(ADDING)
    assert running.line() == "up"
    acknowledged = [running.line() for _ in range(1 + round_number * 3)]
    running.process.kill()
    rest, _ = running.process.communicate()
    acknowledged += [line for line in rest.splitlines() if len(line) == 26]
    with proctor.open_sync(home=home) as p:
        listed = {record.id for record in p.runtime.index.recent(1000)}
        assert set(acknowledged) <= listed
        for name in acknowledged:
            with p.attach(name) as execution:
                assert execution.wait(timeout=10).status is Status.EXITED
        for record in p.runtime.index.recent(1000):  # one that was not acknowledged may be there, with a true ending
            shown = p.show(record.id)
            assert shown.status in {Status.EXITED, Status.FAILED, Status.RUNNING}


@pytest.fixture
def stranger() -> object:
    process = subprocess.Popen(["sleep", "43262"])
    yield process
    process.kill()
    process.wait()


def _forge(home: str, name: str, pid: int, at: datetime) -> None:
    """Write the journal of a keeper and a root that had the pid of somebody who is alive now, at another time."""
    events: tuple[Event, ...] = (
        KeeperStarted(at=at, pid=pid, start_ticks=7, zygote_pid=pid, zygote_start_ticks=8),
        Started(at=at, pid=pid, start_ticks=9, process_started_at=at),
    )
    with open(os.path.join(home, "runs", name, "journal.jsonl"), "wb") as file:
        file.writelines(journal_line(number, event) for number, event in enumerate(events))


@pytest.mark.requirement("O-DU-04", "I2-identity")
@pytest.mark.parametrize("who", ["stranger", "first process"])
@pytest.mark.parametrize("lifetime", [Lifetime.HOST, Lifetime.DETACHED])
def test_a_stranger_with_the_pid_of_a_dead_keeper_blocks_nothing_and_is_never_signalled(
    who: str, lifetime: Lifetime, home: str, stranger: subprocess.Popen[bytes]
) -> None:
    pid = stranger.pid if who == "stranger" else 1
    with proctor.open_sync(home=home) as p:
        record = p.run(["true"])
    name, folder = record.id, os.path.join(home, "runs", record.id)
    with open(os.path.join(folder, "spec.json")) as file:
        spec = json.load(file)
    spec["lifetime"] = {"requested": lifetime.value, "effective": lifetime.value}
    with open(os.path.join(folder, "spec.json"), "w") as file:
        json.dump(spec, file)
    _forge(home, name, pid, record.created_at)
    for path in (os.path.join(folder, "lock"), os.path.join(home, "index.lock")):
        with open(path, "w") as file:
            file.write(f"{pid}\n")  # what other programs believe; here the kernel's lock counts
    for part in ("", "-wal", "-shm"):
        if os.path.exists(path := os.path.join(home, f"proctor.db{part}")):
            os.unlink(path)
    with proctor.open_sync(home=home) as p:
        assert p.run(["true"]).status is Status.EXITED
        began = time.monotonic()
        found = p.show(name)
        assert time.monotonic() - began < 2
        assert (found.status, found.ended_by) == (Status.LOST, EndedBy.KEEPER_LOST)
        stopped = p.stop(name)
        assert stopped is not None
        assert stopped.status is Status.LOST
    assert stranger.poll() is None


@pytest.mark.requirement("O-DU-04", "I2-many-hosts")
def test_many_first_starts_at_the_same_moment_make_one_home(home: str) -> None:
    go_reading, go_writing = os.pipe()
    text = "import os, sys, proctor\nos.read(int(sys.argv[2]), 1)\nwith proctor.open_sync(home=sys.argv[1]) as p: print(p.run(['true']).id)"
    command = [sys.executable, "-c", text, home, str(go_reading)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[go_reading]) for _ in range(6)]
    os.close(go_reading)
    os.close(go_writing)  # all of them see the end of the pipe at once
    names = {process.communicate(timeout=30)[0].strip() for process in started}
    assert all(process.returncode == 0 for process in started)
    with proctor.open_sync(home=home) as p:
        assert {record.id for record in p.runtime.index.recent(100)} == names
        assert p.runtime.index.notices == ()
    assert len(names) == 6


@pytest.mark.requirement("O-DU-04")
def test_many_hosts_that_find_the_same_dead_keeper_write_one_ending(home: str, script: Callable[..., Script], marker: Marker) -> None:
    _, name, _ = _start_detached(script, "echo was here; sleep 600")
    _until_output(home, name, b"was here")
    _kill_all(marker)
    found: list[Status] = []

    def look() -> None:
        with proctor.open_sync(home=home) as p:
            found.append(p.show(name).status)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [Status.LOST] * 8
    with open(os.path.join(home, "runs", name, "journal.jsonl"), "rb") as file:
        content = read_journal(file.read())
    assert not content.damaged
    assert [type(event).__name__ for event in content.events] == ["KeeperStarted", "Started", "Lost"]
