"""What a command finds in its environment: the host's, less its secrets, plus what keeps programs from waiting for a person.

Values exist only in memory on their way to the keeper; the record names variables and never holds a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import env as registry
from ..data import Data
from ..errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .base import Request

__all__ = ["Built", "Environment"]


class Built(Data, kw_only=False):
    """An environment for one command, and the names of the host's variables that were kept from it."""

    values: dict[str, str]
    withheld: tuple[str, ...]


class Environment:
    """Builds environments; a host application adds variables of its own with ``provide``."""

    def __init__(self, host: Mapping[str, str], *, allowed: Collection[str] = (), withhold: Collection[str] = ()) -> None:
        self._host = host
        self._allowed = frozenset(allowed)
        self._withhold = frozenset(withhold)
        self._secrets = sorted(name for name in host if name not in self._allowed and self._is_withheld(name))
        self._provided: dict[str, Callable[[], str]] = {}

    def provide(self, name: str, value: Callable[[], str]) -> None:
        """Set ``name`` in every command, to what ``value`` returns at its start."""
        _check_name(name)
        self._provided[name] = value

    def build(self, request: Request, *, execution_id: str, workspace: str | None) -> Built:
        """Return the environment of one command: host, provided, quiet, asked for, and proctor's own, the later winning."""
        withheld = tuple(name for name in self._secrets if name not in request.env_pass)
        values = {name: value for name, value in self._host.items() if name not in withheld}
        values.update({name: value() for name, value in self._provided.items()})
        if not request.tty:
            values.update(registry.QUIET)
        for name, value in request.env.items():
            _check(name, value)
            values[name] = value
        values.update(self._own(request, execution_id, workspace))
        return Built(values, withheld)

    def _is_withheld(self, name: str) -> bool:
        return registry.is_secret_name(name) or (bool(self._withhold) and self._matches(name))

    def _matches(self, name: str) -> bool:
        from fnmatch import fnmatchcase

        return any(fnmatchcase(name, pattern) for pattern in self._withhold)

    @staticmethod
    def _own(request: Request, execution_id: str, workspace: str | None) -> dict[str, str]:
        return {
            "PROCTOR": "1",
            registry.EXECUTION_ID: execution_id,
            "PROCTOR_SESSION": request.session or "",
            "PROCTOR_WORKSPACE": workspace or "",
            "PROCTOR_SANDBOX": "danger-full-access",
            "PROCTOR_NETWORK": "on",
        }


def _check_name(name: str) -> None:
    if not name or "=" in name or "\0" in name:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{name!r} cannot be the name of an environment variable.", "Use NAME without = or NUL."
        )


def _check(name: str, value: str) -> None:
    _check_name(name)
    if "\0" in value:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"The value of environment variable {name} holds a NUL.", "Pass such data through a file."
        )
