"""The record of one execution (DESIGN section 3), and ``advance``, the one function that makes the next record.

A record is the fold of the run folder's journal over its spec: ``replay(spec, events)``. Nothing leaves an ending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, assert_never

from ..data import Data
from ..errors import ErrorCode, TransitionError
from .codec import changed, decode, decoder, encode, field_names, many, optional, parse_time, texts
from .events import (
    Drained,
    Ended,
    Event,
    Fault,
    Forced,
    KeeperStarted,
    Lost,
    NotStarted,
    OutputCounts,
    RootEnded,
    Started,
    StopAsked,
    Unresolved,
)
from .limits import Limits
from .spec import SCHEMA, LifetimePair, Machine, Spec
from .states import CAUSES, ENDINGS, STOP_CAUSES, TRANSITIONS, EndedBy, Lifetime, OnLinger, Status, Streams
from .tree import Member, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

__all__ = ["Output", "Record", "Stop", "advance", "record_from_json", "record_of", "record_to_json", "replay"]

NOT_JUDGED = {"decision": "not_judged"}
NO_SANDBOX: dict[str, Any] = {
    "requested": "danger-full-access",
    "mode": "danger-full-access",
    "backend": "none",
    "enforced": [],
    "not_enforced": [],
    "denials": None,
}


class Stop(Data):
    """Who asked for the stop, why and when."""

    by: str
    reason: str
    at: datetime

    CONVERTERS: ClassVar = {"at": parse_time}


class Output(Data):
    """The output's figures and its view; ``text`` is ``None`` when the bytes are binary or the view was not asked for."""

    ref: str
    bytes: int = 0
    kept_bytes: int = 0
    dropped_bytes: int = 0
    late_bytes: int = 0
    encoding: str | None = None
    lossy: bool | None = None
    binary: bool | None = None
    text: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    incomplete: str | None = None


class Record(Data):
    """Everything that is known about one execution; a fact that is not known is ``None``."""

    id: str
    machine: Machine
    lifetime: LifetimePair
    cwd: str
    created_at: datetime
    output: Output
    session: str | None = None
    parent: str | None = None
    bounded_by: tuple[str, ...] = ()
    command: str | None = None
    argv: tuple[str, ...] | None = None
    dialect: str = "none"
    login: bool = False
    workspace: str | None = None
    user: str | None = None
    env_names: tuple[str, ...] = ()
    env_withheld: tuple[str, ...] = ()
    stdin: str = "null"
    tty: bool = False
    streams: Streams = Streams.SPLIT
    on_linger: OnLinger = OnLinger.STOP
    status: Status = Status.CREATED
    waiting_for: str | None = None
    ended_by: EndedBy | None = None
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    cancelled: bool = False
    stop: Stop | None = None
    limits: Limits = Limits()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_s: float | None = None
    suspended_s: float | None = None
    pid: int | None = None
    process_started_at: datetime | None = None
    keeper_pid: int | None = None
    second_net: bool | None = None
    tree: Tree | None = None
    lingering: tuple[Member, ...] = ()
    sandbox: dict[str, Any] = NO_SANDBOX
    policy: dict[str, Any] = NOT_JUDGED
    reason: str | None = None
    notices: tuple[str, ...] = ()
    error: Fault | None = None
    stale: bool = False
    elsewhere: str | None = None
    schema: int = SCHEMA

    CONVERTERS: ClassVar = {
        "machine": decoder(Machine),
        "lifetime": decoder(LifetimePair),
        "created_at": parse_time,
        "output": decoder(Output),
        "bounded_by": texts,
        "argv": optional(texts),
        "env_names": texts,
        "env_withheld": texts,
        "streams": Streams,
        "on_linger": OnLinger,
        "status": Status,
        "ended_by": optional(EndedBy),
        "stop": optional(decoder(Stop)),
        "limits": decoder(Limits),
        "started_at": optional(parse_time),
        "ended_at": optional(parse_time),
        "process_started_at": optional(parse_time),
        "tree": optional(decoder(Tree)),
        "lingering": many(decoder(Member)),
        "notices": texts,
        "error": optional(decoder(Fault)),
    }

    @property
    def ended(self) -> bool:
        """Whether the execution is at one of its endings."""
        return self.status in ENDINGS


def record_of(spec: Spec) -> Record:
    """Return the first record of a spec: created, nothing known yet."""
    shared = {name: getattr(spec, name) for name in field_names(Spec)}
    return Record(output=Output(ref=f"proctor://executions/{spec.id}/output"), **shared)


def replay(spec: Spec, events: Iterable[Event]) -> Record:
    """Return the record that a journal amounts to."""
    record = record_of(spec)
    for event in events:
        record = advance(record, event)
    return record


