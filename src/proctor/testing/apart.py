"""A piece of a test in a forked process of its own: for what takes over a whole process, as a keeper's backend does.

The fork leads a session, so that a signal to its group reaches nobody else. What it raises is raised here; it never returns into the
test runner.
"""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["apart"]


def apart(check: Callable[[], None]) -> None:
    """Run ``check`` in a fork; raises ``AssertionError`` with its traceback when it failed, or when the fork died."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run(check, writing)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as file:
        told = file.read()
    _, status = os.waitpid(pid, 0)
    if status != 0 or told:
        raise AssertionError(told or f"the fork ended with wait status {status}")


def _run(check: Callable[[], None], writing: int) -> NoReturn:
    status = 1
    try:
        os.setsid()
        check()
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent is to tell it
        os.write(writing, traceback.format_exc().encode(errors="replace")[-60_000:])
    finally:
        os._exit(status)
