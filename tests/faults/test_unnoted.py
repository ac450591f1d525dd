"""A host that dies before it has noted its newest call in the index: the next host finds the run folder all the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import Status

from .rounds import GONE_LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Script

    from proctor.testing import Marker

    from .conftest import Gate

CALLING = """
with proctor.open_sync(home=home) as p:
    print("open")
    sys.stdin.readline()
    p.run(["sleep", "4000"])
"""


@pytest.mark.requirement("I2-faults", "O-CO-04")
@pytest.mark.parametrize("looking", ["a new host", "a host that was open"])
def test_a_call_whose_host_died_before_it_was_in_the_index_is_listed_by_every_host(
    looking: str, gate: Gate, script: Callable[..., Script], marker: Marker, home: str
) -> None:
    calling = script(CALLING)
    assert calling.line() == "open"
    with proctor.open_sync(home=home) as host:
        host.run(["true"])
        assert host.unfinished() == []
        gate.arm("keeper_started")
        assert calling.process.stdin is not None
        calling.process.stdin.write("\n")
        calling.process.stdin.flush()
        held = gate.caught()
        calling.kill()
        held.let_on()
        assert marker.gone_within(GONE_LIMIT_S, commands_only=True) == []
        newest = host.run(["true"])  # its row hides the gap from whoever only compares dates
        host.runtime.save()
        noted_ms = int(newest.created_at.timestamp() * 1000) + 20
        os.utime(os.path.join(home, "runs"), (noted_ms / 1000, noted_ms / 1000))
        if looking == "a new host":
            with proctor.open_sync(home=home) as fresh:
                records = fresh.runtime.index.recent(10)
        else:
            assert host.unfinished() == []
            records = host.runtime.index.recent(10)
    found = {record.argv: record.status for record in records}
    assert found == {("true",): Status.EXITED, ("sleep", "4000"): Status.CANCELLED}
