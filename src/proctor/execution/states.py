"""The closed set of statuses and causes, and the one table of which may follow which.

``TRANSITIONS`` is the whole truth about order; ``advance`` in ``record`` is the only function that moves a record along it.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "CAUSES",
    "ENDINGS",
    "STOP_CAUSES",
    "TRANSITIONS",
    "UNFINISHED",
    "EndedBy",
    "Lifetime",
    "OnLinger",
    "ProofMethod",
    "Status",
    "Streams",
]


class Status(StrEnum):
    """Where an execution stands."""

    CREATED = "created"
    RUNNING = "running"
    LINGERING = "lingering"
    STOPPING = "stopping"
    UNRESOLVED = "unresolved"
    EXITED = "exited"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DENIED = "denied"
    LOST = "lost"


class EndedBy(StrEnum):
    """What brought the ending about; each belongs to exactly one ending (``CAUSES``)."""

    EXIT = "exit"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    IDLE_TIMEOUT = "idle_timeout"
    STOP = "stop"
    CALLER_CANCELLED = "caller_cancelled"
    SESSION_CLOSED = "session_closed"
    OWNER_GONE = "owner_gone"
    TTL = "ttl"
    OUTPUT_LIMIT = "output_limit"
    SHUTDOWN = "shutdown"
    START_ERROR = "start_error"
    POLICY = "policy"
    APPROVAL_REFUSED = "approval_refused"
    APPROVAL_TIMEOUT = "approval_timeout"
    KEEPER_LOST = "keeper_lost"
    HOST_REBOOTED = "host_rebooted"


class Lifetime(StrEnum):
    """How long an execution may live, measured against whoever started it."""

    CALL = "call"
    HOST = "host"
    SESSION = "session"
    DETACHED = "detached"


class OnLinger(StrEnum):
    """What happens to descendants that are left when the root process ended by itself."""

    STOP = "stop"
    KEEP = "keep"


class Streams(StrEnum):
    """One pipe for both streams in exact order, or one pipe for each."""

    SPLIT = "split"
    MERGED = "merged"


class ProofMethod(StrEnum):
    """How the absence of the tree was established; ``NONE`` is no proof."""

    CHILDREN_REAPED = "children-reaped"
    PID_NAMESPACE = "pid-namespace"
    JOB_EMPTY = "job-empty"
    CGROUP_EMPTY = "cgroup-empty"
    GROUP_GONE = "group-gone"
    NONE = "none"


CAUSES: dict[Status, frozenset[EndedBy]] = {
    Status.EXITED: frozenset({EndedBy.EXIT, EndedBy.SIGNAL}),
    Status.TIMED_OUT: frozenset({EndedBy.TIMEOUT, EndedBy.IDLE_TIMEOUT}),
    Status.CANCELLED: frozenset(
        {
            EndedBy.STOP,
            EndedBy.CALLER_CANCELLED,
            EndedBy.SESSION_CLOSED,
            EndedBy.OWNER_GONE,
            EndedBy.TTL,
            EndedBy.OUTPUT_LIMIT,
            EndedBy.SHUTDOWN,
        }
    ),
    Status.FAILED: frozenset({EndedBy.START_ERROR}),
    Status.DENIED: frozenset({EndedBy.POLICY, EndedBy.APPROVAL_REFUSED, EndedBy.APPROVAL_TIMEOUT}),
    Status.LOST: frozenset({EndedBy.KEEPER_LOST, EndedBy.HOST_REBOOTED}),
}

# Why a stop may be asked for; such an execution never counts as exited, whatever its root answers.
STOP_CAUSES: frozenset[EndedBy] = CAUSES[Status.TIMED_OUT] | CAUSES[Status.CANCELLED]

ENDINGS: frozenset[Status] = frozenset(CAUSES)
UNFINISHED: frozenset[Status] = frozenset(Status) - ENDINGS

# From `created` an execution cannot have exited or timed out: nothing ran. An execution that is `unresolved` already went past its own
# exit, so only the endings that a supervisor can still establish are open to it.
TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.CREATED: frozenset({Status.RUNNING, Status.CANCELLED, Status.FAILED, Status.DENIED, Status.LOST, Status.UNRESOLVED}),
    Status.RUNNING: frozenset({Status.LINGERING, Status.STOPPING, Status.UNRESOLVED, Status.EXITED, Status.LOST}),
    Status.LINGERING: frozenset({Status.STOPPING, Status.UNRESOLVED, Status.EXITED, Status.LOST}),
    Status.STOPPING: frozenset({Status.UNRESOLVED, Status.TIMED_OUT, Status.CANCELLED, Status.LOST}),
    Status.UNRESOLVED: frozenset({Status.EXITED, Status.TIMED_OUT, Status.CANCELLED, Status.LOST}),
    **{ending: frozenset() for ending in CAUSES},
}
