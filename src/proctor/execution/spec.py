"""What was asked for: the part of a record that is fixed when the run folder is made (``spec.json``).

It names environment variables and never holds their values; those travel to the keeper in memory (``Launch``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..data import Data
from .codec import decoder, optional, parse_time, texts
from .limits import Limits
from .states import Lifetime, OnLinger, Streams

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["SCHEMA", "Launch", "LifetimePair", "Machine", "Spec"]

SCHEMA = 1


class Machine(Data):
    """Where an execution runs: nothing on another machine, boot or pid namespace can be judged from here."""

    id: str
    boot_id: str
    pid_namespace: str
    hostname: str


class LifetimePair(Data):
    """The lifetime that was asked for, and the one in force."""

    requested: Lifetime
    effective: Lifetime

    CONVERTERS: ClassVar = {"requested": Lifetime, "effective": Lifetime}


class Spec(Data):
    """One request, as it was accepted."""

    id: str
    machine: Machine
    lifetime: LifetimePair
    cwd: str
    created_at: datetime
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
    session: str | None = None
    parent: str | None = None
    bounded_by: tuple[str, ...] = ()
    on_linger: OnLinger = OnLinger.STOP
    limits: Limits = Limits()
    reason: str | None = None
    notices: tuple[str, ...] = ()
    schema: int = SCHEMA

    CONVERTERS: ClassVar = {
        "machine": decoder(Machine),
        "lifetime": decoder(LifetimePair),
        "created_at": parse_time,
        "argv": optional(texts),
        "env_names": texts,
        "env_withheld": texts,
        "streams": Streams,
        "bounded_by": texts,
        "on_linger": OnLinger,
        "limits": decoder(Limits),
        "notices": texts,
    }


class Launch(Data):
    """What the keeper needs to start the root process, secrets included: it exists in memory only, and its text shows no value.

    ``argv[0]`` without a slash is searched in ``PATH`` of ``env``; ``rlimits`` holds (resource, soft, hard) as getrlimit(2) has them.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    umask: int
    nice: int
    rlimits: tuple[tuple[int, int, int], ...] = ()
    user: str | None = None

    CONVERTERS: ClassVar = {
        "argv": texts,
        "rlimits": lambda rows: tuple((int(which), int(soft), int(hard)) for which, soft, hard in rows),
    }

    def __repr__(self) -> str:
        """Return a text that names variables and holds no value of theirs."""
        return f"Launch(argv={self.argv!r}, env={sorted(self.env)!r}, cwd={self.cwd!r})"
