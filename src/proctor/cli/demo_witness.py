"""An independent look for ``proctor demo``: at ports and at /proc, with no code of proctor's that could share a mistake with it."""

from __future__ import annotations

import http.client
import os
import socket

__all__ = ["carriers", "fetch", "free_port", "port_is_free", "process_exists", "start_of"]

_MARK = "PROCTOR_EXECUTION_ID"
_FETCH_LIMIT_S = 5.0


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Tell whether somebody could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are only fading away do not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def fetch(port: int, path: str) -> str:
    """Return a page of the server on this machine; raises ``OSError`` when none answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_FETCH_LIMIT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def carriers(execution_id: str) -> list[int]:
    """Return the pid of every living process that was started with this execution's id in its environment."""
    wanted = f"{_MARK}={execution_id}".encode()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and wanted in _read(f"/proc/{name}/environ").split(b"\0")]


def start_of(pid: int) -> str | None:
    """Return the kernel's start time of a process that is alive, or ``None``: a zombie does nothing any more."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return fields[19].decode() if fields and fields[0] not in {b"Z", b"X"} else None


def process_exists(pid: int, start: str | None) -> bool:
    """Tell whether this very process is still there, and not just its number."""
    return start is not None and start_of(pid) == start


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
