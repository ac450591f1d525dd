"""Reading /proc: the few facts about a process that Linux offers, each read once and never trusted for longer than that.

Source of the formats: proc_pid_stat(5), proc_pid_task(5), proc_net_tcp in the kernel's Documentation/networking/proc_net_tcp.rst.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..data import Data

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Stat",
    "all_pids",
    "children_of",
    "command_of",
    "descendants_of",
    "environment_has",
    "links_of",
    "listening_ports",
    "stat_of",
    "ticks_to_time",
]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_COMMAND_LIMIT = 300
_LISTEN_STATE = "0A"


class Stat(Data, kw_only=False):
    """The identity and the place of one process; ``state`` is the letter of proc_pid_stat(5)."""

    pid: int
    state: str
    ppid: int
    pgid: int
    sid: int
    start_ticks: int
    name: str

    @property
    def alive(self) -> bool:
        """Whether it can still do anything: a zombie only waits to be reaped."""
        return self.state not in "ZXx"


def stat_of(pid: int) -> Stat | None:
    """Return what /proc/PID/stat says, or ``None`` when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            content = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name may hold spaces and brackets; the last bracket ends it.
    opening, closing = content.index(b"("), content.rindex(b")")
    fields = content[closing + 2 :].split()
    return Stat(
        pid=pid,
        state=fields[0].decode(),
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        start_ticks=int(fields[19]),
        name=content[opening + 1 : closing].decode(errors="replace"),
    )


def ticks_to_time(start_ticks: int) -> datetime:
    """Return the wall-clock time of a start time in ticks since boot (CLOCK_BOOTTIME, as the kernel counts it)."""
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return datetime.fromtimestamp(round(booted_at + start_ticks / _TICKS_PER_S, 2), UTC)  # a tick is 10 ms: more digits would be invented


def all_pids() -> list[int]:
    """Return every pid that /proc shows."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children_of(pid: int) -> list[int]:
    """Return the children of every thread of a process; a dead process has none."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.extend(map(int, file.read().split()))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def descendants_of(pid: int, spared: frozenset[int] = frozenset()) -> list[Stat]:
    """Return every process below ``pid``, parents first, leaving out the children in ``spared`` and all that is below them."""
    found: list[Stat] = []
    seen = set(spared)
    level = [child for child in children_of(pid) if child not in seen]
    while level:
        seen.update(level)
        found.extend(stat for stat in map(stat_of, level) if stat is not None)
        level = [child for parent in level for child in children_of(parent) if child not in seen]
    return found


def command_of(pid: int, name: str = "") -> str:
    """Return the command line of a process for people, cut to 300 characters; a zombie's is its name."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4 * _COMMAND_LIMIT).rstrip(b"\0").replace(b"\0", b" ")
    except OSError:
        words = b""
    return words.decode(errors="replace")[:_COMMAND_LIMIT] or (f"[{name}]" if name else "")


def environment_has(pid: int, entry: bytes) -> bool | None:
    """Tell whether a process was exec'ed with this NAME=VALUE; ``None`` when it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + entry + b"\0" in b"\0" + file.read()
    except PermissionError:
        return None
    except OSError:
        return False


def links_of(pid: int) -> set[str] | None:
    """Return what a process's descriptors point at (``pipe:[N]``, ``socket:[N]``, paths); ``None`` when it may not be read."""
    folder = f"/proc/{pid}/fd"
    found: set[str] = set()
    try:
        for name in os.listdir(folder):
            try:
                found.add(os.readlink(f"{folder}/{name}"))
            except (FileNotFoundError, ProcessLookupError):
                continue
    except PermissionError:
        return None
    except OSError:
        return found
    return found


def listening_ports(pid: int) -> dict[str, int]:
    """Return the TCP ports that are listened on in a process's network namespace, by ``socket:[inode]``."""
    found: dict[str, int] = {}
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}") as file:
                found.update(_listeners(file))
        except OSError:
            continue
    return found


def _listeners(lines: Iterator[str]) -> Iterator[tuple[str, int]]:
    next(lines, None)
    for line in lines:
        fields = line.split()
        if fields[3] == _LISTEN_STATE:
            yield f"socket:[{fields[9]}]", int(fields[1].rpartition(":")[2], 16)
