"""Proctor runs commands and tells only what it verified.

``async with proctor.open() as p: result = await p.run("pytest -q", cwd=…, timeout=60)``, or ``proctor.open_sync()`` in scripts. The root
is lazy (PEP 562): importing it loads nothing else, so a keeper does not import the world.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, without its import, which is a third of `proctor --version`
if TYPE_CHECKING:
    from typing import Any

    from .errors import (
        ErrorCode,
        ExecutionError,
        KeeperError,
        OutputError,
        ProctorError,
        RequestError,
        StoreError,
        TransitionError,
    )
    from .execution import EndedBy, Lifetime, OnLinger, Record, Status, Streams
    from .runtime import Execution, Proctor, SyncExecution, SyncProctor

__version__ = "0.1.0"
__all__ = [
    "EndedBy",
    "ErrorCode",
    "Execution",
    "ExecutionError",
    "KeeperError",
    "Lifetime",
    "OnLinger",
    "OutputError",
    "Proctor",
    "ProctorError",
    "Record",
    "RequestError",
    "Status",
    "StoreError",
    "Streams",
    "SyncExecution",
    "SyncProctor",
    "TransitionError",
    "__version__",
    "open",
    "open_sync",
]


def open(*, home: str | None = None) -> Proctor:  # noqa: A001 - `proctor.open()` is the library's front door, as `io.open` is io's
    """Return the asyncio face; ``home`` overrides PROCTOR_HOME. Raises ``StoreError`` when the home cannot be used."""
    from .runtime import LocalRuntime, Proctor

    return Proctor(LocalRuntime(home=home))


def open_sync(*, home: str | None = None) -> SyncProctor:
    """Return the blocking face; ``home`` overrides PROCTOR_HOME. Raises ``StoreError`` when the home cannot be used."""
    from .runtime import LocalRuntime, SyncProctor

    return SyncProctor(LocalRuntime(home=home))


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module 'proctor' has no attribute {name!r}"
        raise AttributeError(msg)
    from . import errors, execution, runtime

    return next(getattr(module, name) for module in (errors, execution, runtime) if hasattr(module, name))
