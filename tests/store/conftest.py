"""Homes on disk, and executions of every age in them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from proctor.data import changed
from proctor.execution import (
    EndedBy,
    Event,
    Lifetime,
    LifetimePair,
    Machine,
    Record,
    Spec,
    Status,
    encode,
    journal_line,
    make_id,
    record_of,
)
from proctor.execution.layout import JOURNAL
from proctor.store import Index, RunFolder, open_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NUMBERS = itertools.count()
_MACHINE = Machine(id="m" * 32, boot_id="b" * 36, pid_namespace="4026531836", hostname="here")


class Builder:
    """Makes specs, records and run folders in one home; each record is told apart by its command."""

    def __init__(self, home: str) -> None:
        self.home = home

    def spec(self, *, session: str | None = None, age: timedelta = timedelta(0)) -> Spec:
        """Return a new spec, made ``age`` ago."""
        made = datetime.now(UTC) - age
        name = make_id(int(made.timestamp() * 1000), os.urandom(10))
        lifetime = LifetimePair(requested=Lifetime.HOST, effective=Lifetime.HOST)
        command = f"echo {next(_NUMBERS)}"
        return Spec(id=name, machine=_MACHINE, lifetime=lifetime, cwd="/", created_at=made, command=command, session=session)

    def record(self, *, session: str | None = None, age: timedelta = timedelta(0), ended: bool = False) -> Record:
        """Return a record without a run folder."""
        record = record_of(self.spec(session=session, age=age))
        return self.ending_of(record) if ended else record

    def ending_of(self, record: Record) -> Record:
        """Return the record as it ended, the moment it was created."""
        return changed(record, status=Status.EXITED, ended_by=EndedBy.EXIT, exit_code=0, ended_at=record.created_at)

    def folder(self, spec: Spec, events: tuple[Event, ...] = ()) -> str:
        """Make the run folder of ``spec`` as a dead keeper leaves it, and return its path."""
        made = RunFolder.create(self.home, spec.id, json.dumps(encode(spec)).encode())
        made.close()
        with open(os.path.join(made.path, JOURNAL), "wb") as journal:
            journal.writelines(journal_line(number, event) for number, event in enumerate(events))
        return made.path


@pytest.fixture
def replaced(tmp_path: Path) -> Iterator[None]:
    """Expect connections to databases that were replaced: Python 3.11 cannot close them without harm to the new one."""
    yield
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if target.startswith(str(tmp_path)) and "/proctor.db" in target:
                assert sys.version_info < (3, 12)
                os.close(int(number))


@pytest.fixture
def store_home(tmp_path: Path) -> str:
    return open_home(str(tmp_path / "home"), allow_network=True)


@pytest.fixture
def build(store_home: str) -> Builder:
    return Builder(store_home)


@pytest.fixture
def opened() -> Iterator[Callable[..., Index]]:
    """Open indexes that are closed when the test is over."""
    indexes: list[Index] = []

    def open_index(home: str, *, read_only: bool = False) -> Index:
        indexes.append(Index.open(home, read_only=read_only))
        return indexes[-1]

    yield open_index
    for index in indexes:
        index.close()


@pytest.fixture
def index(store_home: str, opened: Callable[..., Index]) -> Index:
    return opened(store_home)


_PRELUDE = """
import json, os, sys
from datetime import UTC, datetime
from proctor.errors import ProctorError
from proctor.execution import *
from proctor.store import Index, RunFolder

home, name = sys.argv[1:3]
machine = Machine(id="m", boot_id="b", pid_namespace="1", hostname="h")
lifetime = LifetimePair(requested=Lifetime.HOST, effective=Lifetime.HOST)

def add(index, command, session=None, quota=None):
    now = datetime.now(UTC)
    spec = Spec(id=make_id(int(now.timestamp() * 1000), os.urandom(10)), machine=machine, lifetime=lifetime, cwd="/", created_at=now,
                command=command, session=session)
    folder = RunFolder.create(home, spec.id, json.dumps(encode(spec)).encode())
    record = record_of(spec)
    try:
        index.reserve(record, session_quota=quota)
    except ProctorError:
        folder.discard()
        raise
    folder.close()
    return record

def end(index, record, code):
    index.put(changed(record, status=Status.EXITED, ended_by=EndedBy.EXIT, exit_code=code, ended_at=datetime.now(UTC)))
"""


@pytest.fixture
def host(store_home: str) -> Iterator[Callable[[str, str], subprocess.Popen[str]]]:
    """Start another Python process on the same home; its script finds ``home``, ``name``, ``add`` and ``end``."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, name: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _PRELUDE + script, store_home, name]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
