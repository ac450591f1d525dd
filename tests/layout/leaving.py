"""Tests that leave something behind, for ``test_leak_watch`` to run: each but the first and the last must fail."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tests.leaks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tell = Callable[[str, object], None]

SLEEPING = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
ABANDONING = "import os, sys; print(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), flush=True)"
FORGETTING = "import os, sys; print(os.posix_spawn(sys.argv[1], sys.argv[1:], {'PROCTOR_HOME': sys.argv.pop()}), flush=True)"


@pytest.fixture(scope="module", autouse=True)
def impatience() -> Iterator[None]:
    """Wait less than usual for what will never go by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tests.leaks, "SETTLING_LIMIT_S", 0.2)
        yield


def test_nothing_is_left() -> None:
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)


def test_a_child(record_property: Tell) -> None:
    record_property("left", os.posix_spawn(SLEEPING[0], SLEEPING, os.environ))


def test_an_orphan_in_a_session_of_its_own(record_property: Tell) -> None:
    with tempfile.TemporaryFile() as said:
        subprocess.run([sys.executable, "-S", "-c", ABANDONING, *SLEEPING], check=True, stdout=said, start_new_session=True)
        said.seek(0)
        record_property("left", int(said.read()))


def test_an_orphan_that_knows_only_the_home(record_property: Tell, tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as said:
        command = [sys.executable, "-S", "-c", FORGETTING, *SLEEPING, str(tmp_path)]
        subprocess.run(command, check=True, stdout=said, start_new_session=True)
        said.seek(0)
        record_property("left", int(said.read()))


def test_a_zombie(record_property: Tell) -> None:
    record_property("left", os.posix_spawn("/bin/true", ["true"], {}))


def test_a_descriptor() -> None:
    os.dup(os.open(os.devnull, os.O_RDONLY))


def test_a_file_of_the_user() -> None:
    Path.home().joinpath(".left").touch()


def test_a_temporary_file() -> None:
    os.close(tempfile.mkstemp()[0])


def test_nothing_is_left_after_all_that() -> None:
    assert not tests.leaks.living_with("PROCTOR_TEST_MARK=nowhere")
