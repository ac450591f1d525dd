"""A gate that holds proctor's processes at their named points, so that a kill lands exactly there."""

from __future__ import annotations

import os
import queue
import shutil
import socket
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ARRIVAL_LIMIT_S = 15.0


@dataclass(frozen=True, slots=True)
class Held:
    """A process that waits at a point until it is let on; its connection is what it waits on."""

    role: str
    pid: int
    connection: socket.socket

    def let_on(self) -> None:
        """Let it go on; one that was killed meanwhile is past caring."""
        try:
            self.connection.sendall(b"\n")
        except OSError:
            pass
        finally:
            self.connection.close()


class Gate:
    """Listens where ``PROCTOR_CHECKPOINTS`` points at: holds the first who arrives at the point that is armed, waves all others on."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen(64)
        self._point = ""
        self._held: queue.Queue[Held] = queue.Queue()
        self.pids: dict[str, int] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def arm(self, point: str) -> None:
        """Hold whoever arrives at ``point`` first, from now on."""
        self._point = point

    def caught(self) -> Held:
        """Return who is held, waiting for the arrival."""
        try:
            return self._held.get(timeout=ARRIVAL_LIMIT_S)
        except queue.Empty:
            pytest.fail(f"nobody came to the point {self._point!r} within {ARRIVAL_LIMIT_S:g} s; seen: {self.pids}")

    def close(self) -> None:
        """Stop listening, and let everybody on."""
        self._point = ""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        while not self._held.empty():
            self._held.get().let_on()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._welcome(connection)

    def _welcome(self, connection: socket.socket) -> None:
        with connection.makefile() as lines:
            words = lines.readline().split()
        if not words:  # killed between its connecting and its speaking
            connection.close()
            return
        role, point, pid = words
        self.pids[role] = int(pid)
        held = Held(role, int(pid), connection)
        if point == self._point:
            self._point = ""
            self._held.put(held)
        else:
            held.let_on()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Open a gate; every proctor that is started in this test comes to it."""
    folder = tempfile.mkdtemp(prefix="proctor-gate-")  # an address has room for 107 bytes; pytest's folders are deeper
    address = os.path.join(folder, "gate")
    opened = Gate(address)
    monkeypatch.setenv("PROCTOR_CHECKPOINTS", address)
    yield opened
    opened.close()
    shutil.rmtree(folder)
