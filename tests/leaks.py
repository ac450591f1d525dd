"""What a test must not leave behind: processes, zombies, open descriptors, files outside its folder.

The witness of ``proctor.testing`` looks at the mark in every process; on top of it come descendants without the mark, the test's home, and
the descriptors of the test process. Things that end by themselves a moment later (a zygote after its host) are waited for, with a bound;
what is left then is ended, so that one leak does not poison the tests after it, and named.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor.testing.marker import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor.testing import Marker

__all__ = ["SESSION_VARIABLE", "SETTLING_LIMIT_S", "Leaks", "Process", "descriptors", "end", "living_with"]

SETTLING_LIMIT_S = 5.0  # a zygote and its keepers go within moments after their host
LOOK_AGAIN_S = 0.02
SESSION_VARIABLE = "PROCTOR_TEST_SESSION"
DESCRIPTORS = "/proc/self/fd"
START_TICKS = 19  # the 22nd field of /proc/PID/stat, counted behind the command's name


@dataclass(frozen=True, slots=True)
class Process:
    """One process; ``ticks`` is when it started, since boot, so that its id taken anew is another process."""

    pid: int
    ticks: int
    command: str = field(compare=False)


def descriptors() -> dict[int, str]:
    """Return what each descriptor of this process is, without that of the listing itself."""
    found: dict[int, str] = {}
    for name in os.listdir(DESCRIPTORS) if os.path.isdir(DESCRIPTORS) else ():
        with suppress(OSError):  # the listing's own descriptor is closed by now
            found[int(name)] = os.readlink(f"{DESCRIPTORS}/{name}")
    return found


def living_with(*entries: str) -> set[Process]:
    """Return the processes, this one excepted, with a variable at exec that begins as one of ``entries`` (NAME=beginning)."""
    wanted = tuple(entry.encode() for entry in entries)
    holders = (pid for pid in _pids() if any(variable.startswith(wanted) for variable in _read(f"/proc/{pid}/environ").split(b"\0")))
    return {process for pid in holders if pid != os.getpid() and (process := _process(pid)) is not None}


def end(process: Process) -> None:
    """Kill a leaked process, if it is still the one that was seen, and reap it where it is a child of this one."""
    if _process(process.pid) != process:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process.pid, 0)


class Leaks:
    """What was there before a test, and what it left.

    ``folder`` holds what the test puts nowhere in particular; ``homes`` is how the path of any home of the test begins.
    """

    def __init__(self, marker: Marker, folder: str, homes: str) -> None:
        self.marker = marker
        self._folder = folder
        self._entries = (f"{VARIABLE}={marker.value}", f"PROCTOR_HOME={homes}")
        self._open = descriptors()
        self._files = _files(folder)
        self._living = self._seen()

    def found(self) -> list[str]:
        """Wait for what ends by itself, then say what is left, each thing in a sentence; what was left is ended and removed."""
        _settle(self._processes)
        _settle(self._descriptors)
        return [*self._end_processes(), *self._name_descriptors(), *self._remove_files()]

    def _seen(self) -> set[Process]:
        return living_with(*self._entries) | {process for pid in _descendants() if (process := _process(pid)) is not None}

    def _processes(self) -> set[Process]:
        return self._seen() - self._living

    def _descriptors(self) -> dict[int, str]:
        now = {number: target for number, target in descriptors().items() if self._open.get(number) != target}
        if now:
            gc.collect()  # what is held by a cycle only is closed here, with a ResourceWarning, which fails the test by itself
        return now

    def _end_processes(self) -> list[str]:
        left = self._processes()
        for process in left:
            end(process)
        return [f"process {process.pid} was left behind: {process.command or '(zombie)'}" for process in left]

    def _name_descriptors(self) -> list[str]:  # and leave them open: whoever holds the number would close another's
        return [f"descriptor {number} was left open: {target}" for number, target in self._descriptors().items()]

    def _remove_files(self) -> list[str]:
        left = sorted(_files(self._folder) - self._files)
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                os.unlink(path)
        return [f"a file was left outside the test's folder: {path}" for path in left]


def _settle(look: Callable[[], object]) -> None:
    until = time.monotonic() + SETTLING_LIMIT_S
    while look() and time.monotonic() < until:
        time.sleep(LOOK_AGAIN_S)  # processes of strangers and closing by other threads have no event to wait for


def _files(folder: str) -> set[str]:
    return {os.path.join(place, name) for place in (folder, f"{folder}/user", f"{folder}/tmp") for name in _names(place)}


def _names(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name not in {"user", "tmp"}]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def _descendants() -> list[int]:
    found: list[int] = []
    rest = [os.getpid()]
    while rest:
        pid = rest.pop()
        children = [int(child) for task in _tasks(pid) for child in _read(f"/proc/{pid}/task/{task}/children").split()]
        found += children
        rest += children
    return found


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _process(pid: int) -> Process | None:
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    return Process(pid, int(fields[START_TICKS]), command) if len(fields) > START_TICKS else None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
