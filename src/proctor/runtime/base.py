"""What can be asked of a runtime, and what it promises: one request type, one protocol, whatever runs behind it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from ..data import Data
from ..execution import Lifetime, OnLinger, Streams

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Request"]


class Request(Data):
    """One command as it is asked for. ``command`` is a text for a shell; ``argv`` runs a program without one; exactly one is given.

    ``stdin`` is ``"null"``, ``"pipe"``, bytes to be read, or a descriptor of the caller's. ``None`` means: the runtime's default.
    """

    command: str | None = None
    argv: tuple[str, ...] | None = None
    cwd: str | None = None
    workspace: str | None = None
    dialect: str | None = None
    login: bool | None = None
    env: Mapping[str, str] = MappingProxyType({})
    env_pass: tuple[str, ...] = ()
    stdin: str | bytes | int = "null"
    stdin_name: str | None = None
    tty: bool = False
    streams: Streams = Streams.SPLIT
    encoding: str | None = None
    session: str | None = None
    lifetime: Lifetime = Lifetime.CALL
    on_linger: OnLinger | None = None
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    output_limit_bytes: int | None = None
    ttl_s: float | None = None
    grace_s: float | None = None
    user: str | None = None
    reason: str | None = None
    live_output: bool = False
    notices: tuple[str, ...] = ()
