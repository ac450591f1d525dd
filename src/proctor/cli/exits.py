"""Exit codes of the command line: the command's own, and the few that proctor adds (DESIGN section 12).

Pure functions of a record or an error. A code of 0 is given only where the command said so and its tree is proved gone.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from ..errors import ErrorCode
from ..execution import Status

if TYPE_CHECKING:
    from ..execution import Record

__all__ = [
    "BROKEN_PIPE",
    "CONDITION_FAILED",
    "LIMIT_PASSED",
    "PROCTOR_FAILED",
    "SUCCESS",
    "UNKNOWN_ID",
    "UNRESOLVED",
    "USAGE",
    "code_of_error",
    "code_of_record",
    "code_of_signal",
]

SUCCESS = 0
CONDITION_FAILED = 1
USAGE = 2
UNRESOLVED = 3
UNKNOWN_ID = 4
LIMIT_PASSED = 124
PROCTOR_FAILED = 125
NOT_ALLOWED = 126
NOT_FOUND = 127
SIGNAL_BASE = 128
BROKEN_PIPE = SIGNAL_BASE + 13  # SIGPIPE, as a shell shows it

_ERRORS: dict[str, int] = {
    ErrorCode.INVALID_REQUEST: USAGE,
    ErrorCode.UNKNOWN_EXECUTION: UNKNOWN_ID,
    ErrorCode.UNKNOWN_SESSION: UNKNOWN_ID,
    ErrorCode.WAIT_TIMEOUT: LIMIT_PASSED,
    ErrorCode.PROGRAM_NOT_FOUND: NOT_FOUND,
    ErrorCode.PROGRAM_NOT_EXECUTABLE: NOT_ALLOWED,
    ErrorCode.SANDBOX_UNAVAILABLE: NOT_ALLOWED,
    ErrorCode.POLICY_DENIED: NOT_ALLOWED,
    ErrorCode.APPROVAL_REFUSED: NOT_ALLOWED,
}


def code_of_error(code: str) -> int:
    """Return the exit code for one of the stable error codes."""
    return _ERRORS.get(code, PROCTOR_FAILED)


def code_of_signal(number: int) -> int:
    """Return 128 + N, as a shell does."""
    return SIGNAL_BASE + number


def code_of_record(record: Record) -> int:  # noqa: PLR0911 - one return for each kind of ending
    """Return the exit code of ``proctor run`` for a result."""
    match record.status:
        case Status.TIMED_OUT:
            return LIMIT_PASSED
        case Status.FAILED:
            return PROCTOR_FAILED if record.error is None else code_of_error(record.error.code)
        case Status.DENIED:
            return NOT_ALLOWED
        case Status.LOST | Status.UNRESOLVED:
            return PROCTOR_FAILED
    if record.ended and (record.tree is None or not record.tree.proved) and record.pid is not None:
        return PROCTOR_FAILED
    if record.signal is not None:
        return code_of_signal(_number(record.signal))
    if record.status is Status.CANCELLED:
        # A command that answers the signal with exit 0 was stopped all the same: `&&` must not go on.
        return record.exit_code or code_of_signal(signal.SIGTERM)
    return PROCTOR_FAILED if record.exit_code is None else record.exit_code


def _number(name: str) -> int:
    if name.isdigit():
        return int(name)
    return int(getattr(signal.Signals, f"SIG{name}"))
