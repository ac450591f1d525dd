"""One home seen from two places: what belongs to the other one is left alone, and nobody calls it lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import proctor
from proctor import EndedBy, ProctorError, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="making namespaces needs root")

# Each line from the test is one request: look at everything, start a command for good, run one, end a process, or leave.
PLACE = """
import json, os, signal, sys, proctor
with proctor.open_sync(home=sys.argv[1]) as p:
    print(json.dumps("open"), flush=True)
    for line in sys.stdin:
        match line.split():
            case ["start", lifetime]:
                with p.start(["sleep", "4000"], lifetime=lifetime) as e:
                    said = [e.id, e.record.keeper_pid, e.record.pid]
            case ["look"]:
                said = {r.id: [r.status.value, r.elsewhere] for r in p.unfinished()}
            case ["show", name]:
                r = p.show(name)
                said = [r.status.value, r.ended_by and r.ended_by.value, r.elsewhere]
            case ["stop", name]:
                said = p.stop(name).status.value
            case ["kill", pid]:
                said = os.kill(int(pid), signal.SIGKILL)
        print(json.dumps(said), flush=True)
"""


class Place:
    """A host in namespaces of its own, which does what it is told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._told() == "open"

    def ask(self, *words: object) -> Any:
        """Have it do something; return what it says."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self._told()

    def kill(self) -> None:
        """End it: everything in its pid namespace ends with it."""
        self._process.kill()
        self._process.communicate()

    def _told(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def place(home: str, *entry: str) -> Iterator[Place]:
    """Open a host behind an entry such as ``unshare``."""
    with subprocess.Popen([*entry, sys.executable, "-c", PLACE, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        opened = Place(process)
        yield opened
        opened.kill()


def own_processes() -> Sequence[str]:
    """Return an entry into a pid namespace that ends with what is put behind it."""
    return ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def with_machine_id(folder: Path, letter: str) -> Sequence[str]:
    """Return an entry to where the machine's id is another one."""
    made = folder / f"machine-id-{letter}"
    made.write_text(letter * 32 + "\n")
    return ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/machine-id && exec "$@"', str(made))


def parent_of(pid: int) -> int:
    """Return who started a process."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


@pytest.mark.requirement("I2-elsewhere")
@pytest.mark.parametrize("lifetime", ["host", "detached"])
def test_two_pid_namespaces_on_one_home_leave_each_others_executions_alone(lifetime: str, home: str) -> None:
    hostname = os.uname().nodename
    with place(home) as here, place(home, *own_processes()) as there:
        mine, *_ = here.ask("start", lifetime)
        theirs, *_ = there.ask("start", lifetime)
        for _ in range(2):
            assert here.ask("look") == {mine: ["running", None], theirs: ["running", hostname]}
            assert there.ask("look") == {theirs: ["running", None], mine: ["running", hostname]}
        assert here.ask("stop", mine) == "cancelled"
        assert there.ask("look") == {theirs: ["running", None]}
        assert there.ask("stop", theirs) == "cancelled"
        assert here.ask("look") == {}


@pytest.mark.requirement("I2-elsewhere")
def test_what_ended_unseen_in_a_pid_namespace_that_is_gone_is_never_called_lost_from_outside(home: str) -> None:
    with place(home, *own_processes()) as there:
        theirs, *_ = there.ask("start", "detached")
        there.kill()
    with proctor.open_sync(home=home) as host:
        (record,) = host.unfinished()
        assert (record.id, record.status, record.elsewhere) == (theirs, Status.RUNNING, os.uname().nodename)
        with pytest.raises(ProctorError):
            host.stop(theirs)
        assert host.show(theirs).status is Status.RUNNING


@pytest.mark.requirement("I2-elsewhere")
@pytest.mark.skipif(not os.path.exists("/etc/machine-id"), reason="this machine has no id")
def test_a_machine_of_another_id_leaves_a_dead_keepers_execution_alone_and_its_own_one_tells_it_as_lost(home: str, tmp_path: Path) -> None:
    one, other = with_machine_id(tmp_path, "1"), with_machine_id(tmp_path, "2")
    with place(home, *one) as first, place(home, *other) as second:
        name, keeper, root = first.ask("start", "detached")
        assert second.ask("look") == {name: ["running", os.uname().nodename]}
        first.kill()
        for pid in (parent_of(keeper), keeper, root):  # the zygote first: it would write the ending, and know
            second.ask("kill", pid)
        assert second.ask("look") == {name: ["running", os.uname().nodename]}
        assert second.ask("show", name) == ["running", None, os.uname().nodename]
    with place(home, *one) as again:
        assert again.ask("look") == {}
        assert again.ask("show", name) == [Status.LOST.value, EndedBy.KEEPER_LOST.value, None]
