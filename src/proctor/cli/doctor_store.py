"""``proctor doctor``: the home folder, its index, and the room on its disk."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING

from .. import dialects
from ..env import HOME
from ..errors import ProctorError
from ..store import Index, home_path, open_home
from .findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["findings"]

_LEAST_FREE_BYTES = 100_000_000  # one execution keeps at most 64 MiB
_GIGABYTE = 1_000_000_000


def findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what was found about the home."""
    origin = f"from {HOME}" if environ.get(HOME) else "the default"
    try:
        path = home_path(environ, dialects.platform_name(), os.path.expanduser("~"))
        home = open_home(path, allow_network=environ.get("PROCTOR_ALLOW_NETWORK_HOME") == "1")
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"x")
    except (ProctorError, OSError) as error:
        yield Finding("home", ok=False, measured=str(error))
        return
    yield Finding("home", ok=True, measured=f"{home} ({origin}), a file was written there")
    yield from _index(home)
    free = os.statvfs(home).f_bavail * os.statvfs(home).f_frsize
    yield Finding("disk", ok=free > _LEAST_FREE_BYTES, measured=f"{free / _GIGABYTE:.1f} GB free for new output")


def _index(home: str) -> Iterator[Finding]:
    began = time.perf_counter()
    try:
        index = Index.open(home)
        unfinished = len(index.unfinished())
        notices = index.notices
        index.close()
    except ProctorError as error:
        yield Finding("index", ok=False, measured=f"{error.message} {error.hint}")
        return
    took_ms = (time.perf_counter() - began) * 1000
    yield Finding("index", ok=True, measured=f"opened and read in {took_ms:.1f} ms, {unfinished} without an ending")
    for notice in notices:
        yield Finding("index", ok=None, measured=notice)
