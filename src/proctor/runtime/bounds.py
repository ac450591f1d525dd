"""What a host passes on to its commands without saying so: working folder, umask, limits, and what bounds it from outside."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["bounded_by", "current_limits", "current_umask", "host_cwd"]

_LIMITS = tuple(sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}))


def host_cwd(environ: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the host's working folder; when it was deleted, the nearest folder above it that is left, with a notice."""
    try:
        return os.getcwd(), None
    except FileNotFoundError:
        lost = environ.get("PWD", "")
        folder = lost
        while folder and not os.path.isdir(folder):
            folder = os.path.dirname(folder) if folder != "/" else ""
        folder = folder or "/"
        return folder, f"cwd_lost: The working folder {lost or 'of this process'} is gone; the command runs in {folder}."


def current_umask() -> int:
    """Return the process's umask without changing it, which other threads would see (proc_pid_status(5))."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    return 0o022


def current_limits() -> tuple[tuple[int, int, int], ...]:
    """Return (which, soft, hard) for every resource limit of this process."""
    return tuple((which, *resource.getrlimit(which)) for which in _LIMITS)


def bounded_by(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name what could end this host's executions from outside: an outer execution, a service unit, a container."""
    found: list[str] = []
    if outer := environ.get("PROCTOR_EXECUTION_ID"):
        found.append(f"execution {outer}")
    if environ.get("INVOCATION_ID"):
        found.append("systemd unit")
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        found.append("container")
    return tuple(found)
