"""The control protocol: JSON objects, one a line, versioned, in both directions.

A request is ``{"v", "n", "op", "token", …}``; its answer ``{"v", "n", "ok": …}`` or ``{"v", "n", "error": {code, message, hint}}``. Unasked
a keeper sends the journal's object (``{"v", "event": name, …}``) for each step of the execution's life, and ``{"v", "output": total}`` when
there is more to read.
The starting connection needs no token: who holds it started the execution.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["LINE_LIMIT", "PROTOCOL", "SPOKEN", "LineBuffer", "ProtocolError", "line_of"]

PROTOCOL = 1
SPOKEN = frozenset({1})  # a host speaks this version and the one before it
LINE_LIMIT = 1 << 20


class ProtocolError(ValueError):
    """A line that is too long or is no JSON object."""


def line_of(message: dict[str, Any]) -> bytes:
    """Return the line for a message."""
    return json.dumps({"v": PROTOCOL, **message}, separators=(",", ":")).encode() + b"\n"


class LineBuffer:
    """Bytes in, messages out; a line may arrive in any number of pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that are complete now; raises ``ProtocolError``."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            msg = "a line is longer than the protocol allows"
            raise ProtocolError(msg)
        return [_parsed(line) for line in lines if line]


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        msg = "a line is no JSON"
        raise ProtocolError(msg) from error
    if not isinstance(message, dict):
        msg = "a line is no JSON object"
        raise ProtocolError(msg)
    return message
