"""Pure data of one execution: what was asked, what happened, what is known, and which step may follow which.

No I/O, no clock, no environment: they come in as arguments. Every other package speaks in these terms.
"""

from .codec import changed, decode, encode, parse_time, render_time
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
    decode_event,
    encode_event,
)
from .ids import ID_LENGTH, is_id, is_id_prefix, make_id, milliseconds_of
from .journal import JournalContent, journal_body, journal_line, read_journal, sealed_line
from .limits import DEFAULT_GRACE_S, MAXIMUM_TIMEOUT_S, Limits, clamp
from .plan import FORCE_LIMIT_S, StopPlan, StopStep, next_step
from .reconcile import Facts, Verdict, judge
from .record import Output, Record, Stop, advance, record_from_json, record_of, record_to_json, replay
from .spec import SCHEMA, Launch, LifetimePair, Machine, Spec
from .states import CAUSES, ENDINGS, STOP_CAUSES, TRANSITIONS, UNFINISHED, EndedBy, Lifetime, OnLinger, ProofMethod, Status, Streams
from .tree import Member, Tree

__all__ = [
    "CAUSES",
    "DEFAULT_GRACE_S",
    "ENDINGS",
    "FORCE_LIMIT_S",
    "ID_LENGTH",
    "MAXIMUM_TIMEOUT_S",
    "SCHEMA",
    "STOP_CAUSES",
    "TRANSITIONS",
    "UNFINISHED",
    "Drained",
    "Ended",
    "EndedBy",
    "Event",
    "Facts",
    "Fault",
    "Forced",
    "JournalContent",
    "KeeperStarted",
    "Launch",
    "Lifetime",
    "LifetimePair",
    "Limits",
    "Lost",
    "Machine",
    "Member",
    "NotStarted",
    "OnLinger",
    "Output",
    "OutputCounts",
    "ProofMethod",
    "Record",
    "RootEnded",
    "Spec",
    "Started",
    "Status",
    "Stop",
    "StopAsked",
    "StopPlan",
    "StopStep",
    "Streams",
    "Tree",
    "Unresolved",
    "Verdict",
    "advance",
    "changed",
    "clamp",
    "decode",
    "decode_event",
    "encode",
    "encode_event",
    "is_id",
    "is_id_prefix",
    "journal_body",
    "journal_line",
    "judge",
    "make_id",
    "milliseconds_of",
    "next_step",
    "parse_time",
    "read_journal",
    "record_from_json",
    "record_of",
    "record_to_json",
    "render_time",
    "replay",
    "sealed_line",
]
