"""The library for asyncio programs: ``async with proctor.open() as p: result = await p.run("pytest -q", timeout=60)``.

A result is a ``Record``; a non-zero exit, a timeout or a kill is in it, never an exception. Cancelling a task that awaits ``run`` stops the
whole tree, proved, before the cancellation goes on; a task cancelled before its command started never starts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

from ..execution import Lifetime
from .asking import request_of
from .following import READ_LIMIT_BYTES, Following
from .steps import run_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from ..execution import Event, Record
    from ..output import Chunk
    from .asking import Options
    from .local import LocalRuntime

__all__ = ["Execution", "Proctor"]


class Proctor:
    """A host's way to run commands; an async context manager. Several may be open at once, on one home or on different ones."""

    def __init__(self, runtime: LocalRuntime) -> None:
        self.runtime = runtime

    async def __aenter__(self) -> Self:
        """Start the zygote, so that the first command does not wait for it."""
        self.runtime.warm()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let go; executions are not touched (their lifetime decides)."""
        self.close()

    def close(self) -> None:
        """Let go of zygote and store."""
        self.runtime.close()

    async def run(self, command: str | Sequence[str], **options: Unpack[Options]) -> Record:
        """Run a command to its result: a text in a shell, a list of words without one. Lifetime: ``call``.

        Raises ``RequestError`` for a request that makes no sense, ``StoreError`` when nothing can be recorded; nothing was started then.
        """
        return await run_async(self.runtime.run(request_of(command, lifetime=Lifetime.CALL, options=options)))

    async def start(self, command: str | Sequence[str], **options: Unpack[Options]) -> Execution:
        """Start a command and return once its root runs, or once it is known never to (``execution.record``). Lifetime: ``host``."""
        live = await run_async(self.runtime.start(request_of(command, lifetime=Lifetime.HOST, options=options)))
        return Execution(Following(self.runtime, live))

    async def attach(self, execution_id: str) -> Execution:
        """Follow an execution that anybody started on this home, by id, unique prefix, or ``-`` for the last."""
        live = await run_async(self.runtime.attach(self.runtime.resolve(execution_id)))
        return Execution(Following(self.runtime, live))

    async def stop(self, execution: Execution | str | None, *, grace: float | None = None, reason: str = "") -> Record | None:
        """Stop an execution, proved. ``None``, an ended and a never started one are fine: nothing is raised, what is known is returned."""
        if execution is None:
            return None
        if isinstance(execution, Execution):
            return await execution.stop(grace=grace, reason=reason)
        async with await self.attach(execution) as attached:
            return await attached.stop(grace=grace, reason=reason)

    async def show(self, execution_id: str) -> Record:
        """Return what is known now about one execution, with the view of its output."""
        record = await run_async(self.runtime.record(self.runtime.resolve(execution_id)))
        return self.runtime.view(record)

    async def unfinished(self) -> list[Record]:
        """Return every execution on this home that has no ending."""
        return await run_async(self.runtime.unfinished())


class Execution:
    """One execution that this host follows; an async context manager that only lets go of it at the end."""

    def __init__(self, following: Following) -> None:
        self._following = following

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let go of the connection and the folder."""
        self.close()

    def close(self) -> None:
        """Let go; the execution is not touched."""
        self._following.live.close()

    @property
    def id(self) -> str:
        """The execution's id."""
        return self._following.live.record.id

    @property
    def record(self) -> Record:
        """The record as this host knows it, without the view of the output."""
        return self._following.live.record

    async def wait(self, timeout: float | None = None) -> Record:  # noqa: ASYNC109 - it bounds the waiting, and cancels nothing
        """Wait for the result; raises ``ExecutionError`` (wait_timeout) after ``timeout`` seconds and stops nothing."""
        return await run_async(self._following.wait(timeout_s=timeout))

    async def wait_ended(self) -> Record:
        """Wait for the ending, kept leftovers included."""
        return await run_async(self._following.wait_ended())

    async def stop(self, *, grace: float | None = None, by: str = "caller", reason: str = "") -> Record:
        """Stop the tree: TERM, ``grace`` seconds, KILL; returns with the proof, or ``unresolved`` with the survivors."""
        return await run_async(self._following.stop(by=by, reason=reason, grace_s=grace))

    async def signal(self, number: int) -> None:
        """Send a signal to the root's process group; raises ``ExecutionError`` (not_running) when the root has ended."""
        await run_async(self._following.live.signal(number))

    async def write(self, data: bytes, *, eof: bool = False) -> int:
        """Send bytes to standard input (``stdin="pipe"``); returns how many were taken. Raises ``stdin_closed`` or ``stdin_full``."""
        return await run_async(self._following.live.write(data, eof=eof))

    async def read_since(self, offset: int, *, limit: int = READ_LIMIT_BYTES, stream: int | None = None) -> Chunk:
        """Read kept output from an absolute offset; reading never consumes, and offsets never change meaning."""
        return self._following.read_since(offset, limit=limit, stream=stream)

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events of the execution's life as they happen, until its ending."""
        while (event := await run_async(self._following.next_event())) is not None:
            yield event
