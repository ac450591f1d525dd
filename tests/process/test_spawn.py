"""What a command finds when it starts, and what is said when it cannot."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from proctor import ErrorCode
from proctor.execution import Launch
from proctor.process import SpawnError
from proctor.process.spawn import spawn_root
from proctor.testing import apart

if TYPE_CHECKING:
    from pathlib import Path

PROBE = """
import json, os, resource, signal, sys
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False  # the listing's own
listed = [int(name) for name in os.listdir("/proc/self/fd")]
print(json.dumps({
    "descriptors": sorted(filter(is_open, listed)),
    "cwd": os.getcwd(), "umask": os.umask(0), "nice": os.nice(0), "uid": os.getuid(), "groups": os.getgroups(),
    "leads": [os.getpid() == os.getpgid(0), os.getpid() == os.getsid(0)],
    "limit": resource.getrlimit(resource.RLIMIT_CPU),
    "ignored": open("/proc/self/status").read().split("SigIgn:")[1].split()[0],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "mine": os.environ.get("MINE"),
}))
"""


def _probe(launch: Launch, *more: int) -> dict[str, Any]:
    """Run the probe and return what it found."""
    reading, writing = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    pid = spawn_root(launch, (null, writing, null, *more))
    os.close(writing)
    os.close(null)
    with open(reading, "rb") as file:
        found: dict[str, Any] = json.loads(file.read())
    assert os.waitpid(pid, 0) == (pid, 0)
    return found


def _own_everything() -> None:
    """Be like a keeper, whose descriptors are all its own: what the test runner was started with is not passed on."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


def _launch(**changes: Any) -> Launch:
    usual: dict[str, Any] = {
        "argv": (sys.executable, "-S", "-c", PROBE),
        "env": {"PATH": os.defpath, "MINE": "yes"},
        "cwd": "/usr",
        "umask": 0o027,
        "nice": os.nice(0),
    }
    return Launch(**{**usual, **changes})


def _soft(which: int) -> tuple[tuple[int, int, int], ...]:
    soft, hard = resource.getrlimit(which)
    return ((which, 4321 if soft == resource.RLIM_INFINITY else soft - 1, hard),)


@pytest.mark.requirement("I2-inheritance", "I2-root-group")
@pytest.mark.parametrize("way", ["posix_spawn", "fork"])
def test_a_command_has_its_descriptors_and_nothing_else_of_the_keepers(way: str) -> None:
    def check() -> None:
        for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
        _own_everything()
        limits = _soft(resource.RLIMIT_CPU) if way == "fork" else ()
        found = _probe(_launch(rlimits=limits))
        assert found["descriptors"] == [0, 1, 2]
        assert (found["cwd"], found["umask"], found["mine"]) == ("/usr", 0o027, "yes")
        assert found["leads"] == [True, True]
        assert found["blocked"] == []
        # Python ignores SIGPIPE and SIGXFSZ by itself at its start; glibc's posix_spawn leaves its own two, 32 and 33, ignored.
        ignored = {number for number in range(1, 65) if int(found["ignored"], 16) >> (number - 1) & 1}
        assert ignored <= {signal.SIGPIPE, signal.SIGXFSZ, 32, 33}
        if limits:
            assert found["limit"] == [limits[0][1], limits[0][2]]
        assert os.getcwd() == "/"  # the keeper itself stands nowhere
        assert os.umask(0o022) != 0o027

    apart(check)


@pytest.mark.requirement("I2-inheritance")
def test_a_script_is_descriptor_three() -> None:
    def check() -> None:
        _own_everything()
        script = os.memfd_create("script")
        high = os.dup(script)
        assert _probe(_launch(), high)["descriptors"] == [0, 1, 2, 3]

    apart(check)


@pytest.mark.requirement("I2-inheritance")
def test_niceness_is_taken_over() -> None:
    def check() -> None:
        assert _probe(_launch(nice=os.nice(0) + 3))["nice"] == os.nice(0) + 3

    apart(check)


