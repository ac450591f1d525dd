"""The library for scripts without asyncio: ``with proctor.open_sync() as p: result = p.run("pytest -q", timeout=60)``.

The same words and the same meaning as the asyncio face. Ctrl-C during ``run`` stops the whole tree, proved, before KeyboardInterrupt goes
on.
Threads may share one ``SyncProctor``; an execution is followed by one thread at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

from ..execution import Lifetime
from .asking import request_of
from .following import READ_LIMIT_BYTES, Following
from .steps import run_blocking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from ..execution import Event, Record
    from ..output import Chunk
    from .asking import Options
    from .local import LocalRuntime

__all__ = ["SyncExecution", "SyncProctor"]


class SyncProctor:
    """A host's way to run commands; a context manager. Several may be open at once, on one home or on different ones."""

    def __init__(self, runtime: LocalRuntime) -> None:
        self.runtime = runtime

    def __enter__(self) -> Self:
        """Start the zygote, so that the first command does not wait for it."""
        self.runtime.warm()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let go; executions are not touched (their lifetime decides)."""
        self.close()

    def close(self) -> None:
        """Let go of zygote and store."""
        self.runtime.close()

    def run(self, command: str | Sequence[str], **options: Unpack[Options]) -> Record:
        """Run a command to its result: a text in a shell, a list of words without one. Lifetime: ``call``.

        Raises ``RequestError`` for a request that makes no sense, ``StoreError`` when nothing can be recorded; nothing was started then.
        """
        return run_blocking(self.runtime.run(request_of(command, lifetime=Lifetime.CALL, options=options)))

    def start(self, command: str | Sequence[str], **options: Unpack[Options]) -> SyncExecution:
        """Start a command and return once its root runs, or once it is known never to (``execution.record``). Lifetime: ``host``."""
        live = run_blocking(self.runtime.start(request_of(command, lifetime=Lifetime.HOST, options=options)))
        return SyncExecution(Following(self.runtime, live))

    def attach(self, execution_id: str) -> SyncExecution:
        """Follow an execution that anybody started on this home, by id, unique prefix, or ``-`` for the last."""
        live = run_blocking(self.runtime.attach(self.runtime.resolve(execution_id)))
        return SyncExecution(Following(self.runtime, live))

    def stop(self, execution: SyncExecution | str | None, *, grace: float | None = None, reason: str = "") -> Record | None:
        """Stop an execution, proved. ``None``, an ended and a never started one are fine: nothing is raised, what is known is returned."""
        if execution is None:
            return None
        if isinstance(execution, SyncExecution):
            return execution.stop(grace=grace, reason=reason)
        with self.attach(execution) as attached:
            return attached.stop(grace=grace, reason=reason)

    def show(self, execution_id: str) -> Record:
        """Return what is known now about one execution, with the view of its output."""
        record = run_blocking(self.runtime.record(self.runtime.resolve(execution_id)))
        return self.runtime.view(record)

    def unfinished(self) -> list[Record]:
        """Return every execution on this home that has no ending."""
        return run_blocking(self.runtime.unfinished())


class SyncExecution:
    """One execution that this host follows; a context manager that only lets go of it at the end."""

    def __init__(self, following: Following) -> None:
        self._following = following

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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

    def wait(self, timeout: float | None = None) -> Record:
        """Wait for the result; raises ``ExecutionError`` (wait_timeout) after ``timeout`` seconds and stops nothing."""
        return run_blocking(self._following.wait(timeout_s=timeout))

    def wait_ended(self) -> Record:
        """Wait for the ending, kept leftovers included."""
        return run_blocking(self._following.wait_ended())

    def stop(self, *, grace: float | None = None, by: str = "caller", reason: str = "") -> Record:
        """Stop the tree: TERM, ``grace`` seconds, KILL; returns with the proof, or ``unresolved`` with the survivors."""
        return run_blocking(self._following.stop(by=by, reason=reason, grace_s=grace))

    def signal(self, number: int) -> None:
        """Send a signal to the root's process group; raises ``ExecutionError`` (not_running) when the root has ended."""
        run_blocking(self._following.live.signal(number))

    def write(self, data: bytes, *, eof: bool = False) -> int:
        """Send bytes to standard input (``stdin="pipe"``); returns how many were taken. Raises ``stdin_closed`` or ``stdin_full``."""
        return run_blocking(self._following.live.write(data, eof=eof))

    def read_since(self, offset: int, *, limit: int = READ_LIMIT_BYTES, stream: int | None = None) -> Chunk:
        """Read kept output from an absolute offset; reading never consumes, and offsets never change meaning."""
        return self._following.read_since(offset, limit=limit, stream=stream)

    def events(self) -> Iterator[Event]:
        """Yield the events of the execution's life as they happen, until its ending."""
        while (event := run_blocking(self._following.next_event())) is not None:
            yield event
