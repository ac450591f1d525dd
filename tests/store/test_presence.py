"""Who is alive is asked of a lock, so neither a fork nor a pid that was given again can stand for a dead host."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from proctor.store import Presence, open_home
from proctor.store.presence import clear, dead_hosts

if TYPE_CHECKING:
    from pathlib import Path

ANNOUNCING = """
import sys
from proctor.store import Presence
assert Presence(sys.argv[1]).announce()
print("announced", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> str:
    return open_home(str(tmp_path / "home"), allow_network=False)


def test_a_living_host_is_not_among_the_dead_and_one_that_left_is_not_either(place: str) -> None:
    presence = Presence(place)
    assert presence.announce()
    assert presence.announce()
    assert len(os.listdir(os.path.join(place, "hosts"))) == 1
    assert dead_hosts(place) == ()
    presence.withdraw(noted=True)
    presence.withdraw(noted=True)
    assert os.listdir(os.path.join(place, "hosts")) == []


@pytest.mark.requirement("I2-two-processes")
def test_a_killed_host_is_among_the_dead_until_it_is_cleared(place: str) -> None:
    with subprocess.Popen([sys.executable, "-c", ANNOUNCING, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"announced\n"
        assert dead_hosts(place) == ()
        host.kill()
    (dead,) = dead_hosts(place)
    clear([dead])
    assert dead_hosts(place) == ()


def test_a_host_that_could_not_note_everything_leaves_its_file(place: str) -> None:
    presence = Presence(place)
    assert presence.announce()
    presence.withdraw(noted=False)
    assert len(dead_hosts(place)) == 1


@pytest.mark.posix
def test_a_fork_does_not_stand_for_its_parent(place: str) -> None:
    presence = Presence(place)
    assert presence.announce()
    up, say_up = os.pipe()
    over, say_over = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(say_over)
        os.write(say_up, b".")
        os.read(over, 1)  # it outlives what its parent does next
        os._exit(0)
    os.read(up, 1)
    presence.withdraw(noted=False)  # as if it were killed
    found = dead_hosts(place)
    for end in (up, say_up, over, say_over):
        os.close(end)
    os.waitpid(child, 0)
    assert len(found) == 1


def test_where_no_file_can_be_made_the_host_is_told_to_note_first(place: str) -> None:
    with open(os.path.join(place, "hosts"), "w"):
        assert not Presence(place).announce()
