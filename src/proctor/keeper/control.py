"""The keeper's ears: the starting connection, the control socket, and whoever is connected to it.

Requests are answered by a ``Handler``; a peer must be this user or root (SO_PEERCRED) and know the folder's token. A peer that does not
read is dropped once 1 MiB waits for it, so that nobody can fill the keeper's memory.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ProctorError
from ..execution.layout import CONTROL, TOKEN
from .protocol import SPOKEN, LineBuffer, ProtocolError, line_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Control", "Handler", "Peer"]

UNREAD_LIMIT_BYTES = 1 << 20
BACKLOG = 256
TOKEN_BYTES = 16
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid


class Handler(Protocol):
    """What carries out a request; returns the fields of the answer or raises a ``ProctorError``."""

    def __call__(self, op: str, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Carry out one request."""


class Peer:
    """One connection: what it has not finished saying, and what it has not read yet."""

    def __init__(self, connection: socket.socket, *, trusted: bool) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.trusted = trusted
        self.wants_events = trusted
        self.wants_output = False
        self.passed_bytes: int | None = None  # how far a reader that wants to be waited for has come
        self.gone = False
        self.on_gone: Callable[[], None] | None = None
        self._lines = LineBuffer()
        self._unsent = bytearray()

    @property
    def waiting(self) -> bool:
        """Whether something could not be sent yet."""
        return bool(self._unsent)

    def queue(self, line: bytes) -> None:
        """Have a line sent with the next push; a peer that reads nothing is given up."""
        self._unsent += line
        if len(self._unsent) > UNREAD_LIMIT_BYTES:
            self.gone = True

    def push(self) -> None:
        """Send what waits, as far as the peer takes it."""
        try:
            while self._unsent:
                del self._unsent[: self.connection.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self.gone = True

    def receive(self) -> list[dict[str, Any]]:
        """Return the requests that arrived; a peer that hung up or talks nonsense is gone."""
        try:
            data = self.connection.recv(65_536)
            if not data:
                self.gone = True
            return self._lines.feed(data)
        except BlockingIOError:
            return []
        except (OSError, ProtocolError):
            self.gone = True
            return []


class Control:
    """All connections of one keeper."""

    def __init__(self, selector: selectors.BaseSelector, handler: Handler) -> None:
        self._selector = selector
        self._handler = handler
        self._token = ""
        self._listener: socket.socket | None = None
        self.peers: list[Peer] = []

    def listen(self, folder: int) -> None:
        """Write ``token`` and bind ``control`` in the run folder, through /proc so that the path's length does not matter."""
        self._token = os.urandom(TOKEN_BYTES).hex()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        before = os.umask(0o177)
        try:
            with open(os.open(TOKEN, _NEW_FILE, 0o600, dir_fd=folder), "w") as file:
                file.write(self._token)
            listener.bind(f"/proc/self/fd/{folder}/{CONTROL}")
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            return  # a full disk or a folder that is gone: the starting connection still serves
        finally:
            os.umask(before)
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def adopt(self, connection: socket.socket) -> Peer:
        """Take over the starting connection."""
        return self._add(Peer(connection, trusted=True))

    @property
    def listening(self) -> bool:
        """Whether others than the starter can connect."""
        return self._listener is not None

    def tell(self, line: bytes, wanted: Callable[[Peer], bool]) -> None:
        """Have a notice sent, with the next flush, to every peer that wants it: what happens together is read together."""
        for peer in self.peers:
            if wanted(peer):
                peer.queue(line)

    def flush(self) -> None:
        """Send what is queued."""
        for peer in tuple(self.peers):
            if peer.waiting:
                peer.push()
                self._settle(peer)

    def finish(self, limit_s: float) -> None:
        """Send what is queued, waiting for peers that read slowly, at most ``limit_s``."""
        until = time.monotonic() + limit_s
        while (waiting := [peer for peer in self.peers if peer.waiting]) and (left_s := until - time.monotonic()) > 0:
            select.select((), [peer.connection for peer in waiting], (), left_s)
            self.flush()

    def close(self) -> None:
        """Hang up on everybody."""
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        for peer in tuple(self.peers):
            self._drop(peer)

    def _accept(self, _mask: int) -> None:
        if self._listener is None:
            return
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if uid not in {os.getuid(), 0}:
            connection.close()
            return
        self._add(Peer(connection, trusted=False))

    def _add(self, peer: Peer) -> Peer:
        self.peers.append(peer)
        self._selector.register(peer.connection, selectors.EVENT_READ, lambda mask: self._serve(peer, mask))
        return peer

    def _serve(self, peer: Peer, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            peer.push()
        if mask & selectors.EVENT_READ:
            for request in peer.receive():
                peer.queue(line_of(self._answer(request, peer)))
            peer.push()
        self._settle(peer)

    def _answer(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        number = request.get("n")
        if request.get("v") not in SPOKEN:
            return _refusal(number, "keeper_unreachable", f"This keeper does not speak protocol {request.get('v')}.")
        if not peer.trusted and request.get("token") != self._token:
            return _refusal(number, "keeper_unreachable", "The token of the run folder is missing or wrong.")
        try:
            return {"n": number, "ok": self._handler(str(request.get("op")), request, peer)}
        except ProctorError as error:
            return _refusal(number, error.code.value, error.message, error.hint)
        except (KeyError, TypeError, ValueError) as error:
            return _refusal(number, "invalid_request", f"The request is not understood: {error}.")

    def _settle(self, peer: Peer) -> None:
        if peer.gone:
            self._drop(peer)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.waiting else 0)
        key = self._selector.get_key(peer.connection)
        if key.events != events:
            self._selector.modify(peer.connection, events, key.data)

    def _drop(self, peer: Peer) -> None:
        peer.gone = True
        if peer in self.peers:
            self.peers.remove(peer)
            self._selector.unregister(peer.connection)
            peer.connection.close()
            if peer.on_gone is not None:
                peer.on_gone()


def _refusal(number: object, code: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"n": number, "error": {"code": code, "message": message, "hint": hint}}
