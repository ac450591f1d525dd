"""The end of a tree of 1,000 processes after the polite phase, against cgroup.kill of the same tree."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time

import proctor

from .measure import Line

COUNT = 1000
IGNORING = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range({COUNT}):
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
print("ready", flush=True)
time.sleep(600)
"""


def measure(rounds: int = 5) -> list[Line]:
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as home, proctor.open_sync(home=home) as p:
        for _ in range(rounds):
            ours.append(_proctor(p))
            if (taken := _cgroup()) is not None:
                theirs.append(taken)
    best = min(ours)
    if not theirs:
        print(f"\nstop of {COUNT + 1} processes: {best:.0f} ms; no cgroup v2 can be made here to compare with")
        return [
            Line(
                f"stop of a {COUNT}-process tree, proved",
                f"{best:.0f} ms, nothing to compare with here",
                "<= 2 x cgroup.kill",
                reached=False,
            )
        ]
    ratio = sorted(ours)[len(ours) // 2] / sorted(theirs)[len(theirs) // 2]
    print(f"\nstop of {COUNT + 1} processes after the polite phase")
    print(f"  cgroup.kill until empty {min(theirs):6.0f} ms")
    print(f"  proctor, proved         {best:6.0f} ms   x {ratio:.2f} (medians)")
    return [Line(f"stop of a {COUNT}-process tree, proved", f"{ratio:.2f} x cgroup.kill", "<= 2 x", ratio <= 2)]


def _proctor(p: proctor.SyncProctor) -> float:
    execution = p.start(["python3", "-S", "-c", IGNORING], streams="merged")
    offset = 0
    until = time.monotonic() + 60
    while time.monotonic() < until and b"ready" not in execution.read_since(offset).data:
        os.sched_yield()
    record = execution.stop(grace=0.05)
    execution.close()
    assert record.tree is not None
    assert record.tree.proved
    return record.tree.took_ms - 50


def _cgroup() -> float | None:
    base = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
    folder = os.path.join(base, f"proctor-bench-{os.getpid()}")
    try:
        os.mkdir(folder)
        open(os.path.join(folder, "cgroup.kill")).close()
    except FileNotFoundError:
        os.rmdir(folder)
        return None
    except PermissionError:
        # cgroup.kill is write-only: that it is refused for reading says that it is there
        if not os.path.exists(os.path.join(folder, "cgroup.kill")):
            return None
    except OSError:
        return None
    join = f"import os\nopen({folder!r} + '/cgroup.procs', 'w').write(str(os.getpid()))\n"
    process = subprocess.Popen(["python3", "-S", "-c", join + IGNORING], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    begun = time.perf_counter()
    with open(os.path.join(folder, "cgroup.kill"), "w") as file:
        file.write("1")
    while True:
        with open(os.path.join(folder, "cgroup.events")) as file:
            if "populated 0" in file.read():
                break
    taken = (time.perf_counter() - begun) * 1000
    process.wait()
    process.stdout.close()
    os.rmdir(folder)
    return taken
