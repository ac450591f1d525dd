"""What each error code means to a person; docs/errors.md is made from it, and a code without a line here fails `make check`."""

from __future__ import annotations

from proctor.errors import ErrorCode

ERROR_MEANINGS: dict[ErrorCode, str] = {
    ErrorCode.INVALID_REQUEST: "the request makes no sense as it was written; nothing was started",
    ErrorCode.PROGRAM_NOT_FOUND: "there is no such program, or no interpreter that its first line names",
    ErrorCode.PROGRAM_NOT_EXECUTABLE: "the file is there and may not, or cannot, be executed",
    ErrorCode.CWD_NOT_FOUND: "the working folder does not exist",
    ErrorCode.CWD_NOT_A_DIRECTORY: "the working folder is something else",
    ErrorCode.CWD_NOT_ACCESSIBLE: "the working folder may not be entered",
    ErrorCode.CWD_OUTSIDE_WORKSPACE: "the working folder lies outside the workspace",
    ErrorCode.ARGUMENT_TOO_LONG: "an argument or variable is over the system's limit; the message names it and the limit",
    ErrorCode.SPAWN_FAILED: "the system refused another process, or the host ended before a keeper took the request; nothing ran",
    ErrorCode.SANDBOX_UNAVAILABLE: "the sandbox could not start; the command did not run",
    ErrorCode.SANDBOX_DENIED: "the command ran, and an action was refused",
    ErrorCode.POLICY_DENIED: "a rule forbids the command; nothing was started",
    ErrorCode.APPROVAL_REFUSED: "a person was asked, or could not be asked, and nothing was started",
    ErrorCode.QUOTA_EXCEEDED: "the session has as many unfinished executions as it may have; the message lists them",
    ErrorCode.UNKNOWN_EXECUTION: "no execution of this home has that id",
    ErrorCode.UNKNOWN_SESSION: "no execution of this home belongs to that session",
    ErrorCode.NOT_RUNNING: "the execution has ended, or its root has",
    ErrorCode.WAIT_TIMEOUT: "the wait was over before what was waited for; nothing was stopped",
    ErrorCode.STDIN_CLOSED: "standard input of the command is closed, or never was a pipe of proctor's",
    ErrorCode.STDIN_FULL: "the command has not read what it was sent before",
    ErrorCode.OUTPUT_MISSING: "the output was removed",
    ErrorCode.OUTPUT_UNREADABLE: "the output may not be read",
    ErrorCode.PATH_OUTSIDE_ROOT: "a path leads out of the root",
    ErrorCode.PATH_PROTECTED: "a path is protected",
    ErrorCode.PATCH_CONFLICT: "the patch does not fit the files as they are",
    ErrorCode.PATCH_MALFORMED: "the patch cannot be read",
    ErrorCode.STALE_BASE: "a file changed in the meantime",
    ErrorCode.VERIFICATION_FAILED: "a required check failed",
    ErrorCode.VERIFICATION_STALE: "the files changed after the checks",
    ErrorCode.STORE_UNAVAILABLE: "the home folder cannot be used; the message says why",
    ErrorCode.STORE_NEWER: "the index was made by a newer proctor and is only read here",
    ErrorCode.STORE_CORRUPT: "a record or the index is damaged; what could be saved was set aside and named",
    ErrorCode.KEEPER_UNREACHABLE: "a keeper does not answer; what it last said is shown as stale",
    ErrorCode.UNSUPPORTED_HERE: "not in this version, or not on this platform; nothing was started",
}
