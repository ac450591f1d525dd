"""What a host hands to a keeper: the spec and the launch in a memfd, and the descriptors that go with them.

The message itself is small; environment values exist in memory only. Order of the descriptors: run folder, locked ``lock`` file,
starting connection, memfd, pidfd of the host, then the command's standard input and script text where there are such.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

from ..data import Data
from ..execution import Launch, Spec, decode, encode

__all__ = ["Assignment", "Delivery", "Handed", "pack", "receive", "unpack"]

MESSAGE_LIMIT = 65_536
DESCRIPTOR_LIMIT = 16
_INT = struct.Struct("i")


class Delivery(Data):
    """A packed assignment: the message, and the descriptors to send with it; ``close`` when it was sent or given up."""

    message: bytes
    descriptors: tuple[int, ...]
    payload: int

    def close(self) -> None:
        """Close what packing opened: the payload, and nothing of the caller's."""
        os.close(self.payload)


class Assignment(Data):
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


class Handed(Data):
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


def receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a message and its descriptors, close-on-exec each; an empty message is the end.

    ``socket.recv_fds`` drops its flags, and then the command inherits the lock and everything else (CPython, at least up to 3.13).
    """
    room = socket.CMSG_LEN(DESCRIPTOR_LIMIT * _INT.size)
    data, ancillary, _, _ = requests.recvmsg(MESSAGE_LIMIT, room, socket.MSG_CMSG_CLOEXEC)
    found: list[int] = []
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.extend(number for (number,) in _INT.iter_unpack(content[: len(content) // _INT.size * _INT.size]))
    return data, found


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
