"""Each nasty tree, stopped: nothing is left of it by the independent witness, and the proof is claimed; as root and as a plain user."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proctor.testing.marker import VARIABLE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.conftest import Script

TREES = ("daemon", "session", "stopped", "group", "orphans", "hopper", "breeder", "crowd", "chain", "threads", "everything")
FULL_PERCENT, SMALL_PERCENT = 100, 10
ROUNDS = 20

# It looks itself, right after the stop has returned: what its user can see is all that can be there.
HOST = f"""
import json, select
from proctor.testing import Marker
witness = Marker()
witness.value = os.environ[{VARIABLE!r}]
tree, name, percent, rounds = sys.argv[2:]
with proctor.open_sync(home=home) as p:
    for _ in range(int(rounds)):
        execution = p.start([sys.executable, tree, name, percent], grace=0.1, on_linger="keep", streams="merged")
        while not execution.read_since(0).data:
            select.select((), (), (), 0.005)
        seen = len(witness.commands())
        record = execution.stop()
        left = [one.command for one in witness.commands()]
        print(json.dumps([seen, left, record.status.value, record.tree.proved, [one.command for one in record.tree.survivors]]), flush=True)
        execution.close()
"""


def assert_gone(lines: list[str], rounds: int, at_least: int, *, expected: str = "cancelled") -> None:
    told = [json.loads(line) for line in lines]
    assert len(told) == rounds, lines
    for seen, left, status, proved, survivors in told:
        assert (left, status, proved, survivors) == ([], expected, True, [])
        assert seen >= at_least


def least_of(name: str, percent: int) -> int:
    """Return how many processes there must have been at the stop, for the tree to be worth its name."""
    return {"crowd": 1000, "chain": 150, "threads": 11, "breeder": 500, "everything": 425}.get(name, 0) * percent // 100 or 1


@pytest.fixture
def tree(open_folder: Path) -> str:
    """Give the trees' program where every user may read it."""
    return str(shutil.copy(Path(__file__).with_name("trees.py"), open_folder))


def stop_as_this_user(script: Callable[..., Script], tree: str, name: str, percent: int, rounds: int) -> None:
    running = script(HOST, tree, name, str(percent), str(rounds))
    assert_gone([running.line() for _ in range(rounds)], rounds, least_of(name, percent))


def stop_as_plain_user(
    as_plain_user: Callable[..., subprocess.CompletedProcess[str]], tree: str, name: str, percent: int, rounds: int
) -> None:
    done = as_plain_user(HOST, tree, name, str(percent), str(rounds), limit_s=250)
    assert done.returncode == 0, done.stderr
    assert_gone(done.stdout.splitlines(), rounds, least_of(name, percent))


# The keeper is killed instead: its zygote has to end the tree and to say so.
KEEPER_KILLED = HOST.replace("record = execution.stop()", "os.kill(execution.record.keeper_pid, 9); record = execution.wait_ended()")
KILLED_ROUNDS = 5


@pytest.mark.requirement("I2-nasty-trees")
@pytest.mark.parametrize("name", TREES)
def test_a_small_nasty_tree_is_gone_after_its_stop_and_proved(name: str, script: Callable[..., Script], tree: str) -> None:
    stop_as_this_user(script, tree, name, SMALL_PERCENT, 1)


@pytest.mark.requirement("I2-nasty-trees-plain-user")
@pytest.mark.skipif(os.getuid() != 0, reason="this user is a plain one already")
@pytest.mark.parametrize("name", TREES)
def test_a_small_nasty_tree_of_a_plain_user_is_gone_after_its_stop_and_proved(
    name: str, as_plain_user: Callable[..., subprocess.CompletedProcess[str]], tree: str
) -> None:
    stop_as_plain_user(as_plain_user, tree, name, SMALL_PERCENT, 1)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-nasty-trees")
@pytest.mark.parametrize("name", TREES)
def test_a_full_nasty_tree_is_gone_after_its_stop_and_proved_twenty_times(name: str, script: Callable[..., Script], tree: str) -> None:
    stop_as_this_user(script, tree, name, FULL_PERCENT, ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-nasty-trees-plain-user")
@pytest.mark.skipif(os.getuid() != 0, reason="this user is a plain one already")
@pytest.mark.parametrize("name", TREES)
def test_a_full_nasty_tree_of_a_plain_user_is_gone_after_its_stop_and_proved_twenty_times(
    name: str, as_plain_user: Callable[..., subprocess.CompletedProcess[str]], tree: str
) -> None:
    stop_as_plain_user(as_plain_user, tree, name, FULL_PERCENT, ROUNDS)


def kill_the_keeper(script: Callable[..., Script], tree: str, name: str, percent: int, rounds: int) -> None:
    running = script(KEEPER_KILLED, tree, name, str(percent), str(rounds))
    assert_gone([running.line() for _ in range(rounds)], rounds, least_of(name, percent), expected="lost")


@pytest.mark.requirement("I2-nasty-trees", "I2-faults")
@pytest.mark.parametrize("name", ["session", "breeder", "everything"])
def test_a_small_nasty_tree_whose_keeper_was_killed_is_ended_and_proved_by_the_zygote(
    name: str, script: Callable[..., Script], tree: str
) -> None:
    kill_the_keeper(script, tree, name, SMALL_PERCENT, 1)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-nasty-trees", "I2-faults")
@pytest.mark.parametrize("name", TREES)
def test_a_full_nasty_tree_whose_keeper_was_killed_is_ended_and_proved_by_the_zygote(
    name: str, script: Callable[..., Script], tree: str
) -> None:
    kill_the_keeper(script, tree, name, FULL_PERCENT, KILLED_ROUNDS)
