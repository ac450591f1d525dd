"""SWE-ReX, in an environment of its own: one command through its local runtime, for scale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv

SCRIPT = """
import asyncio, json, time
from swerex.runtime.local import LocalRuntime
from swerex.runtime.abstract import Command, CreateBashSessionRequest, BashAction
async def main():
    r = LocalRuntime()
    times = {"execute": [], "session": []}
    for _ in range(30):
        t = time.perf_counter()
        await r.execute(Command(command=["/bin/true"]))
        times["execute"].append((time.perf_counter() - t) * 1000)
    await r.create_session(CreateBashSessionRequest())
    for _ in range(10):
        t = time.perf_counter()
        await r.run_in_session(BashAction(command="true"))
        times["session"].append((time.perf_counter() - t) * 1000)
    await r.close()
    print(json.dumps(times))
asyncio.run(main())
"""


def measure(cache: str) -> None:
    folder = os.path.join(cache, "swerex")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        venv.create(folder, with_pip=True)
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "swe-rex"], check=False, capture_output=True
    )
    if installed.returncode != 0:
        print("\nSWE-ReX could not be installed here; not compared")
        return
    done = subprocess.run([python, "-c", SCRIPT], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"\nSWE-ReX did not run here; not compared ({done.stderr.strip().splitlines()[-1:]})", file=sys.stderr)
        return
    times = json.loads(done.stdout.strip().splitlines()[-1])
    print("\nSWE-ReX, for scale (it proves no ending and keeps no record)")
    for name, values in times.items():
        values.sort()
        print(f"  {name:10} median {values[len(values) // 2]:8.2f} ms")
