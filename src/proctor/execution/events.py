"""The events of an execution's life, as the journal holds them and as the keeper tells them.

``encode_event`` and ``decode_event`` add the event's name under ``"event"``; an unknown name decodes to ``None`` and is skipped, so that a
newer keeper's journal still loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..data import Data
from .codec import decode, decoder, encode, many, optional, parse_time
from .states import EndedBy
from .tree import Member, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

__all__ = [
    "Drained",
    "Ended",
    "Event",
    "Fault",
    "Forced",
    "KeeperStarted",
    "Lost",
    "NotStarted",
    "OutputCounts",
    "RootEnded",
    "Started",
    "StopAsked",
    "Unresolved",
    "decode_event",
    "encode_event",
]


class OutputCounts(Data):
    """How much a command wrote and how much of it is kept; ``incomplete`` is None, disk_full, folder_gone or permission."""

    bytes: int = 0
    kept_bytes: int = 0
    dropped_bytes: int = 0
    late_bytes: int = 0
    incomplete: str | None = None


class Fault(Data):
    """Why something could not be done: a stable code, what happened, and what to do."""

    code: str
    message: str
    hint: str = ""


class KeeperStarted(Data):
    """A keeper holds the run folder's lock. ``start_ticks`` is the kernel's start time of the process, in clock ticks since boot."""

    at: datetime
    pid: int
    start_ticks: int
    zygote_pid: int | None = None
    zygote_start_ticks: int | None = None

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time}


class Started(Data):
    """The root process runs the command (exec succeeded)."""

    at: datetime
    pid: int
    start_ticks: int
    process_started_at: datetime

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time, "process_started_at": parse_time}


class NotStarted(Data):
    """Nothing runs and nothing will: a start error, or an ending before the start (owner gone, refused, stopped)."""

    at: datetime
    ended_by: EndedBy
    error: Fault | None = None

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time, "ended_by": EndedBy, "error": optional(decoder(Fault))}


class StopAsked(Data):
    """Somebody or something wants the tree gone; the first asker's cause is the ending's."""

    at: datetime
    ended_by: EndedBy
    by: str
    reason: str = ""

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time, "ended_by": EndedBy}


class RootEnded(Data):
    """The root process was reaped: an exit code, or the name of the signal that ended it."""

    at: datetime
    exit_code: int | None
    signal: str | None

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time}


class Drained(Data):
    """Output after the root's end has settled and descendants are left; ``stopping`` says whether they are being stopped."""

    at: datetime
    left: tuple[Member, ...]
    stopping: bool
    output: OutputCounts

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time, "left": many(decoder(Member)), "output": decoder(OutputCounts)}


class Forced(Data):
    """The polite phase is over and KILL is being sent."""

    at: datetime

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time}


class Unresolved(Data):
    """Survivors exist, or their absence is not proved; supervision goes on."""

    at: datetime
    tree: Tree
    output: OutputCounts | None = None

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time, "tree": decoder(Tree), "output": optional(decoder(OutputCounts))}


class Ended(Data):
    """The tree is gone, by the proof in ``tree``; which ending it is follows from the record."""

    at: datetime
    tree: Tree
    output: OutputCounts
    duration_s: float
    suspended_s: float = 0.0

    CONVERTERS: ClassVar[dict[str, Any]] = {"at": parse_time, "tree": decoder(Tree), "output": decoder(OutputCounts)}


class Lost(Data):
    """Nobody saw the ending: ``ended_by`` is keeper_lost or host_rebooted."""

    at: datetime
    ended_by: EndedBy
    tree: Tree
    output: OutputCounts | None = None

    CONVERTERS: ClassVar[dict[str, Any]] = {
        "at": parse_time,
        "ended_by": EndedBy,
        "tree": decoder(Tree),
        "output": optional(decoder(OutputCounts)),
    }


Event = KeeperStarted | Started | NotStarted | StopAsked | RootEnded | Drained | Forced | Unresolved | Ended | Lost

_NAMES: dict[str, type[Any]] = {
    "keeper": KeeperStarted,
    "started": Started,
    "not_started": NotStarted,
    "asked": StopAsked,
    "root_ended": RootEnded,
    "drained": Drained,
    "forced": Forced,
    "unresolved": Unresolved,
    "ended": Ended,
    "lost": Lost,
}
_CLASSES: dict[type[Any], str] = {cls: name for name, cls in _NAMES.items()}


def encode_event(event: Event) -> dict[str, Any]:
    """Return the event as a JSON-ready object with its name under ``"event"``."""
    return {"event": _CLASSES[type(event)], **encode(event)}


def decode_event(data: Mapping[str, Any]) -> Event | None:
    """Return the event, or ``None`` for a name this version does not know."""
    cls = _NAMES.get(data.get("event", ""))
    return None if cls is None else decode(cls, data)
