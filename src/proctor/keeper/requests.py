"""What a host may ask of a keeper, each as one small function: status, stop, signal, write, subscribe, passed, members, tail."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from ..errors import ErrorCode, ExecutionError, RequestError
from ..execution import STOP_CAUSES, EndedBy, encode, record_to_json

if TYPE_CHECKING:
    from .control import Peer
    from .supervise import Supervisor

__all__ = ["WRITE_LIMIT_BYTES", "Requests"]

WRITE_LIMIT_BYTES = 65_536
LAST_SIGNAL = 64


class Requests:
    """The handler of a keeper's control connections."""

    def __init__(self, keeper: Supervisor) -> None:
        self._keeper = keeper

    def __call__(self, op: str, request: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: PLR0911 - one case per request
        """Carry out one request; an unknown one is refused by name."""
        match op:
            case "status":
                return self._status()
            case "stop":
                return self._stop(request)
            case "signal":
                return self._signal(request)
            case "write":
                return self._write(request)
            case "subscribe":
                peer.wants_events = True
                peer.wants_output = bool(request.get("output"))
                return self._status()
            case "passed":
                peer.passed_bytes = int(request["offset"])
                return {}
            case "members":
                return {"members": encode(self._keeper.leftovers)}
            case "tail":
                offset, data = self._keeper.capture.spool.memory_tail()
                return {"offset": offset, "data": base64.b64encode(data).decode()}
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"This keeper does not know the request {op!r}.", "Ask with the version that started it."
        )

    def _status(self) -> dict[str, Any]:
        keeper = self._keeper
        return {
            "record": record_to_json(keeper.record),
            "output": encode(keeper.capture.counts()),
            "second_net": keeper.second_net,
            "leftovers": encode(keeper.leftovers) if keeper.record.exit_code is not None or keeper.record.signal else [],
        }

    def _stop(self, request: dict[str, Any]) -> dict[str, Any]:
        grace_s = request.get("grace_s")
        ended_by = EndedBy(request.get("ended_by", EndedBy.STOP.value))
        if ended_by not in STOP_CAUSES:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"Nobody can ask for {ended_by.value!r}.", f"One of {', '.join(sorted(STOP_CAUSES))}."
            )
        self._keeper.stop(
            ended_by,
            by=str(request.get("by", "caller")),
            reason=str(request.get("reason", "")),
            grace_s=None if grace_s is None else float(grace_s),
        )
        return {}

    def _signal(self, request: dict[str, Any]) -> dict[str, Any]:
        number = int(request["number"])
        if not 0 < number <= LAST_SIGNAL:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{number} is no signal.", "Give a number from 1 to 64.")
        if not self._keeper.deliver(number):
            raise ExecutionError(ErrorCode.NOT_RUNNING, "The root process has ended.", "Use stop to end what it left.")
        return {}

    def _write(self, request: dict[str, Any]) -> dict[str, Any]:
        data = base64.b64decode(request.get("data", ""), validate=True)
        if len(data) > WRITE_LIMIT_BYTES:
            raise RequestError(ErrorCode.INVALID_REQUEST, "More than 64 KiB in one write.", "Split it.")
        feed = self._keeper.feed
        if feed is None:
            raise ExecutionError(
                ErrorCode.STDIN_CLOSED,
                "The command's standard input is not a pipe of proctor's.",
                "Start it with stdin='pipe' (--stdin-open).",
            )
        taken = feed.accept(data, eof=bool(request.get("eof")))
        self._keeper.watch_feed()
        return {"taken": taken}
