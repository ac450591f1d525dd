"""Named points in a start and a stop at which a test may hold the process, so that a kill lands exactly there.

Off unless ``PROCTOR_CHECKPOINTS`` names a listening unix socket: then each point tells its name and pid there and waits for one byte.
Off, a point costs one comparison. The waiting is bounded; a test that forgets to answer cannot hang a keeper for good.
"""

from __future__ import annotations

import os
import socket

__all__ = ["Checkpoints"]

WAIT_LIMIT_S = 30.0


class Checkpoints:
    """The points of one process; made once, from the environment it was started with."""

    def __init__(self, role: str, address: str | None) -> None:
        self._role = role
        self._address = address

    def reach(self, name: str) -> None:
        """Say that ``name`` is reached, and wait to be let on."""
        if self._address is None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(WAIT_LIMIT_S)
            try:
                peer.connect(self._address)
                peer.sendall(f"{self._role} {name} {os.getpid()}\n".encode())
                peer.recv(1)
            except OSError:
                return
