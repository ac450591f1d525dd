"""1,000 executions running at once: what they cost, how fast they start, how fast they are listed and found again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time

import proctor

from .measure import Line

STARTER = """
import asyncio, sys, proctor
async def main(count):
    p = proctor.open()
    gate = asyncio.Semaphore(32)
    async def one():
        async with gate:
            (await p.start(["/bin/sleep", "600"], lifetime="detached")).close()
    await asyncio.gather(*(one() for _ in range(count)))
    print("started", flush=True)
    await asyncio.sleep(600)
asyncio.run(main(int(sys.argv[1])))
"""


def measure(count: int = 1000, reattached: int = 200) -> list[Line]:
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as home:
        before = set(_pids())
        begun = time.perf_counter()
        host = _host(home, count)
        rate = count / (time.perf_counter() - begun)
        with proctor.open_sync(home=home) as p:
            begun = time.perf_counter()
            listed = len(p.unfinished())
            first_ms = (time.perf_counter() - begun) * 1000
            begun = time.perf_counter()
            listed = len(p.unfinished())
            listing_ms = (time.perf_counter() - begun) * 1000
            private = [_private(record.keeper_pid) for record in p.unfinished()[:50]]
            each = sum(private) / len(private)
            print(f"\n{count} running at once\n  {rate:.0f} starts a second, {each / 1e6:.2f} MB private a keeper")
            print(f"  listing: first {first_ms:.0f} ms, then {listing_ms:.0f} ms ({listed} listed)")
            _end(host, p)
        _settle(before)
        lines += [
            Line("1,000 running: private memory a keeper", f"{each / 1e6:.2f} MB", "<= 2 MB", each <= 2e6),
            Line("… starts a second", f"{rate:.0f}", ">= 200", rate >= 200),
            Line("… listing", f"{listing_ms:.0f} ms", "< 100 ms", listing_ms < 100),
        ]
    with tempfile.TemporaryDirectory() as home:
        host = _host(home, reattached)
        host.send_signal(signal.SIGKILL)
        host.wait()
        begun = time.perf_counter()
        with proctor.open_sync(home=home) as p:
            running = [record for record in p.unfinished() if record.status == "running"]
            seconds = time.perf_counter() - begun
            print(f"\nre-attach after SIGKILL of the host\n  {len(running)} of {reattached} right after {seconds * 1000:.0f} ms")
            _end(host, p)
        right = len(running) == reattached and seconds < 1
        lines.append(
            Line(f"re-attach, {reattached} running", f"{len(running)} right after {seconds * 1000:.0f} ms", "all within 1 s", right)
        )
    return lines


def _host(home: str, count: int) -> subprocess.Popen[str]:
    host = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(count)], env={**os.environ, "PROCTOR_HOME": home}, stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    assert host.stdout.readline().strip() == "started"
    return host


def _end(host: subprocess.Popen[str], p: proctor.SyncProctor) -> None:
    async def stop_all(home: str) -> None:
        face = proctor.open(home=home)
        gate = asyncio.Semaphore(32)

        async def one(execution_id: str) -> None:
            async with gate:
                await face.stop(execution_id)

        await asyncio.gather(*(one(record.id) for record in await face.unfinished()))
        face.close()

    asyncio.run(stop_all(p.runtime.home))
    host.kill()
    host.wait()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _settle(before: set[int]) -> None:
    until = time.monotonic() + 10
    while len(set(_pids()) - before) > 20 and time.monotonic() < until:
        os.sched_yield()


def _private(pid: int | None) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private"))
