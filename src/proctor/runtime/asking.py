"""From the friendly arguments of the library to a ``Request``: one place, so that both faces take the same words and mean the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from ..errors import ErrorCode, RequestError
from ..execution import Lifetime, OnLinger, Streams
from .base import Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

__all__ = ["Options", "request_of"]


class Options(TypedDict, total=False):
    """Keyword arguments of ``run`` and ``start``.

    ``timeout``, ``idle_timeout``, ``ttl`` and ``grace`` are seconds; ``output_limit`` is bytes, and reaching it stops the command.
    ``shell`` names a dialect; ``env`` adds variables, ``env_pass`` lets withheld ones through by name. ``stdin`` is ``"null"``, ``"pipe"``,
    bytes or a descriptor. ``streams`` is ``"split"`` or ``"merged"``; ``on_linger`` is ``"stop"`` or ``"keep"``; ``lifetime`` is
    ``"call"``, ``"host"``, ``"session"`` or ``"detached"``.
    """

    cwd: str | PathLike[str] | None
    workspace: str | PathLike[str] | None
    shell: str | None
    login: bool | None
    env: Mapping[str, str] | None
    env_pass: Sequence[str]
    stdin: str | bytes | int
    streams: str
    encoding: str | None
    session: str | None
    lifetime: str
    on_linger: str | None
    timeout: float | None
    idle_timeout: float | None
    output_limit: int | None
    ttl: float | None
    grace: float | None
    user: str | None
    reason: str | None


_RENAMED = {
    "shell": "dialect",
    "timeout": "timeout_s",
    "idle_timeout": "idle_timeout_s",
    "output_limit": "output_limit_bytes",
    "ttl": "ttl_s",
    "grace": "grace_s",
}
_PATHS = ("cwd", "workspace")
_CHOICES: dict[str, type[Streams | Lifetime | OnLinger]] = {"streams": Streams, "lifetime": Lifetime, "on_linger": OnLinger}


def request_of(command: str | Sequence[str], *, lifetime: Lifetime, options: Mapping[str, Any]) -> Request:
    """Return the request for a command text (run by a shell) or a list of words (run without one)."""
    fields: dict[str, Any] = {"lifetime": lifetime}
    for name, value in options.items():
        if name not in Options.__annotations__:
            known = ", ".join(sorted(Options.__annotations__))
            raise RequestError(ErrorCode.INVALID_REQUEST, f"There is no option {name!r}.", f"The options are {known}.")
        fields[_RENAMED.get(name, name)] = _converted(name, value)
    fields = {name: value for name, value in fields.items() if value is not None}
    if isinstance(command, str):
        return Request(command=command, **fields)
    return Request(argv=tuple(command), **fields)


def _converted(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _PATHS:
        import os

        return os.fspath(value)
    if name == "env_pass":
        return tuple(value)
    if name in _CHOICES:
        return _choice(name, value)
    return value


def _choice(name: str, value: str) -> Streams | Lifetime | OnLinger:
    kind = _CHOICES[name]
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{name} cannot be {value!r}.", f"Use one of {allowed}.") from None
