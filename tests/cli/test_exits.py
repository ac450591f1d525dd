"""The exit code of every kind of ending, without a process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from proctor.cli.exits import code_of_error, code_of_record
from proctor.execution import (
    EndedBy,
    Fault,
    Lifetime,
    LifetimePair,
    Machine,
    Output,
    ProofMethod,
    Record,
    Status,
    Tree,
)

GONE = Tree(proved=True, method=ProofMethod.CHILDREN_REAPED)
CALL = LifetimePair(requested=Lifetime.CALL, effective=Lifetime.CALL)
NOT_GONE = Tree(proved=False, method=ProofMethod.NONE)


def record(status: Status, **fields: Any) -> Record:
    return Record(
        id="0" * 26,
        machine=Machine(id="m", boot_id="b", pid_namespace="n", hostname="h"),
        cwd="/",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        output=Output(ref="x"),
        status=status,
        **{"pid": 1, "tree": GONE, "lifetime": CALL, **fields},
    )


@pytest.mark.requirement("I2-run-exit-codes", "O-SQ-09")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        (record(Status.EXITED, exit_code=0), 0),
        (record(Status.EXITED, exit_code=7), 7),
        (record(Status.EXITED, exit_code=137), 137),
        (record(Status.EXITED, signal="KILL"), 137),
        (record(Status.EXITED, signal="34"), 162),
        (record(Status.TIMED_OUT, exit_code=0), 124),
        (record(Status.CANCELLED, ended_by=EndedBy.STOP, exit_code=0), 143),
        (record(Status.CANCELLED, ended_by=EndedBy.OUTPUT_LIMIT, signal="PIPE"), 141),
        (record(Status.FAILED, pid=None, tree=None, error=Fault(code="program_not_found", message="")), 127),
        (record(Status.FAILED, pid=None, tree=None, error=Fault(code="program_not_executable", message="")), 126),
        (record(Status.FAILED, pid=None, tree=None, error=Fault(code="cwd_not_found", message="")), 125),
        (record(Status.DENIED, pid=None, tree=None), 126),
        (record(Status.LOST, tree=NOT_GONE, exit_code=0), 125),
        (record(Status.UNRESOLVED, tree=NOT_GONE, exit_code=0), 125),
        (record(Status.EXITED, tree=NOT_GONE, exit_code=0), 125),
        (record(Status.LINGERING, tree=None, exit_code=3), 3),
    ],
)
def test_every_ending_has_its_code_and_none_but_a_proved_success_is_zero(given: Record, code: int) -> None:
    assert code_of_record(given) == code


def test_an_error_that_has_no_code_of_its_own_is_proctors_failure() -> None:
    assert [code_of_error(code) for code in ("unknown_execution", "wait_timeout", "store_newer")] == [4, 124, 125]
