"""From the flags of ``proctor run`` to a request, and the refusals of what this version does not do: all before anything is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import ErrorCode, RequestError
from ..execution import Lifetime
from ..output import wording
from ..runtime import Request

if TYPE_CHECKING:
    from argparse import Namespace

    from ..config import Resolved

__all__ = ["NO_SANDBOX_HERE", "request_of"]

NO_SANDBOX_HERE = "this version of proctor has no sandbox"
_FULL_ACCESS = "danger-full-access"
_BINARY = getattr(os, "O_BINARY", 0)


def request_of(arguments: Namespace, resolved: Resolved, *, live_output: bool) -> Request:
    """Return the request; raises ``RequestError`` for what makes no sense or is not in this version. Opens the file of ``--stdin``."""
    _refuse_later_parts(arguments)
    command, argv = _command_of(arguments)
    values, passed = _environment_of(arguments)
    settings = resolved.settings
    if arguments.background and settings.lifetime in {Lifetime.CALL, Lifetime.HOST}:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"--background returns at once, and the lifetime {settings.lifetime} would end the command with that.",
            "Leave out --lifetime, or use session or detached.",
        )
    stdin, name = _stdin_of(arguments)
    return Request(
        command=command,
        argv=argv,
        cwd=arguments.cwd,
        workspace=arguments.workspace,
        dialect=None if argv is not None else settings.dialect,
        login=settings.login,
        env=values,
        env_pass=passed,
        stdin=stdin,
        stdin_name=name,
        streams=settings.streams,
        session=arguments.session,
        lifetime=settings.lifetime,
        on_linger=settings.on_linger,
        timeout_s=settings.timeout_s,
        idle_timeout_s=settings.idle_timeout_s,
        output_limit_bytes=settings.output_limit_bytes,
        ttl_s=arguments.ttl,
        grace_s=settings.grace_s,
        user=arguments.user,
        reason=arguments.reason,
        live_output=live_output,
        notices=(*_notices_of(arguments), *resolved.notices),
    )


def _refuse_later_parts(arguments: Namespace) -> None:
    for flag, given in (("--tty", arguments.tty), ("--policy", arguments.policy), ("--explain", arguments.explain)):
        if given:
            raise _unsupported(f"{flag} is not in this version of proctor; nothing was started.", f"Leave out {flag}.")
    if arguments.network != "on":
        message = f"--network {arguments.network} needs a sandbox, and {NO_SANDBOX_HERE}; nothing was started."
        raise _unsupported(message, "Leave out --network, if the command may use the network.")
    if arguments.sandbox != _FULL_ACCESS and not arguments.allow_unsandboxed:
        raise RequestError(
            ErrorCode.SANDBOX_UNAVAILABLE,
            wording.sandbox_unavailable(NO_SANDBOX_HERE) + ".",
            "With --allow-unsandboxed it runs without one, and its record says so.",
        )
    for folder in arguments.add_dir or ():
        if not os.path.isdir(folder):
            raise RequestError(ErrorCode.INVALID_REQUEST, f"--add-dir {folder!r} is not an existing folder.", "Name an existing one.")


def _notices_of(arguments: Namespace) -> tuple[str, ...]:
    if arguments.sandbox == _FULL_ACCESS:
        return ()
    return (wording.no_isolation(NO_SANDBOX_HERE),)


def _command_of(arguments: Namespace) -> tuple[str | None, tuple[str, ...] | None]:
    words: list[str] = arguments.command
    if not words:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "There is no command to run.", "It is written behind --, as in `proctor run -- make test`."
        )
    if len(words) == 1 and arguments.shell != "none":
        return words[0], None
    if len(words) > 1 and arguments.shell not in {None, "none"}:
        message = f"Several words are run without a shell, so --shell {arguments.shell} has nothing to do."
        raise RequestError(ErrorCode.INVALID_REQUEST, message, "Quote the command as one word, or leave out --shell.")
    return None, tuple(words)


def _environment_of(arguments: Namespace) -> tuple[dict[str, str], tuple[str, ...]]:
    values: dict[str, str] = {}
    passed: list[str] = []
    entries = [*_entries_of_file(arguments.env_file), *(arguments.env or ())]
    for entry in entries:
        name, assigned, value = entry.partition("=")
        if assigned:
            values[name] = value
        elif name in os.environ:
            values.pop(name, None)
            passed.append(name)
        else:
            message = f"The environment variable {name!r} is not set here, so it cannot be passed on."
            raise RequestError(ErrorCode.INVALID_REQUEST, message, f"Write --env {name}=VALUE, or set it first.")
    return values, tuple(passed)


def _entries_of_file(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.strip("\r\n") for line in file]
    except OSError as error:
        raise _unreadable("--env-file", path, error) from error
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _stdin_of(arguments: Namespace) -> tuple[str | int, str | None]:
    if arguments.stdin_open:
        if arguments.stdin is not None:
            raise RequestError(ErrorCode.INVALID_REQUEST, "--stdin and --stdin-open exclude each other.", "Leave out one of them.")
        return "pipe", None
    if arguments.stdin is None:
        return "null", None
    if arguments.stdin == "-":
        return 0, "inherited"
    try:
        return os.open(arguments.stdin, os.O_RDONLY | os.O_CLOEXEC | _BINARY), os.path.abspath(arguments.stdin)
    except OSError as error:
        raise _unreadable("--stdin", arguments.stdin, error) from error


def _unreadable(flag: str, path: str, error: OSError) -> RequestError:
    message = f"The file of {flag}, {path!r}, cannot be read: {error.strerror}."
    return RequestError(ErrorCode.INVALID_REQUEST, message, "Name a file that exists and may be read.")


def _unsupported(message: str, hint: str) -> RequestError:
    return RequestError(ErrorCode.UNSUPPORTED_HERE, message, hint)
