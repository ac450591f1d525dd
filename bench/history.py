"""`ps` and `show` with a long history against a short one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import proctor
from proctor.data import changed
from proctor.execution import Status, make_id

from .measure import Line

LONG = 100_000


def measure(rounds: int = 10) -> list[Line]:
    with tempfile.TemporaryDirectory() as short, tempfile.TemporaryDirectory() as long:
        few, many = _fill(short, 10), _fill(long, LONG)
        lines = []
        print(f"\nhistory of {LONG:,} executions against 10, whole processes")
        for verb, argv_few, argv_many in (("ps", ["ps"], ["ps"]), ("show", ["show", few], ["show", many])):
            a = min(_call(short, argv_few) for _ in range(rounds))
            b = min(_call(long, argv_many) for _ in range(rounds))
            print(f"  proctor {verb:5} {a:7.1f} ms {b:7.1f} ms")
            lines.append(Line(f"history of 100,000: {verb}", f"{b - a:+.1f} ms against 10", "< + 50 ms", b - a < 50))
    return lines


def _fill(home: str, count: int) -> str:
    """Run one command for real and copy its record and folder ``count - 1`` times under other ids."""
    with proctor.open_sync(home=home) as p:
        record = p.run(["/bin/echo", "hello"])
        index = p.runtime.index
        runs = os.path.join(p.runtime.home, "runs")
        base = time.time_ns() // 1_000_000 - count
        for number in range(count - 1):
            execution_id = make_id(base + number, os.urandom(10))
            os.mkdir(os.path.join(runs, execution_id), 0o700)
            index.put(changed(record, id=execution_id, status=Status.EXITED))
    return record.id


def _call(home: str, argv: list[str]) -> float:
    begun = time.perf_counter()
    proctor_path = os.path.join(os.path.dirname(sys.executable), "proctor")
    subprocess.run([proctor_path, *argv], check=True, env={**os.environ, "PROCTOR_HOME": home}, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1000
