"""macOS: the contract's names, each of which says plainly that this version cannot do it.

What it will be: session and group, descendants tracked by pid and start time, kqueue for exits; the strongest claim will be ``group-gone``.
Nothing here pretends: every call raises ``unsupported_here`` before anything was started or signalled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ..errors import ErrorCode, RequestError
from ..execution import ProofMethod

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ..execution import Launch, Machine, Member
    from .backend import Reaped, Root, Sent

__all__ = ["DarwinBackend", "DarwinSurroundings", "rename_process"]


def _unsupported(what: str) -> NoReturn:
    raise RequestError(
        ErrorCode.UNSUPPORTED_HERE,
        f"Proctor cannot {what} on macOS in this version; nothing was done.",
        "Use it on Linux for now.",
    )


class DarwinBackend:
    """The tree of one execution: not in this version."""

    proof = ProofMethod.GROUP_GONE

    def adopt(self) -> None:
        """Raise ``unsupported_here``."""
        _unsupported("own a process tree")

    def spawn(self, launch: Launch, ends: tuple[int, ...]) -> Root:
        """Raise ``unsupported_here``."""
        del launch, ends
        _unsupported("start commands")

    def reap(self, root: Root | None) -> Reaped:
        """Raise ``unsupported_here``."""
        del root
        _unsupported("reap processes")

    def ask(self, root: Root | None, spared: Collection[int] = ()) -> Sent:
        """Raise ``unsupported_here``."""
        del root, spared
        _unsupported("end processes")

    def force(self, spared: Collection[int] = ()) -> Sent:
        """Raise ``unsupported_here``."""
        del spared
        _unsupported("end processes")

    def deliver(self, root: Root, number: int) -> Sent:
        """Raise ``unsupported_here``."""
        del root, number
        _unsupported("signal processes")

    def strays(self, spared: Collection[int]) -> bool:
        """Raise ``unsupported_here``."""
        del spared
        _unsupported("list a process tree")

    def members(self, pipes: Collection[str] = (), spared: Collection[int] = ()) -> tuple[Member, ...]:
        """Raise ``unsupported_here``."""
        del pipes, spared
        _unsupported("list a process tree")


class DarwinSurroundings:
    """The machine and foreign processes: not in this version."""

    def machine(self) -> Machine:
        """Raise ``unsupported_here``."""
        _unsupported("identify the machine")

    def start_ticks(self, pid: int) -> int | None:
        """Raise ``unsupported_here``."""
        del pid
        _unsupported("identify processes")

    def started_at(self, start_ticks: int) -> datetime:
        """Raise ``unsupported_here``."""
        del start_ticks
        _unsupported("identify processes")

    def find_members(self, execution_id: str, root: Root | None) -> tuple[Member, ...]:
        """Raise ``unsupported_here``."""
        del execution_id, root
        _unsupported("search for processes")

    def signal_found(self, execution_id: str, number: int) -> int:
        """Raise ``unsupported_here``."""
        del execution_id, number
        _unsupported("end processes")


def rename_process(title: str) -> None:
    """Leave the name as it is: it is only for people's eyes."""
    del title