def record_to_json(record: Record) -> dict[str, Any]:
    """Return the record as the JSON object that users script against."""
    return {"schema": record.schema, **encode(record)}


def record_from_json(data: Mapping[str, Any]) -> Record:
    """Load a record of any version of this major; raises ``ValueError``, ``TypeError`` or ``KeyError`` on damage."""
    return decode(Record, data)


def advance(record: Record, event: Event) -> Record:
    """Return the record after ``event``; raises ``TransitionError`` where the table does not allow it."""
    if record.status in ENDINGS:
        raise _refuse(record, event)
    following = _apply(record, event)
    if following.status is not record.status and following.status not in TRANSITIONS[record.status]:
        raise _refuse(record, event)
    return following


def _apply(record: Record, event: Event) -> Record:  # noqa: C901, PLR0911 - one case per event is the table; splitting it would hide it
    match event:
        case KeeperStarted():
            return changed(record, keeper_pid=event.pid, second_net=event.zygote_pid is not None)
        case Started():
            return _started(record, event)
        case NotStarted():
            return _not_started(record, event)
        case StopAsked():
            return _stop_asked(record, event)
        case RootEnded():
            return changed(record, exit_code=event.exit_code, signal=event.signal)
        case Drained():
            return _drained(record, event)
        case Forced():
            return record
        case Unresolved():
            output = _counted(record.output, event.output)
            return changed(record, status=Status.UNRESOLVED, tree=event.tree, output=output)
        case Ended():
            return _ended(record, event)
        case Lost():
            return _lost(record, event)
        case _:
            assert_never(event)


def _started(record: Record, event: Started) -> Record:
    if record.status is not Status.CREATED:
        raise _refuse(record, event)
    return changed(
        record, status=Status.RUNNING, started_at=event.at, pid=event.pid, process_started_at=event.process_started_at, waiting_for=None
    )


def _not_started(record: Record, event: NotStarted) -> Record:
    if record.status is not Status.CREATED:
        raise _refuse(record, event)
    status = _status_of(event.ended_by)
    cancelled = record.cancelled or status is Status.CANCELLED
    return changed(
        record, status=status, ended_by=event.ended_by, ended_at=event.at, error=event.error, cancelled=cancelled, waiting_for=None
    )


def _stop_asked(record: Record, event: StopAsked) -> Record:
    if event.ended_by not in STOP_CAUSES:
        raise _refuse(record, event)
    if record.stop is not None:
        return record  # a second stop joins the first
    status = record.status if record.status in {Status.CREATED, Status.UNRESOLVED} else Status.STOPPING
    return changed(
        record,
        status=status,
        ended_by=event.ended_by,
        stop=Stop(by=event.by, reason=event.reason, at=event.at),
        timed_out=event.ended_by in CAUSES[Status.TIMED_OUT],
        cancelled=event.ended_by in CAUSES[Status.CANCELLED],
    )


def _drained(record: Record, event: Drained) -> Record:
    status = Status.LINGERING if record.status is Status.RUNNING else record.status
    lifetime = record.lifetime
    if not event.stopping and lifetime.effective is Lifetime.CALL:
        lifetime = changed(lifetime, effective=Lifetime.SESSION if record.session else Lifetime.DETACHED)
    return changed(record, status=status, lingering=event.left, lifetime=lifetime, output=_counted(record.output, event.output))


def _ended(record: Record, event: Ended) -> Record:
    if record.status is Status.CREATED:
        raise _refuse(record, event)
    ended_by = record.ended_by or (EndedBy.SIGNAL if record.signal else EndedBy.EXIT)
    return changed(
        record,
        status=_status_of(ended_by),
        ended_by=ended_by,
        ended_at=event.at,
        tree=event.tree,
        duration_s=event.duration_s,
        suspended_s=event.suspended_s,
        output=_counted(record.output, event.output),
    )


def _lost(record: Record, event: Lost) -> Record:
    if event.ended_by not in CAUSES[Status.LOST]:
        raise _refuse(record, event)
    output = _counted(record.output, event.output)
    return changed(record, status=Status.LOST, ended_by=event.ended_by, ended_at=event.at, tree=event.tree, output=output)


def _status_of(ended_by: EndedBy) -> Status:
    return next(status for status, causes in CAUSES.items() if ended_by in causes)


def _counted(output: Output, counts: OutputCounts | None) -> Output:
    if counts is None:
        return output
    return changed(output, **{name: getattr(counts, name) for name in field_names(OutputCounts)})


def _refuse(record: Record, event: Event) -> TransitionError:
    return TransitionError(
        ErrorCode.STORE_CORRUPT,
        f"execution {record.id} is {record.status.value}; {type(event).__name__} cannot follow.",
        "This is a defect in proctor or a damaged journal; please report it with the run folder's journal.jsonl.",
    )
