"""``proctor doctor``: what the kernel offers, tried out: lists of children, process descriptors, sealed memory."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

from .findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["findings"]

_PATIENCE_MS = 5000


def findings() -> Iterator[Finding]:
    """Yield what was tried, and whether it worked."""
    release = os.uname()
    yield Finding("system", ok=None, measured=f"{release.sysname} {release.release} {release.machine}, Python {sys.version.split()[0]}")
    yield from _child()
    yield _memory()


def _child() -> Iterator[Finding]:
    """Look at a real child in both ways, and watch it end."""
    with subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        yield _listed(child.pid)
        yield _watched(child)


def _listed(pid: int) -> Finding:
    path = f"/proc/self/task/{os.getpid()}/children"
    try:
        with open(path) as file:
            listed = str(pid) in file.read().split()
    except OSError as error:
        return Finding("/proc children", ok=False, measured=f"{path} cannot be read: {error.strerror}; trees cannot be followed")
    return Finding("/proc children", ok=listed, measured="a child was listed there" if listed else "a living child was not listed there")


def _watched(child: subprocess.Popen[bytes]) -> Finding:
    try:
        descriptor = os.pidfd_open(child.pid)
    except (OSError, AttributeError) as error:
        return Finding("pidfd", ok=False, measured=f"not available: {error}")
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    early = bool(poller.poll(0))
    if child.stdin is not None:
        child.stdin.close()
    seen = bool(poller.poll(_PATIENCE_MS))
    os.close(descriptor)
    return Finding("pidfd", ok=seen and not early, measured="a child's end was seen through one" if seen else "a child's end was not seen")


def _memory() -> Finding:
    try:
        descriptor = os.memfd_create("proctor-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(descriptor, b"x")
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    except (OSError, AttributeError) as error:
        return Finding("memfd", ok=False, measured=f"not available: {error}; long command texts cannot be handed over")
    try:
        os.write(descriptor, b"y")
    except PermissionError:
        return Finding("memfd", ok=True, measured="made, written and sealed; a later write was refused")
    finally:
        os.close(descriptor)
    return Finding("memfd", ok=False, measured="a sealed one could still be written")
