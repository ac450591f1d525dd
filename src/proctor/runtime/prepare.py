"""From a request to a spec and a launch: the decisions of a start, without starting anything.

What must be known of the world comes in as ``Surroundings``-like facts, so that the same request gives the same plan.
"""

from __future__ import annotations

import math
import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .. import dialects
from ..data import Data
from ..errors import ErrorCode, RequestError
from ..execution import MAXIMUM_TIMEOUT_S, Launch, Lifetime, LifetimePair, Limits, Machine, OnLinger, Spec, changed, clamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Request
    from .environment import Built, Environment

__all__ = ["Plan", "World", "plan"]

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class World(Data):
    """What a plan depends on besides the request."""

    machine: Machine
    environment: Environment
    host_environ: dict[str, str]
    platform: str
    exists: Callable[[str], bool]
    cwd: str
    cwd_notice: str | None
    find_workspace: Callable[[str, str | None], tuple[str | None, tuple[str, ...]]]
    bounded_by: tuple[str, ...]
    umask: int
    nice: int
    rlimits: tuple[tuple[int, int, int], ...]
    defaults: Limits
    on_linger: OnLinger
    dialect: str | None = None
    login: bool = True
    maximum_timeout_s: float = MAXIMUM_TIMEOUT_S


class Plan(Data):
    """A start that is decided: what the record says of it, what the keeper does, and the script where the text is long."""

    spec: Spec
    launch: Launch
    script: bytes | None


def plan(request: Request, world: World, *, execution_id: str, created_at: datetime) -> Plan:
    """Decide a start; raises ``RequestError`` for a request that makes no sense, before anything exists."""
    check(request)
    cwd = os.path.normpath(os.path.join(world.cwd, request.cwd)) if request.cwd is not None else world.cwd
    notices = (world.cwd_notice,) if request.cwd is None and world.cwd_notice else ()
    workspace, workspace_notices = world.find_workspace(cwd, request.workspace)
    built = world.environment.build(request, execution_id=execution_id, workspace=workspace)
    dialect, login, argv, script = _call(request, world, built)
    spec = Spec(
        id=execution_id,
        machine=world.machine,
        lifetime=LifetimePair(requested=request.lifetime, effective=request.lifetime),
        cwd=cwd,
        created_at=created_at,
        command=request.command,
        argv=request.argv,
        dialect=dialect,
        login=login,
        workspace=workspace,
        user=request.user,
        env_names=tuple(sorted(built.values)),
        env_withheld=built.withheld,
        stdin=request.stdin_name or (request.stdin if isinstance(request.stdin, str) else "given"),
        tty=request.tty,
        streams=request.streams,
        session=request.session,
        parent=world.host_environ.get("PROCTOR_EXECUTION_ID") or None,
        bounded_by=world.bounded_by,
        on_linger=request.on_linger or world.on_linger,
        limits=limits_of(request, world.defaults, world.maximum_timeout_s),
        reason=request.reason,
        notices=(*request.notices, *notices, *workspace_notices),
    )
    launch = Launch(
        argv=argv, env=_values_for(request, built), cwd=cwd, umask=world.umask, nice=world.nice, rlimits=world.rlimits, user=request.user
    )
    return Plan(spec=spec, launch=launch, script=script)


def check(request: Request) -> None:
    """Raise ``invalid_request`` for what no start could make sense of; the message names the part and what to do."""
    _check_command(request)
    _check_numbers(request)
    if request.session is not None and not _SESSION.fullmatch(request.session):
        raise _invalid(f"{request.session!r} cannot be a session's name.", "Use up to 100 letters, digits, dots, dashes and underscores.")
    if request.lifetime is Lifetime.SESSION and request.session is None:
        raise _invalid("The lifetime 'session' needs a session's name.", "Give one with --session, or use the lifetime 'detached'.")
    if request.tty:
        raise RequestError(
            ErrorCode.UNSUPPORTED_HERE, "Terminal commands are not in this version; nothing was started.", "Leave out --tty."
        )


def _check_command(request: Request) -> None:
    if (request.command is None) == (request.argv is None):
        raise _invalid("Give either a command text or an argv.", "A text runs in a shell, a list runs without one.")
    if request.argv is not None and (not request.argv or not request.argv[0]):
        raise _invalid("The argv is empty.", "Give the program as its first word.")
    if request.command is not None and not request.command.strip():
        raise _invalid("The command is empty.", "Give the text to run.")
    for word in request.argv or (request.command or "",):
        if "\0" in word:
            raise _invalid(
                "The command holds a NUL character, which no program can receive.", "Pass such data through a file or standard input."
            )


def _check_numbers(request: Request) -> None:
    for name in ("timeout_s", "idle_timeout_s", "ttl_s", "grace_s", "output_limit_bytes"):
        value = getattr(request, name)
        if value is not None and not (math.isfinite(value) and (value > 0 or (name == "grace_s" and value == 0))):
            raise _invalid(f"{name} must be a positive number, not {value!r}.", "Leave it out for no limit.")


def limits_of(request: Request, defaults: Limits, maximum_timeout_s: float = MAXIMUM_TIMEOUT_S) -> Limits:
    """Return the limits in force: what was asked, else the defaults, clamped in the open."""
    asked = {
        "timeout_s": request.timeout_s,
        "idle_timeout_s": request.idle_timeout_s,
        "output_bytes": request.output_limit_bytes,
        "ttl_s": request.ttl_s,
        "grace_s": request.grace_s,
    }
    limits = changed(defaults, **{name: value for name, value in asked.items() if value is not None})
    return clamp(limits, maximum_timeout_s=maximum_timeout_s)


def _call(request: Request, world: World, built: Built) -> tuple[str, bool, tuple[str, ...], bytes | None]:
    if request.argv is not None:
        return "none", False, request.argv, None
    text = request.command or ""
    dialect = request.dialect or world.dialect or dialects.default_dialect(built.values, world.platform, world.exists)
    if dialect == "none":
        return "none", False, (text,), None
    program = dialects.find(dialect, built.values, world.platform, world.exists)
    # A profile would put the system's tools before the ones that the caller chose by PATH or by a virtual environment.
    chosen = "VIRTUAL_ENV" in built.values or "PATH" in request.env or "PATH" in request.env_pass
    login = (world.login and not chosen) if request.login is None else request.login
    call = dialects.shell_call(program, text, login=login)
    return dialect, login, call.argv, call.script


def _values_for(request: Request, built: Built) -> dict[str, str]:
    if request.user is None:
        return built.values
    import pwd

    try:
        entry = pwd.getpwnam(request.user)
    except KeyError as error:
        raise _invalid(f"There is no user {request.user!r} here.", "Name an existing user, or leave out --user.") from error
    return {**built.values, "HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}


def _invalid(message: str, hint: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message, hint)


def now() -> datetime:
    """Return the wall-clock time of a record."""
    return datetime.now(UTC)
