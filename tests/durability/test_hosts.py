"""Hosts of every shape: forked, threaded, several in one process."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import EndedBy, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Script

    from proctor import SyncProctor
    from proctor.testing import Marker

FORKING_HOST = """
import json
def works(p, word):
    record = p.run(["echo", word])
    return (record.exit_code, record.output.text, record.second_net) == (0, word + "\\n", True)
with proctor.open_sync(home=home) as p:
    assert works(p, "before")
    mine = p.start(["sleep", "4000"])
    child = os.fork()
    if child == 0:
        fine = works(p, "child")
        its = p.start(["sleep", "4001"])
        print(json.dumps([fine, its.id]), flush=True)
        sys.stdin.readline()
        os._exit(0)
    fine = works(p, "parent")
    print(json.dumps([fine, mine.id]), flush=True)
    os.waitpid(child, 0)
    print(json.dumps([works(p, "after"), mine.record.status.value]), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.requirement("I2-many-hosts")
def test_a_forked_host_works_and_each_of_the_two_is_the_owner_of_what_it_started(
    script: Callable[..., Script], home: str, marker: Marker
) -> None:
    running = script(FORKING_HOST)
    told = [json.loads(running.line()) for _ in range(2)]
    assert [fine for fine, _ in told] == [True, True]
    with proctor.open_sync(home=home) as host:
        by_word = {record.argv[-1]: record for record in host.unfinished() if record.argv}
        assert set(by_word) == {"4000", "4001"}
        let_on(running)  # the child ends, and the parent lives
        ended = wait_for(host, by_word["4001"].id)
        assert (ended.status, ended.ended_by) == (Status.CANCELLED, EndedBy.OWNER_GONE)
        assert json.loads(running.line()) == [True, "running"]
        assert [record.id for record in host.unfinished()] == [by_word["4000"].id]
        let_on(running)
        ended = wait_for(host, by_word["4000"].id)
        assert (ended.status, ended.ended_by) == (Status.CANCELLED, EndedBy.OWNER_GONE)
    assert marker.commands() == []


FORKING_WHILE_BUSY = """
import threading
with proctor.open_sync(home=home) as p:
    over = threading.Event()
    wrong = []
    def work():
        while not over.is_set():
            wrong.append(p.run(["true"]).exit_code)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(6):
        child = os.fork()
        if child == 0:
            os._exit(p.run(["true"]).exit_code)
        wrong.append(os.waitpid(child, 0)[1])
    over.set()
    for thread in threads:
        thread.join()
print(set(wrong))
"""


@pytest.mark.requirement("I2-many-hosts")
def test_a_host_that_forks_while_its_threads_run_commands_does_not_hang(script: Callable[..., Script]) -> None:
    assert script(FORKING_WHILE_BUSY).line() == "{0}"


def let_on(running: Script) -> None:
    assert running.process.stdin is not None
    running.process.stdin.write("\n")
    running.process.stdin.flush()


def wait_for(host: SyncProctor, name: str) -> proctor.Record:
    with host.attach(name) as execution:
        return execution.wait(timeout=10)


@pytest.mark.requirement("I2-many-hosts", "O-CO-01")
def test_threads_share_a_host_and_each_has_its_own_output_folder_and_environment(host: SyncProctor, tmp_path: Path) -> None:
    threads_count, rounds = 8, 5
    wrong: list[object] = []
    start = threading.Barrier(threads_count)

    def work(number: int) -> None:
        folder = tmp_path / f"of{number}"
        folder.mkdir()
        start.wait(10)
        for turn in range(rounds):
            word = f"{number}-{turn}"
            record = host.run(["sh", "-c", "echo $WORD; pwd; exit 3"], cwd=folder, env={"WORD": word})
            if (record.exit_code, record.output.text) != (3, f"{word}\n{folder}\n"):
                wrong.append(record)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    host.runtime.save()
    assert len(host.runtime.index.recent(100)) == threads_count * rounds
    assert host.unfinished() == []


@pytest.mark.requirement("I2-many-hosts")
@pytest.mark.parametrize("homes", [("home", "home"), ("home", "other")], ids=["one home", "two homes"])
def test_two_runtimes_in_one_process_do_not_disturb_each_other(homes: tuple[str, str], tmp_path: Path, marker: Marker) -> None:
    places = [str(tmp_path / name) for name in homes]
    with proctor.open_sync(home=places[0]) as first:
        with proctor.open_sync(home=places[1]) as second:
            kept = first.start(["sleep", "4000"])
            passing = second.start(["sleep", "4000"])
            assert second.run(["echo", "two"]).output.text == "two\n"
            expected = {kept.id, passing.id} if homes[0] == homes[1] else {kept.id}
            assert {record.id for record in first.unfinished()} == expected
            assert passing.stop().status is Status.CANCELLED
            passing.close()
        # The second is closed, its zygote with it: nothing of the first has changed.
        assert first.run(["echo", "one"]).output.text == "one\n"
        assert [record.id for record in first.unfinished()] == [kept.id]
        assert kept.stop().status is Status.CANCELLED
        kept.close()
    assert marker.commands() == []


@pytest.mark.requirement("I2-many-hosts")
def test_a_host_that_closes_with_its_command_running_is_its_owner_until_the_process_ends(home: str, marker: Marker) -> None:
    with proctor.open_sync(home=home) as first, first.start(["sleep", "4000"]) as execution:
        name = execution.id
    assert [process.command for process in marker.commands()] == ["sleep 4000"]
    with proctor.open_sync(home=home) as again:
        record = again.stop(name)
    assert record is not None
    assert (record.status, record.ended_by) == (Status.CANCELLED, EndedBy.STOP)
