"""What a command has of its host at the moment of the call, and what of host, zygote and keeper it has not."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import proctor
from proctor import Status
from proctor.testing import apart

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proctor import SyncProctor

PROBE = """
import json, os, resource, sys
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False  # the listing's own
try:
    os.open("/dev/tty", os.O_RDWR)
    terminal = True
except OSError:
    terminal = False
print(json.dumps({
    "descriptors": [number for number in sorted(map(int, os.listdir("/proc/self/fd"))) if is_open(number)],
    "cwd": os.getcwd(), "umask": os.umask(0), "nice": os.nice(0), "terminal": terminal,
    "cpu": resource.getrlimit(resource.RLIMIT_CPU), "size": resource.getrlimit(resource.RLIMIT_FSIZE),
    "env": dict(os.environ), "group": os.getpgid(0) == os.getpid(), "root": os.readlink("/proc/self/root"),
}))
"""


def _probe(host: SyncProctor, **options: Any) -> dict[str, Any]:
    record = host.run([sys.executable, "-S", "-c", PROBE], **options)
    assert record.exit_code == 0, record
    found: dict[str, Any] = json.loads(record.output.text or "")
    return found


@pytest.mark.requirement("I2-inheritance")
def test_a_command_has_descriptors_0_to_2_and_no_terminal_whatever_its_host_holds_open(host: SyncProctor, work: Path) -> None:
    with (work / "open").open("w") as file, socket.socket() as connection:
        os.set_inheritable(file.fileno(), True)
        os.set_inheritable(connection.fileno(), True)
        with proctor.open_sync(home=host.runtime.home) as later:  # its zygote is started while they are open
            found = _probe(later)
        assert found == {**found, "descriptors": [0, 1, 2], "terminal": False, "group": True}
    assert _probe(host, streams="merged")["descriptors"] == [0, 1, 2]
    assert _probe(host, stdin=b"x")["descriptors"] == [0, 1, 2]


@pytest.mark.requirement("I2-inheritance")
def test_folder_umask_niceness_and_limits_are_those_of_the_moment_of_the_call(home: str, work: Path) -> None:
    def check() -> None:
        with proctor.open_sync(home=home) as host:
            before = _probe(host)
            (work / "later").mkdir()
            os.chdir(work / "later")
            os.umask(0o077)
            os.nice(2)
            soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
            fewer = 4321 if soft == resource.RLIM_INFINITY else soft - 1
            resource.setrlimit(resource.RLIMIT_CPU, (fewer, hard))
            after = _probe(host)
            assert (after["cwd"], after["umask"], after["nice"]) == (str(work / "later"), 0o077, before["nice"] + 2)
            assert after["cpu"] == [fewer, hard]
            assert before["cpu"] == [soft, hard]

    apart(check)


@pytest.mark.requirement("I2-inheritance", "I2-environment")
def test_the_environment_is_the_hosts_without_its_secrets_and_with_what_was_asked_for(
    home: str, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    monkeypatch.setenv("PLAIN", "value")
    monkeypatch.setenv("MY_TOKEN", "secret-one")
    monkeypatch.setenv("OTHER_API_KEY", "secret-two")
    with proctor.open_sync(home=home) as host:
        found = _probe(host, env={"ADDED": "é\n=x"}, env_pass=["OTHER_API_KEY"], session="mine")["env"]
        record = host.show("-")
    assert (found["PLAIN"], found["ADDED"], found["OTHER_API_KEY"]) == ("value", "é\n=x", "secret-two")
    assert "MY_TOKEN" not in found
    assert (found["PROCTOR"], found["PROCTOR_EXECUTION_ID"], found["PROCTOR_SESSION"]) == ("1", record.id, "mine")
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert "MY_TOKEN" in record.env_withheld
    assert "OTHER_API_KEY" not in record.env_withheld
    assert {"PLAIN", "ADDED"} <= set(record.env_names)
    del work
    for folder, _, names in os.walk(home):
        for name in set(names) - {"control"}:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            assert b"secret-one" not in content, name
            if name != "output" and not name.startswith("output"):
                assert b"secret-two" not in content, name


@pytest.mark.requirement("I2-inheritance", "I2-disk-full")
def test_a_limit_on_file_sizes_binds_the_command_and_not_its_keeper(home: str, work: Path) -> None:
    def check() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with proctor.open_sync(home=home) as host:
            host.run(["true"])
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
            record = host.run(
                "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero > big; echo $? >&2; wc -c < big >&2", cwd=work
            )
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert record.output.bytes > 3_000_000
        assert (record.output.kept_bytes, record.output.incomplete) == (record.output.bytes, None)
        assert (record.output.stderr or "").split()[-1] == str(1 << 20)

    apart(check)


@pytest.mark.requirement("I2-inheritance")
def test_a_host_that_ignores_signals_does_not_make_its_commands_deaf(home: str, work: Path) -> None:
    def check() -> None:
        import signal

        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
        with proctor.open_sync(home=home) as host:
            record = host.run("grep -E '^Sig(Ign|Blk)' /proc/self/status; sleep 60 & exec sleep 61", timeout=0.4, cwd=work)
        assert record.status is Status.TIMED_OUT
        assert record.tree is not None
        assert (record.signal, record.tree.escalated) == ("TERM", False)
        assert record.output.stdout is not None
        blocked, ignored = (int(line.split()[1], 16) for line in record.output.stdout.splitlines())
        assert blocked == 0
        assert ignored & ~(1 << 31 | 1 << 32) == 0  # glibc's posix_spawn leaves its own two, 32 and 33, ignored

    apart(check)


REPLACED = """
import shutil, time, importlib, pkgutil
p = proctor.open_sync(home=home)
p.run("echo before; echo x >&2")
for module in pkgutil.walk_packages(proctor.__path__, "proctor."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)  # a host may import what it likes later; a keeper may not
running = p.start("trap '' TERM; setsid sleep 60 & echo up; sleep 60; sleep 60", stdin="pipe", grace=0.3)
print("ready", flush=True)
sys.stdin.readline()
results = [
    p.run("echo after; echo y >&2").output.text,
    p.run("x" * 200_000 and ": '" + "A" * 200_000 + "'; echo long").output.text,
    p.run(["/no/such/program"]).error.code,
    p.run("true", cwd="/no/such").error.code,
    p.run("sleep 60 & echo left; exit 3").exit_code,
    p.run("sleep 60", timeout=0.2).status,
    p.run("yes | head -c 9000000", streams="merged").output.bytes,
    p.run(["sh", "-c", "kill -SEGV $$"]).signal,
    p.run(["true"], user="nobody", cwd="/").status if os.getuid() == 0 else "exited",
    p.run(["cat"], stdin=b"fed").output.text,
    p.run("sleep 0.3; exit 2", idle_timeout=0.1).ended_by,
    running.write(b"more"),
    running.stop().tree.proved,
]
print(*(str(result).strip().replace("\\n", ",") for result in results), sep="|", flush=True)
log = [name for name in os.listdir(os.path.join(home, "runs")) if os.path.exists(os.path.join(home, "runs", name, "keeper.log"))]
print(*log)
"""


@pytest.mark.requirement("I2-package-replaced")
def test_keepers_go_on_when_the_package_is_taken_away_under_them(home: str, tmp_path: Path) -> None:
    package = os.path.dirname(os.path.abspath(proctor.__file__))
    shutil.copytree(package, tmp_path / "copy" / "proctor")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "copy")}
    prelude = "import os, sys, proctor\nhome = sys.argv[1]\n"
    command = [sys.executable, "-u", "-c", prelude + REPLACED, home]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    shutil.rmtree(tmp_path / "copy")
    told, _ = process.communicate("go\n", timeout=50)
    expected = "after,y|long|program_not_found|cwd_not_found|3|timed_out|9000000|SEGV|exited|fed|idle_timeout|4|True"
    assert told.splitlines() == [expected, ""]


@pytest.mark.requirement("I2-inheritance")
def test_a_folder_that_a_command_ran_in_can_be_removed_while_its_zygote_lives(host: SyncProctor, tmp_path: Path) -> None:
    folder = tmp_path / "used"
    folder.mkdir()
    host.run(["true"], cwd=folder)
    zygote = host.runtime._zygote
    assert zygote is not None
    assert os.readlink(f"/proc/{zygote.pid}/cwd") == "/"
    for name in os.listdir(f"/proc/{zygote.pid}/fd"):
        link = os.readlink(f"/proc/{zygote.pid}/fd/{name}")
        assert link == "/dev/null" or link.startswith(("socket:", "anon_inode:", "pipe:")), link


@pytest.mark.requirement("I2-start-up")
def test_a_zygote_holds_no_pipe_that_a_callers_caller_waits_on(script: Callable[..., Any]) -> None:
    running = script('p = proctor.open_sync(home=home); p.start(["sleep", "60"], lifetime="detached"); print(p.show("-").id); os._exit(0)')
    name = running.line()
    assert select.select([running.process.stdout], [], [], 5)[0]
    assert running.line() == ""  # end of file, although zygote, keeper and command live
    with proctor.open_sync() as p:
        assert p.show(name).status is Status.RUNNING
        assert p.stop(name) is not None
