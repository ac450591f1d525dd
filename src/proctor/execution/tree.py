"""What is known about the processes of an execution: who is there, who survived a stop, and by what proof nobody did."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..data import Data
from .codec import decoder, many, optional, parse_time, texts
from .states import ProofMethod

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Member", "Tree"]


class Member(Data):
    """One process of the tree; pid and ``started_at`` together are its identity. ``None`` means not known."""

    pid: int
    started_at: datetime | None = None
    command: str = ""
    holds_output: bool | None = None
    listening: tuple[int, ...] = ()
    reason: str | None = None

    CONVERTERS: ClassVar = {"started_at": optional(parse_time), "listening": lambda ports: tuple(int(port) for port in ports)}


class Tree(Data):
    """The report of a stop, or of an ending without one: ``proved`` only with a method that shows the absence of every process."""

    proved: bool
    method: ProofMethod
    survivors: tuple[Member, ...] = ()
    escalated: bool = False
    signals: tuple[str, ...] = ()
    took_ms: float = 0.0

    CONVERTERS: ClassVar = {"method": ProofMethod, "survivors": many(decoder(Member)), "signals": texts}
