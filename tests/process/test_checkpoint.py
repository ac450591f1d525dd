"""Named points: silent when off, held when on, and never for good."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from proctor.process import Checkpoints

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("I2-faults")
def test_a_point_tells_its_name_and_waits_to_be_let_on(tmp_path: Path) -> None:
    address = str(tmp_path / "points")
    passed = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()

        def reach() -> None:
            Checkpoints("keeper", address).reach("spawned")
            passed.set()

        thread = threading.Thread(target=reach)
        thread.start()
        peer, _ = listener.accept()
        with peer:
            assert peer.recv(100).decode() == f"keeper spawned {os.getpid()}\n"
            assert not passed.wait(0.1)
            peer.send(b".")
            assert passed.wait(5)
        thread.join()


@pytest.mark.requirement("I2-faults")
def test_a_point_that_nobody_listens_for_is_passed(tmp_path: Path) -> None:
    Checkpoints("keeper", None).reach("spawned")
    Checkpoints("keeper", str(tmp_path / "nobody")).reach("spawned")
