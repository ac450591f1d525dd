"""1 GB through a captured pipe, and what host and keeper grow by meanwhile."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time

import proctor

from .measure import Line

BYTES = 1_000_000_000
PRODUCER = f"dd if=/dev/zero bs=65536 count={BYTES // 65536} status=none"


def measure(rounds: int = 3) -> list[Line]:
    piped: list[float] = []
    captured: list[float] = []
    growth: list[int] = []
    with tempfile.TemporaryDirectory() as home, proctor.open_sync(home=home) as p:
        p.run(["/bin/true"])
        for _ in range(rounds):
            piped.append(_cat(home))
            seconds, grown = _proctor(p)
            captured.append(seconds)
            growth.append(grown)
    ratio = min(piped) / min(captured)
    print("\n1 GB through a pipe")
    print(f"  cat > file        {min(piped):6.2f} s")
    print(f"  proctor           {min(captured):6.2f} s   x {ratio:.2f} of its speed")
    print(f"  host and keeper grew by {max(growth) / 1e6:.1f} MB together")
    return [
        Line("1 GB through a captured pipe", f"{ratio:.2f} x the speed of cat > file", ">= 0.6 x", ratio >= 0.6),
        Line("… growth of host and keeper", f"{max(growth) / 1e6:.1f} MB", "< 30 MB", max(growth) < 30_000_000),
    ]


def _cat(folder: str) -> float:
    target = os.path.join(folder, "cat.out")
    begun = time.perf_counter()
    subprocess.run(f"{PRODUCER} | cat > {target}", shell=True, check=True)
    seconds = time.perf_counter() - begun
    os.unlink(target)
    return seconds


def _proctor(p: proctor.SyncProctor) -> tuple[float, int]:
    begun = time.perf_counter()
    execution = p.start(PRODUCER, login=False, streams="merged")
    keeper = execution.record.keeper_pid
    before = _resident(os.getpid()) + _resident(keeper)
    most = before
    while not execution.record.ended:
        try:
            execution.wait(timeout=0.1)
        except proctor.ExecutionError:
            most = max(most, _resident(os.getpid()) + _resident(keeper))
    seconds = time.perf_counter() - begun
    execution.close()
    return seconds, most - before


def _resident(pid: int | None) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
