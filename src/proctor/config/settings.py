"""What can be set, and the built-in default of each face that proctor shows: library, command line, model tools. Pure data."""

from __future__ import annotations

from enum import Enum

from ..data import Data, changed
from ..execution import DEFAULT_GRACE_S, MAXIMUM_TIMEOUT_S, Lifetime, Limits, OnLinger, Streams

__all__ = ["Face", "Settings", "defaults"]

_BUILT_IN = Limits()
_DAY_S = 86_400.0


class Face(Enum):
    """Which of proctor's faces a request came through."""

    LIBRARY_RUN = "library run"
    LIBRARY_START = "library start"
    CLI_RUN = "run"
    CLI_BACKGROUND = "run --background"
    TOOL_FOREGROUND = "model tool, foreground"
    TOOL_BACKGROUND = "model tool, background"


class Settings(Data):
    """Effective settings; a limit of ``None`` is no limit.

    ``dialect`` ``None`` is the platform's own, ``login`` ``None`` follows the environment (DESIGN section 6). ``env_allow`` names variables
    that commands get although they look secret, ``env_withhold`` holds further name patterns (with ``*``) that they do not get.
    """

    dialect: str | None = None
    login: bool | None = None
    lifetime: Lifetime = Lifetime.CALL
    on_linger: OnLinger = OnLinger.STOP
    timeout_s: float | None = None
    maximum_timeout_s: float = MAXIMUM_TIMEOUT_S
    idle_timeout_s: float | None = None
    output_limit_bytes: int | None = None
    grace_s: float = DEFAULT_GRACE_S
    kept_head_bytes: int = _BUILT_IN.kept_head_bytes
    kept_tail_bytes: int = _BUILT_IN.kept_tail_bytes
    streams: Streams = Streams.SPLIT
    env_allow: tuple[str, ...] = ()
    env_withhold: tuple[str, ...] = ()
    gc_older_than_s: float = 14 * _DAY_S
    gc_max_bytes: int = 5_000_000_000
    session_quota: int = 8


_TOOL = Settings(on_linger=OnLinger.KEEP, output_limit_bytes=10_000_000, streams=Streams.MERGED)
_DEFAULTS: dict[Face, Settings] = {
    Face.LIBRARY_RUN: Settings(),
    Face.LIBRARY_START: Settings(lifetime=Lifetime.HOST),
    Face.CLI_RUN: Settings(),
    Face.CLI_BACKGROUND: Settings(lifetime=Lifetime.DETACHED),
    Face.TOOL_FOREGROUND: changed(_TOOL, timeout_s=600.0),
    Face.TOOL_BACKGROUND: changed(_TOOL, lifetime=Lifetime.HOST),
}


def defaults(face: Face, *, named_session: bool = False) -> Settings:
    """Return the built-in defaults of a face (DESIGN section 2a); a model's background task in a named session belongs to the session."""
    if face is Face.TOOL_BACKGROUND and named_session:
        return changed(_DEFAULTS[face], lifetime=Lifetime.SESSION)
    return _DEFAULTS[face]
