"""``proctor send``: text, or the end, to the standard input of a command that was started to receive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError, RequestError
from .driving import drive
from .exits import SUCCESS

if TYPE_CHECKING:
    from argparse import Namespace

    from ..runtime import LocalRuntime, Steps

__all__ = ["execute"]


def execute(arguments: Namespace, runtime: LocalRuntime) -> int:
    """Send it."""
    if arguments.text is None and not arguments.eof:
        raise RequestError(ErrorCode.INVALID_REQUEST, "There is nothing to send.", "Give a text, or --eof.")
    data = _bytes_of(arguments)
    taken = drive(_sent(runtime, runtime.resolve(arguments.id), data, eof=arguments.eof))
    if taken < len(data):
        message = f"Of {len(data)} bytes, {taken} were taken; the command does not read fast enough, and 1 MiB waits for it."
        raise ExecutionError(ErrorCode.STDIN_FULL, message, "Send the rest once it has read some of it.")
    return SUCCESS


def _bytes_of(arguments: Namespace) -> bytes:
    if arguments.text is None:
        return b""
    data: bytes = arguments.text.encode("utf-8", "surrogateescape")
    return data if arguments.no_newline or data.endswith(b"\n") else data + b"\n"


def _sent(runtime: LocalRuntime, execution_id: str, data: bytes, *, eof: bool) -> Steps[int]:
    live = yield from runtime.attach(execution_id)
    try:
        return (yield from live.write(data, eof=eof))
    finally:
        live.close()
