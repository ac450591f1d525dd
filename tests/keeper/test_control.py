"""The control socket of a real keeper: who is let in, how far away it may lie, and what bad guests can do to it."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import proctor
from proctor import Status
from proctor.keeper import LineBuffer, line_of
from proctor.keeper.control import UNREAD_LIMIT_BYTES, Control, Peer
from proctor.testing import apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from proctor import SyncExecution, SyncProctor


class Guest:
    """Somebody at the control socket."""

    def __init__(self, home: str, execution: SyncExecution) -> None:
        self.folder = os.open(os.path.join(home, "runs", execution.id), os.O_RDONLY | os.O_DIRECTORY)
        until = time.monotonic() + 5
        while not os.path.exists(f"/proc/self/fd/{self.folder}/control"):  # the socket appears a moment after the start
            assert time.monotonic() < until
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(f"/proc/self/fd/{self.folder}/control")
        with open(f"/proc/self/fd/{self.folder}/token") as file:
            self.token = file.read()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> dict[str, Any] | None:
        """Return the next message, or ``None`` when the keeper hung up."""
        lines = LineBuffer()
        while True:
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            if messages := lines.feed(data):
                return messages[0]

    def ask(self, op: str, token: str | None = None, **fields: object) -> dict[str, Any] | None:
        self.send(line_of({"n": 1, "op": op, "token": self.token if token is None else token, **fields}))
        return self.answer()

    def close(self) -> None:
        self.socket.close()
        os.close(self.folder)


@pytest.fixture
def execution(host: SyncProctor) -> Iterator[SyncExecution]:
    with host.start(["sleep", "60"]) as started:
        yield started
        assert started.stop().status is Status.CANCELLED  # whatever its guests did


@pytest.fixture
def guest(home: str, execution: SyncExecution) -> Iterator[Callable[[], Guest]]:
    guests: list[Guest] = []

    def come() -> Guest:
        guests.append(Guest(home, execution))
        return guests[-1]

    yield come
    for one in guests:
        one.close()


@pytest.mark.requirement("I2-control")
def test_nobody_without_the_token_is_served(guest: Callable[[], Guest]) -> None:
    for token in ("", "wrong", "0" * 64):
        for op in ("status", "stop", "signal", "write", "subscribe", "tail"):
            answer = guest().ask(op, token)
            assert answer is not None
            assert answer["error"]["code"] == "keeper_unreachable"
    told = guest().ask("status")
    assert told is not None
    assert told["ok"]["record"]["status"] == "running"


@pytest.mark.requirement("I2-control")
def test_folder_and_files_are_closed_to_other_users(home: str, execution: SyncExecution, guest: Callable[[], Guest]) -> None:
    guest()
    folder = os.path.join(home, "runs", execution.id)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    for name in os.listdir(folder):
        assert os.stat(os.path.join(folder, name)).st_mode & 0o177 == 0, name


@pytest.mark.requirement("I2-control")
@pytest.mark.parametrize("nonsense", [b"nonsense\n", b"[]\n", b"\xff\xff\n", b"x" * (1 << 20) + b"x" * (1 << 17)])
def test_a_guest_that_talks_nonsense_is_shown_out_and_others_are_served(nonsense: bytes, guest: Callable[[], Guest]) -> None:
    polite, rude = guest(), guest()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        rude.send(nonsense)
    assert rude.answer() is None
    assert polite.ask("status") is not None


@pytest.mark.requirement("I2-control")
@pytest.mark.parametrize("cause", ["exit", "keeper_lost", "policy", "boredom", None])
def test_nobody_can_have_a_stop_told_as_something_else(cause: str | None, guest: Callable[[], Guest]) -> None:
    answer = guest().ask("stop", ended_by=cause)
    assert answer is not None
    assert answer["error"]["code"] == "invalid_request"
    told = guest().ask("status")
    assert told is not None
    assert told["ok"]["record"]["status"] == "running"


@pytest.mark.requirement("I2-control")
def test_a_line_may_come_in_pieces_and_several_at_once(guest: Callable[[], Guest]) -> None:
    one = guest()
    line = line_of({"n": 7, "op": "status", "token": one.token})
    for byte in line[:20]:
        one.send(bytes([byte]))
    one.send(line[20:])
    answer = one.answer()
    assert answer is not None
    assert answer["n"] == 7


@pytest.mark.requirement("I2-control")
def test_a_hundred_guests_are_served(guest: Callable[[], Guest]) -> None:
    guests = [guest() for _ in range(100)]
    assert all(one.ask("status") is not None for one in guests)


@pytest.mark.requirement("I2-control")
def test_the_keeper_is_reached_however_long_the_path_of_its_home_is(tmp_path: Path) -> None:
    long_home = str(tmp_path / ("a" * 120) / ("b" * 120))
    os.makedirs(os.path.dirname(long_home))
    with proctor.open_sync(home=long_home) as p, p.start(["sleep", "60"], lifetime="detached") as execution:
        with proctor.open_sync(home=long_home) as other:
            assert other.show(execution.id).status is Status.RUNNING
            stopped = other.stop(execution.id)
        assert stopped is not None
        assert stopped.status is Status.CANCELLED


@pytest.mark.requirement("I2-control")
def test_a_guest_that_does_not_read_is_dropped_before_it_fills_the_keepers_memory() -> None:
    ours, theirs = socket.socketpair()
    peer = Peer(theirs, trusted=True)
    line = b"x" * 65_536 + b"\n"
    sent = 0
    while not peer.gone:
        peer.queue(line)
        peer.push()
        sent += len(line)
        assert sent < 4 * UNREAD_LIMIT_BYTES
    assert sent > UNREAD_LIMIT_BYTES
    ours.close()
    theirs.close()


@pytest.mark.requirement("I2-control")
@pytest.mark.skipif(os.getuid() != 0, reason="taking another user's identity needs root")
def test_a_guest_of_another_user_is_shown_out_even_with_the_token(open_folder: Path) -> None:
    selector = selectors.DefaultSelector()
    asked: list[str] = []

    def handle(op: str, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        del request, peer
        asked.append(op)
        return {}

    control = Control(selector, handle)
    folder = os.open(open_folder, os.O_RDONLY | os.O_DIRECTORY)
    control.listen(folder)
    token = (open_folder / "token").read_text()
    (open_folder / "control").chmod(0o777)  # what the folder's mode forbids in earnest

    def stranger() -> None:
        os.setgid(65_534)
        os.setuid(65_534)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(open_folder / "control"))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # shown out before it could speak
                connection.sendall(line_of({"n": 1, "op": "status", "token": token}))
                assert connection.recv(1000) == b""

    thread = threading.Thread(target=lambda: apart(stranger))
    thread.start()
    until = time.monotonic() + 10
    while thread.is_alive() and time.monotonic() < until:
        for key, mask in selector.select(0.05):
            key.data(mask)
    thread.join()
    assert asked == []
    assert control.peers == []
    control.close()
    selector.close()
    os.close(folder)
