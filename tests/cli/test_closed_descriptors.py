"""A caller may close standard descriptors; proctor's own sockets must not take their numbers."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROCTOR = f"{sys.executable} -m proctor"


def shell(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.requirement("I2-run-exit-codes", "O-SQ-07")
@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_the_exit_code_is_the_commands_whatever_is_closed(closed: str) -> None:
    for command in ("seq 1 20000; exit 3", "seq 1 20000 >&2; exit 3"):
        assert shell(f"{PROCTOR} run --no-login -- '{command}' {closed}").returncode == 3


@pytest.mark.requirement("O-SQ-07")
@pytest.mark.usefixtures("home")
def test_a_closed_standard_input_that_is_handed_on_is_at_its_end() -> None:
    done = shell(f"{PROCTOR} run --no-login --stdin - -- 'readlink /proc/self/fd/0; cat' <&-")
    assert (done.returncode, done.stdout) == (0, "/dev/null\n")
