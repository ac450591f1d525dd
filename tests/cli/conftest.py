"""Command lines that go on while a test acts: each is a real process, ended and reaped when its test is over."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from proctor.testing import Marker

LIMIT_S = 20.0


@pytest.fixture
def begin(home: str, marker: Marker) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command line and return at once; its output and errors are pipes unless said otherwise."""
    del home, marker
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
        settings: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        process = subprocess.Popen([sys.executable, "-m", "proctor", *arguments], **settings)  # type: ignore[call-overload]
        started.append(process)
        return process  # type: ignore[no-any-return]

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired, ValueError):
            process.communicate(timeout=LIMIT_S)
        process.kill()
        process.wait()
