"""The heartbeat tree through the command line: silent, gone, and the message names the cause."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from proctor.testing import Marker


@pytest.mark.requirement("I2-heartbeat", "I2-heartbeat-shell")
@pytest.mark.parametrize("way", ["timeout", "interrupt"])
def test_the_heartbeat_is_silent_and_the_message_names_the_cause(way: str, work: Path, marker: Marker) -> None:
    beat = "for i in $(seq 150); do printf x >> beat; sleep 0.2; done; echo end > end"
    limit = ["--timeout", "1"] if way == "timeout" else []
    command = [sys.executable, "-m", "proctor", "run", *limit, "--", f"sh -c 'sleep 30 & ({beat}) & wait'"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if way == "interrupt":
        until = time.monotonic() + 10
        while not (work / "beat").exists():
            assert time.monotonic() < until
        process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=15)
    assert marker.commands() == []
    assert not os.path.exists("end")
    assert process.returncode == (124 if way == "timeout" else 130)
    assert ("timed out after 1 s" if way == "timeout" else "stopped") in told
