"""One connection to a keeper: requests and their answers, notices in between, and the end of it, which says that the keeper is gone."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

from ..errors import ErrorCode, ExecutionError, KeeperError, OutputError, ProctorError, RequestError
from ..execution.layout import CONTROL
from ..keeper import LineBuffer, ProtocolError, line_of
from .steps import Wait, Waker

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store import RunFolder
    from .steps import Steps

__all__ = ["ANSWER_LIMIT_S", "Link", "connect"]

ANSWER_LIMIT_S = 2.0  # DESIGN section 2: a keeper that is silent for this long is stale
CONNECT_RETRY_S = 0.01
_RECEIVE_BYTES = 262_144
_KINDS: dict[str, type[ProctorError]] = {
    "not_running": ExecutionError,
    "stdin_closed": ExecutionError,
    "stdin_full": ExecutionError,
    "invalid_request": RequestError,
    "output_missing": OutputError,
}


class Link:
    """A connection, and whoever is to hear its notices."""

    def __init__(self, connection: socket.socket, hear: Callable[[dict[str, Any]], None], *, token: str | None = None) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._hear = hear
        self._token = token
        self._lines = LineBuffer()
        self._numbers = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._wakers: list[Waker] = []
        self.closed = False

    def close(self) -> None:
        """Hang up."""
        if not self.closed:
            self.closed = True
            self._connection.close()

    def listen(self, until: float | None = None) -> Steps[bool]:
        """Wait for something to be said and hear it; return False when the keeper hung up (or had before)."""
        if self.closed:
            return False
        if not self._receive() and not self.closed:
            waker = Waker()
            self._wakers.append(waker)
            try:
                yield Wait(reading=self._connection.fileno(), until=until, waker=waker)
            finally:
                self._wakers.remove(waker)
            if not self.closed:
                self._receive()
        return not self.closed

    def ask(self, op: str, *, limit_s: float = ANSWER_LIMIT_S, **fields: object) -> Steps[dict[str, Any]]:
        """Send a request and return its answer; raises what the keeper refused with, or ``keeper_unreachable``."""
        self._numbers += 1
        number = self._numbers
        until = time.monotonic() + limit_s
        yield from self._send(line_of({"n": number, "op": op, "token": self._token, **fields}), until)
        while number not in self._answers:
            if time.monotonic() >= until:
                raise _unreachable("did not answer")
            if not (yield from self.listen(until)):
                raise _unreachable("hung up")
        return _opened(self._answers.pop(number))

    def _send(self, line: bytes, until: float) -> Steps[None]:
        view = memoryview(line)
        while view:
            try:
                view = view[self._connection.send(view) :]
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise _unreachable("does not read") from None
                yield Wait(writing=self._connection.fileno(), until=until)
            except OSError as error:
                raise _unreachable("hung up") from error

    def _receive(self) -> bool:
        try:
            data = self._connection.recv(_RECEIVE_BYTES)
            messages = self._lines.feed(data)
        except BlockingIOError:
            return False
        except (OSError, ProtocolError):
            self.close()
            return True
        for waker in self._wakers:  # what was read here may be what another task waits for
            if waker.wake is not None:
                waker.wake()
        if not data:
            self.close()
        for message in messages:
            if "n" in message:
                self._answers[message["n"]] = message
            else:
                self._hear(message)
        return True


def connect(folder: RunFolder, hear: Callable[[dict[str, Any]], None], *, limit_s: float = ANSWER_LIMIT_S) -> Steps[Link]:
    """Connect to the control socket in an open run folder; raises ``keeper_unreachable``, at once when no keeper lives.

    A keeper makes the socket once its command has lived for some milliseconds, so its absence is waited out.
    """
    until = time.monotonic() + limit_s
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    while True:
        try:
            connection.connect(f"/proc/self/fd/{folder.descriptor}/{CONTROL}")
        except (BlockingIOError, FileNotFoundError, ConnectionRefusedError) as error:
            # Its backlog is full, the socket is not there yet, or not there any more: a dead keeper's lock is free a moment later.
            if time.monotonic() >= until or not folder.keeper_alive():
                connection.close()
                raise _unreachable("does not accept connections") from error
            yield Wait(until=time.monotonic() + CONNECT_RETRY_S)
        except OSError as error:
            connection.close()
            raise _unreachable(f"has no control socket ({os.strerror(error.errno or 0)})") from error
        else:
            return Link(connection, hear, token=folder.token())


def _opened(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        error = answer["error"]
        kind = _KINDS.get(error["code"], KeeperError)
        raise kind(ErrorCode(error["code"]), error["message"], error.get("hint", ""))
    opened: dict[str, Any] = answer["ok"]
    return opened


def _unreachable(what: str) -> KeeperError:
    hint = "Try again; `proctor show` tells what is known without it."
    return KeeperError(ErrorCode.KEEPER_UNREACHABLE, f"The keeper {what}.", hint)