@pytest.mark.requirement("I2-inheritance")
@pytest.mark.skipif(os.getuid() != 0, reason="taking another user's identity needs root")
def test_another_users_identity_is_taken_with_its_groups() -> None:
    def check() -> None:
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        found = _probe(_launch(argv=(python, "-S", "-c", PROBE), user="nobody"))
        assert found["uid"] == 65_534
        assert 0 not in found["groups"]

    apart(check)


@pytest.mark.requirement("O-SQ-05")
def test_the_search_goes_on_behind_a_file_that_may_not_be_run(tmp_path: Path) -> None:
    def check() -> None:
        for number, mode in enumerate((0o644, 0o755)):
            (tmp_path / str(number)).mkdir()
            (tmp_path / str(number) / "tool").write_text("#!/bin/sh\nexit 0\n")
            (tmp_path / str(number) / "tool").chmod(mode)
        null = os.open("/dev/null", os.O_RDWR)
        both = {"PATH": f"/no/such:{tmp_path}/0:{tmp_path}/1"}
        pid = spawn_root(_launch(argv=("tool",), env=both), (null, null, null))
        assert os.waitpid(pid, 0)[1] == 0
        with pytest.raises(SpawnError) as raised:
            spawn_root(_launch(argv=("tool",), env={"PATH": f"{tmp_path}/0"}), (null, null, null))
        assert raised.value.code is ErrorCode.PROGRAM_NOT_EXECUTABLE
        with pytest.raises(SpawnError) as raised:
            spawn_root(_launch(argv=("tool",), env={"PATH": "/no/such"}), (null, null, null))
        assert raised.value.code is ErrorCode.PROGRAM_NOT_FOUND
        here = {"PATH": ""}  # an empty entry is the working folder
        pid = spawn_root(_launch(argv=("tool",), env=here, cwd=str(tmp_path / "1")), (null, null, null))
        assert os.waitpid(pid, 0)[1] == 0

    apart(check)


@pytest.mark.requirement("I2-error-codes")
@pytest.mark.parametrize("way", ["posix_spawn", "fork"])
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cwd": "/no/such"}, ErrorCode.CWD_NOT_FOUND),
        ({"cwd": "/etc/hostname"}, ErrorCode.CWD_NOT_A_DIRECTORY),
        ({"argv": ("/no/such",)}, ErrorCode.PROGRAM_NOT_FOUND),
        ({"argv": ("/etc",)}, ErrorCode.PROGRAM_NOT_EXECUTABLE),
        ({"argv": ("/bin/true", "x" * 131_072)}, ErrorCode.ARGUMENT_TOO_LONG),
        ({"env": {"X": "x" * 131_072}}, ErrorCode.ARGUMENT_TOO_LONG),
    ],
    ids=lambda value: value.value if isinstance(value, ErrorCode) else next(iter(value)) if isinstance(value, dict) else str(value),
)
def test_a_start_that_fails_says_why_and_leaves_no_process(way: str, changes: dict[str, Any], code: ErrorCode) -> None:
    def check() -> None:
        limits = _soft(resource.RLIMIT_CPU) if way == "fork" else ()
        null = os.open("/dev/null", os.O_RDWR)
        before = os.listdir("/proc/self/fd")
        with pytest.raises(SpawnError) as raised:
            spawn_root(_launch(**{"argv": ("/bin/true",), **changes}, rlimits=limits), (null, null, null))
        assert raised.value.code is code
        assert raised.value.hint
        assert os.listdir("/proc/self/fd") == before
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    apart(check)


@pytest.mark.requirement("I2-error-codes")
@pytest.mark.skipif(os.getuid() != 0, reason="a limit on processes does not bind root; another identity needs root")
@pytest.mark.parametrize("way", ["posix_spawn", "fork"])
def test_a_user_out_of_processes_is_told_so(way: str) -> None:
    def check() -> None:
        os.setgid(65_534)
        os.setuid(65_534)
        limits = _soft(resource.RLIMIT_CPU) if way == "fork" else ()
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        null = os.open("/dev/null", os.O_RDWR)
        with pytest.raises(SpawnError) as raised:
            spawn_root(_launch(argv=("/bin/true",), rlimits=limits), (null, null, null))
        assert raised.value.code is ErrorCode.SPAWN_FAILED
        assert "process" in raised.value.message

    apart(check)
