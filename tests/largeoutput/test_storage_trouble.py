"""The disk is full, the folder is gone or closed while a command runs: it goes on, its ending is true, the loss is stated."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import ErrorCode, ProctorError, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1 << 20
# Eight megabytes, a line at the end of both streams, and a code of its own.
COMMAND = "echo begun; read -r _; yes 0123456789abcde | head -c 8388608; echo the end; exit 7"
BYTES = 6 + 8 * MIB + 8


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system with room for two megabytes."""
    if os.getuid() != 0:
        pytest.skip("mounting a small disk needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.requirement("I2-disk-full")
@pytest.mark.parametrize("streams", ["merged", "split"])
def test_on_a_full_disk_the_command_goes_on_and_its_end_and_ending_are_told(streams: str, small_disk: Path) -> None:
    home = str(small_disk / "home")
    with proctor.open_sync(home=home) as host:
        with host.start(["sh", "-c", COMMAND], stdin="pipe", streams=streams) as execution:
            execution.write(b"\n")
            record = execution.wait(timeout=20)
            name = execution.id
        assert (record.status, record.exit_code) == (Status.EXITED, 7)
        assert record.tree is not None
        assert record.tree.proved
        assert (record.output.bytes, record.output.incomplete) == (BYTES, "disk_full")
        assert record.output.kept_bytes + record.output.dropped_bytes == BYTES
        assert 0 < record.output.kept_bytes < 3 * MIB
        assert record.output.text is not None
        assert record.output.text.startswith("begun\n0123456789abcde\n")
        assert record.output.text.endswith("0123456789abcde\nthe end\n")
    with proctor.open_sync(home=home) as later:
        assert later.unfinished() == []
        told = later.show(name)
    assert (told.status, told.exit_code, told.output.incomplete) == (Status.EXITED, 7, "disk_full")
    assert told.output.text is not None
    assert told.output.text.endswith("the end\n")


@pytest.mark.requirement("I2-disk-full")
def test_a_start_on_a_full_disk_is_refused_with_what_to_do_and_works_again_when_there_is_room(small_disk: Path) -> None:
    with proctor.open_sync(home=str(small_disk / "home")) as host:
        assert host.run(["true"]).exit_code == 0
        filler = small_disk / "filler"
        with suppress_full(), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(ProctorError) as refused:
            host.run(["sh", "-c", "echo ran > ran"], cwd=small_disk.parent)
        assert refused.value.code is ErrorCode.STORE_UNAVAILABLE
        assert "proctor gc" in refused.value.hint
        assert not (small_disk.parent / "ran").exists()
        filler.unlink()
        assert host.run(["sh", "-c", "exit 3"]).exit_code == 3
        assert host.unfinished() == []


def suppress_full() -> pytest.RaisesExc[OSError]:
    return pytest.raises(OSError, match="No space")


@pytest.mark.requirement("I2-folder-gone")
@pytest.mark.parametrize("listening", ["at once", "after the end"])
@pytest.mark.parametrize("what", ["run folder", "home"])
def test_when_its_folder_is_removed_the_command_goes_on_and_its_ending_is_told(what: str, listening: str, home: str) -> None:
    with proctor.open_sync(home=home) as host:
        with host.start(["sh", "-c", COMMAND], stdin="pipe", streams="merged") as execution:
            remove(home if what == "home" else os.path.join(home, "runs", execution.id))
            execution.write(b"\n")
            if listening == "after the end":
                await_end_of(execution.record.keeper_pid)
            record = execution.wait(timeout=20)
        assert (record.status, record.exit_code) == (Status.EXITED, 7)
        assert record.tree is not None
        assert record.tree.proved
        assert (record.output.bytes, record.output.incomplete) == (BYTES, "folder_gone")
        assert record.output.kept_bytes < MIB
        assert record.output.kept_bytes + record.output.dropped_bytes == BYTES
        assert record.output.text is not None
        assert record.output.text.endswith("0123456789abcde\nthe end\n")
        try:
            assert host.run(["sh", "-c", "exit 3"]).exit_code == 3
        except ProctorError as error:
            assert error.code is ErrorCode.STORE_UNAVAILABLE  # noqa: PT017 - either is fine, and nothing else


def remove(folder: str) -> None:
    """Remove a folder into which a keeper may be writing its token and its socket at this very moment."""
    until = time.monotonic() + 5
    while os.path.exists(folder):
        assert time.monotonic() < until
        shutil.rmtree(folder, ignore_errors=True)


def await_end_of(pid: int | None) -> None:
    assert pid is not None
    descriptor = os.pidfd_open(pid)
    try:
        assert select.select([descriptor], (), (), 20)[0]
    finally:
        os.close(descriptor)


@pytest.mark.requirement("I2-folder-gone")
def test_a_command_whose_folder_was_removed_can_still_be_stopped_by_its_host(home: str) -> None:
    with proctor.open_sync(home=home) as host, host.start(["sleep", "4000"]) as execution:
        remove(home)
        record = execution.stop()
    assert record.status is Status.CANCELLED
    assert record.tree is not None
    assert record.tree.proved


CLOSED_WHILE_RUNNING = """
import json
with proctor.open_sync(home=home) as p:
    with p.start(["sh", "-c", sys.argv[2]], stdin="pipe", streams="merged") as execution:
        os.chmod(os.path.join(home, "runs", execution.id), 0o500)
        execution.write(b"\\n")
        record = execution.wait(timeout=20)
    output = record.output
    print(json.dumps([record.status.value, record.exit_code, record.tree.proved, output.bytes, output.incomplete, output.text[-8:]]))
"""


@pytest.mark.requirement("I2-folder-gone")
def test_when_its_folder_is_closed_to_its_user_the_command_goes_on_and_its_ending_is_told(
    as_plain_user: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    more = COMMAND.replace("8388608", str(20 * MIB))  # beyond the first file, which is open and stays so
    done = as_plain_user(CLOSED_WHILE_RUNNING, more)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["exited", 7, True, 6 + 20 * MIB + 8, "permission", "the end\n"]
