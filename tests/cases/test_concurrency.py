"""Faults of the kind "two things at once, and one of them got the other's"."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import Status

if TYPE_CHECKING:
    from pathlib import Path

    from proctor import Record, SyncProctor
    from proctor.testing import Marker


MANY = 12


def _zombies_of(pid: int) -> list[str]:
    listed = subprocess.run(["ps", "--ppid", str(pid), "-o", "stat=,args="], capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if line.startswith("Z")]


def _own_text(number: int) -> str:
    return f"cd d{number} && sleep 0.$((RANDOM%3)) && pwd && echo m{number} >&2 && echo $MINE"


def _assert_own(record: Record, number: int, work: Path) -> None:
    assert record.output.stdout == f"{work}/d{number}\nv{number}\n"
    assert record.output.stderr == f"m{number}\n"


@pytest.mark.requirement("O-CO-01")
@pytest.mark.parametrize("session", [None, "one"])
def test_calls_at_the_same_time_get_exactly_their_own(session: str | None, home: str, work: Path) -> None:
    for number in range(20):
        (work / f"d{number}").mkdir()

    async def main() -> None:
        async with proctor.open(home=home) as p:
            calls = [p.run(_own_text(number), session=session, env={"MINE": f"v{number}"}) for number in range(20)]
            for number, record in enumerate(await asyncio.gather(*calls)):
                _assert_own(record, number, work)

    asyncio.run(main())


@pytest.mark.requirement("O-CO-01", "I2-many-hosts")
def test_threads_that_share_one_host_get_exactly_their_own(host: SyncProctor, work: Path) -> None:
    for number in range(20):
        (work / f"d{number}").mkdir()
    with ThreadPoolExecutor(10) as pool:
        records = pool.map(lambda number: host.run(_own_text(number), env={"MINE": f"v{number}"}), range(20))
        for number, record in enumerate(records):
            _assert_own(record, number, work)


@pytest.mark.requirement("O-CO-01")
def test_a_limit_counts_from_the_start_of_the_command_not_of_the_queue(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p:
            records = await asyncio.gather(*(p.run("sleep 0.2; echo fine", timeout=2, login=False) for _ in range(40)))
            assert [record.output.stdout for record in records] == ["fine\n"] * 40

    asyncio.run(main())


async def _cancel_a_third(home: str, seed: int, count: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - which third is cancelled is to be the same in every run
    async with proctor.open(home=home) as p:
        tasks = [asyncio.ensure_future(p.run(["sleep", "0.002"])) for _ in range(count)]
        chosen = set(dice.sample(range(count), count // 3))
        for number in chosen:
            asyncio.get_running_loop().call_later(dice.uniform(0, 0.3), tasks[number].cancel)
        done = await asyncio.gather(*tasks, return_exceptions=True)
    kept = [one for number, one in enumerate(done) if number not in chosen]
    assert all(isinstance(one, proctor.Record) and one.status is Status.EXITED for one in kept)
    lost = [one for one in done if not isinstance(one, (proctor.Record, asyncio.CancelledError))]
    assert lost == []


@pytest.mark.requirement("O-CO-02")
@pytest.mark.parametrize("seed", range(2))
def test_cancelling_many_at_once_leaves_no_zombie_no_descriptor_and_a_loop_that_closes(seed: int, home: str, marker: Marker) -> None:
    asyncio.run(_cancel_a_third(home, seed, 6))  # what the first use of a library opens for good is not a leak
    assert marker.gone_within(5) == []
    before = sorted(os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_open(name))
    began = time.monotonic()
    asyncio.run(_cancel_a_third(home, seed, 150))
    assert time.monotonic() - began < 10
    assert marker.gone_within(5) == []
    after = sorted(os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_open(name))
    assert after == before
    until = time.monotonic() + 2
    while zombies := _zombies_of(os.getpid()):  # the zygote is waited for by a thread, a moment after its end
        assert time.monotonic() < until, zombies


def _is_open(name: str) -> bool:
    try:
        return bool(os.readlink(f"/proc/self/fd/{name}"))
    except FileNotFoundError:
        return False  # the listing's own


@pytest.mark.requirement("O-CO-02", "I2-many-hosts")
def test_several_threads_with_loops_of_their_own_cancel_at_once(home: str) -> None:
    failures: list[BaseException] = []

    def one(seed: int) -> None:
        try:
            asyncio.run(_cancel_a_third(home, seed, 30))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test is to tell it
            failures.append(error)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []


FIRST_PROCESS = """
import os, subprocess, sys
import proctor
assert os.getpid() == 1 or sys.argv[2] == "subreaper"
if sys.argv[2] == "subreaper":
    import ctypes
    assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
own = subprocess.Popen(["sh", "-c", "sleep 0.3; exit 5"])
with proctor.open_sync(home=sys.argv[1]) as p:
    for _ in range(25):
        record = p.run(["sh", "-c", "(sleep 0.1 &) ; true"])
        assert record.exit_code == 0 and record.tree.proved, record
    print(own.wait())
    mine = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "stat=,args="], capture_output=True, text=True).stdout.splitlines()
    print(*[line for line in mine if line.startswith("Z")], sep=";")
"""


@pytest.mark.requirement("O-CO-03")
@pytest.mark.parametrize("role", ["first process", "subreaper"])
def test_orphans_are_reaped_and_nobody_elses_child_is(role: str, home: str) -> None:
    if role == "first process" and os.getuid() != 0:
        pytest.skip("a pid namespace of one's own needs root here")
    inside = ["unshare", "-pf", "--mount-proc"] if role == "first process" else []
    command = [*inside, sys.executable, "-c", FIRST_PROCESS, home, role.rsplit(maxsplit=1)[-1]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == "5\n\n", done.stderr


@pytest.mark.requirement("O-CO-04")
def test_many_processes_on_one_home_lose_nothing_and_mix_nothing(home: str) -> None:
    with proctor.open_sync(home=home):
        pass
    started = [
        subprocess.Popen([sys.executable, "-c", ONE_OF_MANY, home, str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(MANY)
    ]
    told = [json.loads(process.communicate(timeout=50)[0]) for process in started]
    assert len({entry["id"] for entry in told}) == MANY
    with proctor.open_sync(home=home) as p:
        for number, entry in enumerate(told):
            assert entry["stdout"] == f"{number}\n"
            record = p.show(entry["id"])
            assert record.output.stdout == f"{number}\n"
            expected = (Status.CANCELLED, "stop") if number % 3 == 0 else (Status.EXITED, "exit")
            assert (record.status, record.ended_by) == expected, number
        assert p.unfinished() == []
        assert {record.id for record in p.runtime.index.recent(100)} == {entry["id"] for entry in told}
    for name in os.listdir(os.path.join(home, "runs")):
        with open(os.path.join(home, "runs", name, "spec.json")) as file:
            assert json.load(file)["id"] == name


ONE_OF_MANY = """
import json, select, sys
import proctor
home, number = sys.argv[1], int(sys.argv[2])
with proctor.open_sync(home=home) as p:
    execution = p.start(f"echo {number}; sleep 0.5; {'sleep 60' if number % 3 == 0 else ''}", lifetime="detached", login=False)
    while not execution.read_since(0).data:
        select.select([], [], [], 0.02)
    if number % 3 == 0:
        record = p.stop(execution.id)
    else:
        record = execution.wait()
    print(json.dumps({"id": record.id, "stdout": p.show(record.id).output.stdout}))
"""
