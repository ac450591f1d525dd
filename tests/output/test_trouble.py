"""Storage trouble: the writer goes on, the end of the output stays, and every figure remains true."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from proctor.output import MEMORY_BYTES, Spool, SpoolReader, spool

from .keeping import check_reading

if sys.platform == "win32":
    pytest.skip("run folders are POSIX for now", allow_module_level=True)

import resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .keeping import Kept

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond ``size``: EFBIG, since Python ignores SIGXFSZ."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    if LIBC.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=1m"):
        pytest.skip("a tmpfs may not be mounted here")
    yield place
    LIBC.umount2(os.fsencode(place), 2)


def pattern(total: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(total // 8))


@pytest.mark.requirement("I2-disk-full")
def test_on_a_full_disk_the_last_256_kib_are_in_memory_and_the_figures_exact(small_disk: Path, clock: Clock) -> None:
    descriptor = os.open(small_disk, os.O_RDONLY)
    kept = Spool(descriptor, head_bytes=64 << 20, tail_bytes=64 << 20, split=True, clock=clock)
    content = pattern(3 << 20)
    for start in range(0, len(content), 1 << 16):
        kept.write(1, content[start : start + (1 << 16)])
    counts = kept.counts()
    offset, remembered = kept.memory_tail()
    assert (counts.bytes, counts.incomplete) == (len(content), "disk_full")
    assert remembered == content[-MEMORY_BYTES:]
    assert offset == len(content) - MEMORY_BYTES
    stored = SpoolReader(descriptor).kept()[0].end
    assert stored > 900_000
    assert counts.kept_bytes == stored + MEMORY_BYTES
    kept.close()
    reader = SpoolReader(descriptor)
    assert reader.total_bytes() == len(content)
    assert reader.tail(MEMORY_BYTES).data == content[-MEMORY_BYTES:], "the end is worth more than the middle, so room was made for it"
    assert kept.counts().kept_bytes == sum(part.end - part.start for part in reader.kept())
    assert kept.counts().incomplete == "disk_full"
    assert kept.make_room(4096) >= 4096
    (small_disk / "journal").write_bytes(b"x" * 4096)
    assert reader.total_bytes() == len(content)
    os.close(descriptor)


def test_storing_is_tried_again_once_a_second_and_the_gap_is_exact(
    keep: Callable[..., Kept], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MEMORY_BYTES", 300)
    kept = keep(head=10_000, clock=clock)
    kept.write(2, b"a" * 1000)
    with files_end_at(1500):
        for number in range(100):
            kept.write(1 + number % 2, b"%09d\n" % number)
    clock.now = 0.9
    kept.write(1, b"not yet")
    assert kept.reader.total_bytes() == 1500
    clock.now = 1.0
    kept.write(2, b"stored again")
    offset = 1000 + 1000 + len(b"not yet") - 300
    gap = kept.reader.read_since(1500, limit=4000)
    assert (gap.offset, gap.gap_bytes) == (offset, offset - 1500)
    assert gap.data == kept.content[offset:]
    check_reading(kept, len(kept.content))
    counts = kept.spool.counts()
    assert counts.incomplete == "disk_full"
    assert counts.dropped_bytes == offset - 1500
    assert kept.spool.memory_tail() == (len(kept.content), b"")


def test_attempts_in_vain_leave_no_files_behind(keep: Callable[..., Kept], clock: Clock) -> None:
    kept = keep(head=10_000, clock=clock)
    kept.write(1, b"a" * 10)
    with files_end_at(0):
        for number in range(20):
            clock.now = float(number)
            kept.write(1 + number % 2, b"more")
        assert [entry.name for entry in kept.folder.iterdir()] == ["output"]
    kept.spool.close()
    check_reading(kept, len(kept.content))
    assert kept.spool.counts().dropped_bytes == 0


def test_a_write_that_was_cut_short_is_finished_where_it_stopped(keep: Callable[..., Kept], clock: Clock) -> None:
    kept = keep(head=10_000, clock=clock)
    with files_end_at(777):
        kept.write(1, pattern(1600))
    assert kept.reader.total_bytes() == 777
    kept.spool.close()
    check_reading(kept, 1600)
    assert kept.spool.counts().dropped_bytes == 0


def test_a_removed_folder_is_noticed_and_what_it_held_is_not_called_kept(keep: Callable[..., Kept], clock: Clock) -> None:
    kept = keep(head=1 << 20, clock=clock)
    kept.write(1, b"out " * 1000)
    kept.write(2, b"err " * 1000)
    shutil.rmtree(kept.folder)
    clock.now = 2.0
    kept.write(1, b"goes on")
    counts = kept.spool.counts()
    offset, remembered = kept.spool.memory_tail()
    assert (counts.bytes, counts.incomplete) == (8007, "folder_gone")
    assert remembered == kept.content[offset:], "the open file still gave its end back"
    assert counts.kept_bytes == len(remembered) == 8007
    kept.spool.close()
    assert kept.spool.counts().kept_bytes == 0
    assert kept.spool.counts().dropped_bytes == 8007


def test_a_folder_removed_just_before_the_end_is_noticed_by_close(keep: Callable[..., Kept]) -> None:
    kept = keep()
    kept.write(1, b"hello")
    shutil.rmtree(kept.folder)
    kept.spool.close()
    assert kept.spool.counts().incomplete == "folder_gone"
    assert kept.spool.counts().kept_bytes == 0


def test_a_folder_removed_before_the_first_byte_is_folder_gone(keep: Callable[..., Kept]) -> None:
    kept = keep()
    kept.folder.rmdir()
    kept.write(1, b"hello")
    assert kept.spool.counts().incomplete == "folder_gone"
    assert kept.spool.memory_tail() == (0, b"hello")


def test_an_output_file_removed_alone_is_stored_again_with_its_streams(keep: Callable[..., Kept], clock: Clock) -> None:
    kept = keep(head=1 << 20, clock=clock)
    for number in range(50):
        kept.write(1 + number % 2, b"%03d " % number)
    (kept.folder / "output").unlink()
    (kept.folder / "streams.idx").unlink()
    clock.now = 2.0
    kept.write(1, b"on")
    clock.now = 4.0
    kept.write(2, b"and on")
    check_reading(kept, len(kept.content))
    assert kept.spool.counts().incomplete == "folder_gone"


def test_revoked_permission_ends_storing_at_the_next_segment(tmp_path: Path) -> None:
    """In a child that is not root: root is refused nothing."""
    folder = tmp_path / "run"
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    descriptor = os.open(folder, os.O_RDONLY)
    come, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            kept = Spool(descriptor, head_bytes=100, tail_bytes=640, split=False)
            kept.write(1, b"a" * 50)
            os.fchmod(descriptor, 0o500)
            kept.write(1, b"b" * 100)
            kept.close()
            counts = kept.counts()
            os.write(go, repr((counts.bytes, counts.kept_bytes, counts.incomplete, kept.memory_tail())).encode())
        finally:
            os._exit(0)
    os.close(go)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(come, 4096).decode() == repr((150, 100, "permission", (100, b"b" * 50)))
    for each in (come, descriptor):
        os.close(each)
