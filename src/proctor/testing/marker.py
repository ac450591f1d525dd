"""An independent witness for tests: which processes carry a mark in the environment that they were exec'ed with.

It shares no code with the process backends that it checks. A mark is inherited by everything that is started while it is set, zygote and
keepers included, whatever its session, group or parent; a zombie carries none, since it can do nothing any more.
"""

from __future__ import annotations

import os
import select
import time
import uuid
from typing import TYPE_CHECKING

from ..data import Data

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["Marked", "Marker"]

VARIABLE = "PROCTOR_TEST_MARK"
EXECUTION = b"PROCTOR_EXECUTION_ID="
LOOK_AGAIN_S = 0.02  # a process that was born between two looks has no event to wait for


class Marked(Data, kw_only=False):
    """One process that carries the mark; ``execution`` is the id of the execution that it belongs to, empty for proctor's own."""

    pid: int
    command: str
    execution: str


class Marker:
    """One mark, unique to it."""

    def __init__(self) -> None:
        self.value = uuid.uuid4().hex

    def apply(self, environ: MutableMapping[str, str]) -> None:
        """Set the mark in an environment."""
        environ[VARIABLE] = self.value

    def living(self) -> list[Marked]:
        """Return every process that carries the mark now, except the caller."""
        entry = f"{VARIABLE}={self.value}".encode()
        found: list[Marked] = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            variables = _read(f"/proc/{name}/environ").split(b"\0")
            if entry in variables:
                execution = next((item.removeprefix(EXECUTION) for item in variables if item.startswith(EXECUTION)), b"")
                command = _read(f"/proc/{name}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
                found.append(Marked(int(name), command, execution.decode()))
        return found

    def commands(self) -> list[Marked]:
        """Return those that belong to an execution: neither zygotes nor keepers."""
        return [process for process in self.living() if process.execution]

    def gone_within(self, limit_s: float, *, commands_only: bool = False) -> list[Marked]:
        """Wait until none is left, at most ``limit_s``; return who is left then."""
        until = time.monotonic() + limit_s
        while left := (self.commands() if commands_only else self.living()):
            if time.monotonic() >= until:
                return left
            _await_end(left[0].pid, min(LOOK_AGAIN_S * 5, max(0.0, until - time.monotonic())))
        return []


def _await_end(pid: int, limit_s: float) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([descriptor], [], [], limit_s)
    finally:
        os.close(descriptor)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
