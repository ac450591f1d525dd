"""What the Linux backend promises beyond the contract: whom it signals, in which order, and whom never."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from proctor.data import changed
from proctor.execution import Launch
from proctor.process import Root
from proctor.process.linux import LinuxBackend, LinuxSurroundings, _checked
from proctor.process.procfs import descendants_of, stat_of
from proctor.testing import apart

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 10.0
# Signals are blocked and taken one by one, so that the order in which they arrived is the order in which they are told.
LISTENER = """
import os, signal, sys
heard = {signal.SIGTERM, signal.SIGCONT, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
with open(sys.argv[1], "w") as told:
    open(sys.argv[1] + ".up", "w").close()
    while True:
        number = signal.sigtimedwait(heard, 20)
        if number is None or number.si_signo == signal.SIGUSR1:
            break
        told.write(f"{number.si_signo}\\n")
        told.flush()
"""


def _spawn(backend: LinuxBackend, *argv: str) -> Root:
    null = os.open("/dev/null", os.O_RDWR)
    try:
        return backend.spawn(Launch(argv=argv, env=dict(os.environ), cwd="/", umask=0o022, nice=os.nice(0)), (null, null, null))
    finally:
        os.close(null)


def _until(reached: Callable[[], object]) -> None:
    until = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < until, "not reached in time"
        select.select([], [], [], 0.005)


def _keeping(check: Callable[[LinuxBackend], None]) -> None:
    def run() -> None:
        backend = LinuxBackend()
        backend.adopt()
        try:
            check(backend)
        finally:
            until = time.monotonic() + LIMIT_S
            while not backend.reap(None).empty and time.monotonic() < until:
                backend.force()
                select.select([], [], [], 0.002)

    apart(run)


@pytest.mark.requirement("I2-process-contract")
def test_everybody_is_asked_once_and_woken_after_it(tmp_path: Path) -> None:
    (tmp_path / "listen.py").write_text(LISTENER)

    def check(backend: LinuxBackend) -> None:
        python, listen = sys.executable, str(tmp_path / "listen.py")
        script = (
            f"{python} {listen} {tmp_path}/inside & setsid {python} {listen} {tmp_path}/outside & exec {python} {listen} {tmp_path}/root"
        )
        root = _spawn(backend, "sh", "-c", script)
        names = ("root", "inside", "outside")
        _until(lambda: all((tmp_path / f"{name}.up").exists() for name in names))
        backend.ask(root)
        _until(lambda: all((tmp_path / name).read_text().count("\n") >= 2 for name in names))
        backend.deliver(root, signal.SIGUSR1)
        told = {name: (tmp_path / name).read_text().split() for name in names}
        assert told == {name: [str(int(signal.SIGTERM)), str(int(signal.SIGCONT))] for name in names}

    _keeping(check)


@pytest.mark.requirement("I2-identity")
def test_a_group_whose_leader_is_not_ours_is_never_signalled() -> None:
    foreign = subprocess.Popen(["sleep", "60"], start_new_session=True)
    stat = stat_of(foreign.pid)
    assert stat is not None

    def check(backend: LinuxBackend) -> None:
        root = Root(foreign.pid, stat.start_ticks)
        assert backend.deliver(root, signal.SIGKILL).count == 0
        assert backend.ask(root).count == 0

    _keeping(check)
    assert foreign.poll() is None
    foreign.kill()
    foreign.wait()


@pytest.mark.requirement("I2-identity")
def test_a_process_that_is_not_the_one_that_was_seen_is_not_signalled() -> None:
    def check(backend: LinuxBackend) -> None:
        root = _spawn(backend, "sleep", "60")
        me = os.getpid()
        (seen,) = descendants_of(me)
        send = _checked({me})
        assert not send(changed(seen, start_ticks=seen.start_ticks + 1), signal.SIGKILL)
        assert not _checked({1})(seen, signal.SIGKILL)
        select.select([], [], [], 0.05)  # that nothing happens has no event
        assert backend.reap(root).root_status is None
        assert send(seen, signal.SIGKILL)

    _keeping(check)


THREAD_THAT_FORKS = """
import subprocess, threading
def child():
    subprocess.Popen(["sleep", "61"]).wait()
threads = [threading.Thread(target=child) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.requirement("I2-nasty-trees")
def test_children_of_every_thread_are_found() -> None:
    def check(backend: LinuxBackend) -> None:
        root = _spawn(backend, sys.executable, "-c", THREAD_THAT_FORKS)
        _until(lambda: [member.command for member in backend.members()].count("sleep 61") == 3)
        assert backend.force().count == 4
        _until(lambda: backend.reap(root).empty)

    _keeping(check)


@pytest.mark.requirement("I2-leftover-ports")
def test_members_tell_their_ports_and_who_holds_the_output() -> None:
    listener = (
        "import socket, time; a = socket.socket(); b = socket.socket(socket.AF_INET6); "
        "[(s.bind((h, 0)), s.listen()) for s, h in ((a, '127.0.0.1'), (b, '::1'))]; "
        "print(a.getsockname()[1], b.getsockname()[1], flush=True); time.sleep(60)"
    )

    def check(backend: LinuxBackend) -> None:
        reading, writing = os.pipe()
        null = os.open("/dev/null", os.O_RDWR)
        launch = Launch(argv=(sys.executable, "-c", listener), env=dict(os.environ), cwd="/", umask=0o022, nice=os.nice(0))
        backend.spawn(launch, (null, writing, null))
        os.close(writing)
        with open(os.dup(reading)) as file:
            ports = tuple(sorted(int(word) for word in file.readline().split()))
        (member,) = backend.members({os.readlink(f"/proc/self/fd/{reading}")})
        assert (member.listening, member.holds_output) == (ports, True)
        (member,) = backend.members({"pipe:[1]"})
        assert member.holds_output is False
        assert member.started_at is not None
        assert abs(member.started_at.timestamp() - time.time()) < 20

    _keeping(check)


@pytest.mark.requirement("I2-identity")
def test_a_host_finds_by_mark_and_by_session_and_signals_only_the_marked() -> None:
    surroundings = LinuxSurroundings()
    marked = subprocess.Popen(
        ["sh", "-c", "sleep 62 & env -i sleep 63 & wait"], start_new_session=True, env={**os.environ, "PROCTOR_EXECUTION_ID": "mine"}
    )
    ticks = surroundings.start_ticks(marked.pid)
    assert ticks is not None
    root = Root(marked.pid, ticks)
    try:
        _until(lambda: len(surroundings.find_members("mine", root)) == 3)
        assert {member.command for member in surroundings.find_members("mine", root)} >= {"sleep 62", "sleep 63"}
        assert {member.command for member in surroundings.find_members("mine", None)} >= {"sleep 62"}
        assert all(member.command != "sleep 63" for member in surroundings.find_members("mine", None))
        assert surroundings.find_members("min", None) == surroundings.find_members("mine2", None) == ()
        impostor = Root(marked.pid, ticks - 1)
        assert all(member.command != "sleep 63" for member in surroundings.find_members("mine", impostor))
        (unmarked,) = (member.pid for member in surroundings.find_members("mine", root) if member.command == "sleep 63")
        assert surroundings.signal_found("mine", signal.SIGKILL) == 2
        marked.wait()
        _until(lambda: not surroundings.find_members("mine", None))  # its child dies by itself, later than it
        assert surroundings.start_ticks(unmarked) is not None
        os.kill(unmarked, signal.SIGKILL)
    finally:
        marked.kill()
        marked.wait()


@pytest.mark.requirement("I2-identity")
def test_a_zombie_is_not_alive_and_a_strange_name_is_read() -> None:
    surroundings = LinuxSurroundings()
    named = "import time; open('/proc/self/comm', 'w').write(') R 1 (x'); print('up', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", named], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(3)
    stat = stat_of(process.pid)
    assert stat is not None
    assert (stat.name, stat.ppid, stat.alive) == (") R 1 (x", os.getpid(), True)
    assert surroundings.start_ticks(process.pid) == stat.start_ticks
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert surroundings.start_ticks(process.pid) is None
    process.communicate()
    assert stat_of(process.pid) is None


def test_this_machine_has_a_boot_and_a_pid_namespace() -> None:
    machine = LinuxSurroundings().machine()
    assert machine == LinuxSurroundings().machine()
    assert machine.boot_id.count("-") == 4
    assert machine.pid_namespace == os.readlink("/proc/self/ns/pid")
    assert machine.hostname
