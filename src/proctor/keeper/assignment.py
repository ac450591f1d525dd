"""What a host hands to a keeper: the spec and the launch in a memfd, and the descriptors that go with them.

The message itself is small; environment values exist in memory only. Order of the descriptors: run folder, locked ``lock`` file,
starting connection, memfd, pidfd of the host, then the command's standard input and script text where there are such.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ..execution import Launch, Spec, decode, encode

__all__ = ["Assignment", "Delivery", "Handed", "pack", "unpack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A packed assignment: the message, and the descriptors to send with it; ``close`` when it was sent or given up."""

    message: bytes
    descriptors: tuple[int, ...]
    payload: int

    def close(self) -> None:
        """Close what packing opened: the payload, and nothing of the caller's."""
        os.close(self.payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One execution to keep, as the keeper holds it."""

    spec: Spec
    launch: Launch
    folder_path: str
    folder: int
    lock: int
    connection: int
    host: int
    stdin: int | None
    script: int | None
    live_output: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """The caller's descriptors that travel along."""

    folder: int
    lock: int
    connection: int
    host: int
    stdin: int | None = None
    script: int | None = None


def pack(spec_json: bytes, launch: Launch, handed: Handed, *, folder_path: str, live_output: bool) -> Delivery:
    """Write spec and launch into a memfd and make the message for the zygote's socket."""
    payload = os.memfd_create("proctor-assignment", os.MFD_CLOEXEC)
    _write_all(payload, b'{"spec": %b, "launch": %b}' % (spec_json, json.dumps(encode(launch)).encode()))
    optional = {"stdin": handed.stdin, "script": handed.script}
    message = {
        "id": os.path.basename(folder_path),
        "path": folder_path,
        "live": live_output,
        "extra": [name for name, fd in optional.items() if fd is not None],
    }
    extra = tuple(fd for fd in optional.values() if fd is not None)
    descriptors = (handed.folder, handed.lock, handed.connection, payload, handed.host, *extra)
    return Delivery(message=json.dumps(message).encode(), descriptors=descriptors, payload=payload)


def unpack(message: dict[str, Any], descriptors: list[int]) -> Assignment:
    """Rebuild the assignment from a message and its descriptors; the payload is closed here."""
    folder, lock, connection, payload, host, *extra = descriptors
    content = json.loads(_read_all(payload))
    os.close(payload)
    named = dict(zip(message["extra"], extra, strict=True))
    return Assignment(
        spec=decode(Spec, content["spec"]),
        launch=decode(Launch, content["launch"]),
        folder_path=message["path"],
        folder=folder,
        lock=lock,
        connection=connection,
        host=host,
        stdin=named.get("stdin"),
        script=named.get("script"),
        live_output=message["live"],
    )


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)  # memory, not a disk: one read is the whole
