"""What a damaged journal no longer says, the run folder still shows: that something ran."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import Status
from proctor.execution import EndedBy

if TYPE_CHECKING:
    from collections.abc import Callable


def empty(path: str) -> None:
    os.truncate(path, 0)


def fill_with_zeros(path: str) -> None:
    size = os.stat(path).st_size
    with open(path, "wb") as file:
        file.write(bytes(size))


@pytest.mark.requirement("O-DU-03", "O-DU-01")
@pytest.mark.parametrize("damage", [empty, fill_with_zeros, os.unlink])
def test_a_command_that_ran_is_never_said_not_to_have_run(damage: Callable[[str], None], home: str) -> None:
    with proctor.open_sync(home=home) as p, p.start(["cat"], stdin="pipe", lifetime="detached") as execution:
        execution.write(b"it ran\n")
        damage(os.path.join(home, "runs", execution.id, "journal.jsonl"))
        execution.write(b"", eof=True)
        assert execution.wait(timeout=20).status is Status.EXITED  # who follows it hears it from the keeper
    with proctor.open_sync(home=home) as p:
        os.unlink(os.path.join(home, "proctor.db"))
        record = p.show(execution.id)
        assert (record.status, record.ended_by) != (Status.FAILED, EndedBy.START_ERROR)
        assert record.output.text == "it ran\n"
