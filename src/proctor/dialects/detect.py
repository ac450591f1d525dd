"""Which shells there are and which one a request gets: by name, or the platform's default; never switched silently.

``find`` is pure: what exists is asked through ``exists``. Default on Linux and macOS: bash, else sh; on Windows: cmd.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["NAMES", "default_dialect", "find", "platform", "platform_name"]

NAMES = ("bash", "sh", "zsh", "cmd", "pwsh", "powershell", "none")
_POSIX = frozenset({"bash", "sh", "zsh"})


def platform() -> str:
    """Return ``linux``, ``macos`` or ``windows``."""
    return {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")


def platform_name() -> str:
    """Return the platform as Python spells it (``sys.platform``)."""
    return sys.platform


def default_dialect(environment: Mapping[str, str], on: str, exists: Callable[[str], bool]) -> str:
    """Return the platform's default dialect."""
    if on == "windows":
        return "cmd"
    return "bash" if find_posix("bash", environment, exists) else "sh"


def find(name: str, environment: Mapping[str, str], on: str, exists: Callable[[str], bool]) -> str:
    """Return the program for a dialect; raises ``invalid_request`` for a name that is none, ``program_not_found`` for a shell not there."""
    if name not in NAMES:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"There is no dialect {name!r}.", f"Use one of {', '.join(NAMES)}.")
    if name not in _POSIX or on == "windows":
        hint = f"Use one of {', '.join(sorted(_POSIX))} or none."
        raise RequestError(ErrorCode.UNSUPPORTED_HERE, f"The dialect {name} is not supported on {on} in this version.", hint)
    program = find_posix(name, environment, exists)
    if program is None:
        hint = "Install it, or choose another with --shell."
        raise RequestError(ErrorCode.PROGRAM_NOT_FOUND, f"The shell {name} was not found in /bin, /usr/bin or PATH.", hint)
    return program


def find_posix(name: str, environment: Mapping[str, str], exists: Callable[[str], bool]) -> str | None:
    """Return the first place that has the shell: /bin, /usr/bin, then PATH."""
    folders = ["/bin", "/usr/bin", *environment.get("PATH", "").split(":")]
    return next((f"{folder}/{name}" for folder in folders if folder.startswith("/") and exists(f"{folder}/{name}")), None)
