"""Every exception that proctor raises, in one tree.

Outcomes (a non-zero exit, a timeout, a denial, a kill, a lost keeper) are values in the record; an exception means misuse, a missing
thing, or storage that cannot be trusted. Each carries a stable ``code``, a message that names the thing, and a hint that says what to do.

ProctorError
├── RequestError        the request cannot be carried out as it was written
├── ExecutionError      the execution asked about is not there, or not in a state that allows the request
├── OutputError         kept output is missing or cannot be read
├── StoreError          the home folder or its index cannot be used
├── KeeperError         a keeper or its zygote does not answer
└── TransitionError     an event that the status table does not allow: always a defect in proctor or a damaged journal
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "ErrorCode",
    "ExecutionError",
    "KeeperError",
    "OutputError",
    "ProctorError",
    "RequestError",
    "StoreError",
    "TransitionError",
]


class ErrorCode(StrEnum):
    """The stable codes; users script against them, so they are only ever added to."""

    INVALID_REQUEST = "invalid_request"
    PROGRAM_NOT_FOUND = "program_not_found"
    PROGRAM_NOT_EXECUTABLE = "program_not_executable"
    CWD_NOT_FOUND = "cwd_not_found"
    CWD_NOT_A_DIRECTORY = "cwd_not_a_directory"
    CWD_NOT_ACCESSIBLE = "cwd_not_accessible"
    CWD_OUTSIDE_WORKSPACE = "cwd_outside_workspace"
    ARGUMENT_TOO_LONG = "argument_too_long"
    SPAWN_FAILED = "spawn_failed"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    SANDBOX_DENIED = "sandbox_denied"
    POLICY_DENIED = "policy_denied"
    APPROVAL_REFUSED = "approval_refused"
    QUOTA_EXCEEDED = "quota_exceeded"
    UNKNOWN_EXECUTION = "unknown_execution"
    UNKNOWN_SESSION = "unknown_session"
    NOT_RUNNING = "not_running"
    WAIT_TIMEOUT = "wait_timeout"
    STDIN_CLOSED = "stdin_closed"
    STDIN_FULL = "stdin_full"
    OUTPUT_MISSING = "output_missing"
    OUTPUT_UNREADABLE = "output_unreadable"
    PATH_OUTSIDE_ROOT = "path_outside_root"
    PATH_PROTECTED = "path_protected"
    PATCH_CONFLICT = "patch_conflict"
    PATCH_MALFORMED = "patch_malformed"
    STALE_BASE = "stale_base"
    VERIFICATION_FAILED = "verification_failed"
    VERIFICATION_STALE = "verification_stale"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_NEWER = "store_newer"
    STORE_CORRUPT = "store_corrupt"
    KEEPER_UNREACHABLE = "keeper_unreachable"
    UNSUPPORTED_HERE = "unsupported_here"


class ProctorError(Exception):
    """The root: ``code`` is stable, ``message`` names the thing, ``hint`` says what to do next."""

    def __init__(self, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """One line for people: message, then hint, then the code."""
        advice = f" {self.hint}" if self.hint else ""
        return f"{self.message}{advice} [{self.code}]"


class RequestError(ProctorError):
    """The request cannot be carried out as it was written; nothing was started."""


class ExecutionError(ProctorError):
    """The execution asked about is unknown, or its state does not allow the request."""


class OutputError(ProctorError):
    """Kept output is missing or cannot be read."""


class StoreError(ProctorError):
    """The home folder or its index cannot be used."""


class KeeperError(ProctorError):
    """A keeper or its zygote does not answer."""


class TransitionError(ProctorError):
    """An event that the status table does not allow."""
