from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, cast

import pytest

from proctor.errors import ErrorCode, OutputError
from proctor.output import Chunk, Range, SpoolReader, reader

from .keeping import check_reading

if sys.platform == "win32":
    pytest.skip("run folders are POSIX for now", allow_module_level=True)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .keeping import Kept

WRITER = """
import os, sys
from proctor.output import Spool, spool
spool.MINIMUM_SEGMENT_BYTES = 512
place = os.open(sys.argv[1], os.O_RDONLY)
kept = Spool(place, head_bytes=1000, tail_bytes=int(sys.argv[2]), split=True)
content = b"".join(b"%07d\\n" % number for number in range(int(sys.argv[3])))
for start in range(0, len(content), 200):
    kept.write(1 + start // 200 % 2, content[start:start + 200])
kept.close()
"""


def lines(total: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(total))


def test_reading_consumes_nothing_and_readers_do_not_disturb_each_other(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1000)
    kept.write(1, b"hello")
    first, second = SpoolReader(kept.descriptor), SpoolReader(kept.folder)
    assert first.read_since(0, limit=3) == first.read_since(0, limit=3) == second.read_since(0, limit=3) == Chunk(0, b"hel", 3)
    assert second.read_since(3, limit=100) == Chunk(3, b"lo", 5)


@pytest.mark.requirement("I2-offsets")
def test_below_what_is_kept_the_answer_is_the_first_kept_offset_and_the_exact_gap(keep: Callable[..., Kept]) -> None:
    kept = keep(head=100, tail=640, split=False)
    kept.write(1, lines(1000))
    start = kept.reader.kept()[1].start
    chunk = kept.reader.read_since(150, limit=10)
    assert (chunk.offset, chunk.gap_bytes, chunk.data) == (start, start - 150, bytes(kept.content[start : start + 10]))
    before = kept.reader.read_since(90, limit=1000)
    assert (before.data, before.next_offset, before.gap_bytes) == (bytes(kept.content[90:100]), 100, 0), "data never reaches over a gap"


@pytest.mark.parametrize(("offset", "expected"), [(-5, Chunk(0, b"hello", 5)), (5, Chunk(5, b"", 5)), (99, Chunk(99, b"", 99))])
def test_offsets_outside_the_output_have_an_answer(keep: Callable[..., Kept], offset: int, expected: Chunk) -> None:
    kept = keep()
    kept.write(1, b"hello")
    assert kept.reader.read_since(offset, limit=100) == expected
    assert kept.reader.read_since(0, limit=0) == Chunk(0, b"", 0)


@pytest.mark.requirement("I2-split-streams")
def test_one_stream_is_read_by_offsets_of_the_whole(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1000)
    for stream, data in ((1, b"out one\n"), (2, b"err one\n"), (1, b"out two\n"), (2, b"err two\n")):
        kept.write(stream, data)
    assert kept.reader.read_since(0, limit=100, stream=2).data == b"err one\nerr two\n"
    assert kept.reader.read_since(12, limit=100, stream=1).data == b"out two\n"
    assert list(kept.reader.pieces(stream=2)) == [(8, b"err one\n"), (24, b"err two\n")]
    assert kept.reader.tail(10, stream=1).data == b"e\nout two\n"
    assert (kept.reader.stream_bytes(1), kept.reader.stream_bytes(2)) == (16, 16)


def test_merged_output_is_all_of_the_first_stream(keep: Callable[..., Kept]) -> None:
    kept = keep(split=False)
    kept.write(1, b"all")
    assert kept.reader.read_since(0, limit=9, stream=1).data == b"all"
    assert kept.reader.read_since(0, limit=9, stream=2) == Chunk(0, b"", 3)
    assert (kept.reader.stream_bytes(1), kept.reader.stream_bytes(2)) == (3, 0)


def test_bytes_of_a_stream_are_counted_even_where_they_are_no_longer_kept(keep: Callable[..., Kept]) -> None:
    kept = keep(head=100, tail=640)
    for number in range(600):
        kept.write(1 + number % 3 // 2, b"%05d\n" % number)
    assert kept.reader.stream_bytes(2) == 200 * 6
    assert kept.spool.counts().dropped_bytes > 2000


@pytest.mark.parametrize("amount", [1, 50, 640, 5000])
@pytest.mark.parametrize("stream", [None, 1, 2])
def test_the_tail_is_the_last_bytes_before_the_end(keep: Callable[..., Kept], amount: int, stream: int | None) -> None:
    kept = keep(head=0, tail=6400)
    for number in range(400):
        kept.write(1 + number % 2, b"%05d\n" % number)
    whole = bytes(kept.content) if stream is None else kept.of_stream(stream, 0, len(kept.content))
    assert kept.reader.tail(amount, stream=stream).data == whole[-amount:]


def test_the_tail_does_not_reach_over_a_gap(keep: Callable[..., Kept]) -> None:
    kept = keep(head=100, tail=640, split=False)
    kept.write(1, lines(1000))
    start = kept.reader.kept()[1].start
    assert kept.reader.tail(5000).data == kept.content[start:]


def test_a_missing_folder_or_output_is_output_missing_and_output_not_begun_is_not(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(OutputError) as caught:
            SpoolReader(folder).read_since(0, limit=1)
        assert caught.value.code is ErrorCode.OUTPUT_MISSING
    live = SpoolReader(tmp_path, live=True)
    assert (live.total_bytes(), live.kept(), live.read_since(0, limit=1)) == (0, (), Chunk(0, b"", 0))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    tmp_path.rmdir()
    with pytest.raises(OutputError):
        SpoolReader(descriptor, live=True).total_bytes()
    os.close(descriptor)


def test_a_symlink_in_the_place_of_output_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "output").symlink_to("/etc/hostname")
    with pytest.raises(OutputError) as caught:
        SpoolReader(tmp_path).read_since(0, limit=1)
    assert caught.value.code is ErrorCode.OUTPUT_UNREADABLE


def test_output_of_somebody_else_is_unreadable(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    (tmp_path / "output").write_bytes(b"secret")
    (tmp_path / "output").chmod(0o600)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            SpoolReader(descriptor).read_since(0, limit=1)
        except OutputError as error:
            os._exit(7 if error.code is ErrorCode.OUTPUT_UNREADABLE else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    os.close(descriptor)


def test_foreign_files_in_the_folder_are_no_output(keep: Callable[..., Kept]) -> None:
    kept = keep()
    for name in ("output.bak", "output.", "output.-1", "outputs.3", "journal.jsonl"):
        (kept.folder / name).write_bytes(b"no")
    kept.write(1, b"yes")
    assert kept.reader.kept() == (Range(0, 3),)


def test_a_segment_that_goes_between_listing_and_opening_is_a_gap(keep: Callable[..., Kept], monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keep(head=64, tail=640)
    for number in range(40):
        kept.write(1 + number % 2, b"%07d\n" % number)
    gone = kept.reader.kept()[0].end
    listed = kept.reader._list()
    victim = next(name for start, name in listed if start > 60)
    following = next(start for start, name in listed if start > 60 and name != victim)
    opened = cast("Callable[[object, str], int]", reader._Folder.open)

    def vanishing(self: object, name: str) -> int:
        if name == victim:
            (kept.folder / victim).unlink(missing_ok=True)
            (kept.folder / victim.replace("output", "streams.idx")).unlink(missing_ok=True)
        return opened(self, name)

    monkeypatch.setattr(reader._Folder, "open", vanishing)
    start = int(victim.split(".")[1])
    chunk = kept.reader.read_since(start, limit=8)
    assert gone > start
    assert (chunk.offset, chunk.gap_bytes) == (following, following - start)
    assert chunk.data == kept.content[following : following + 8]


def test_a_listing_that_missed_a_new_segment_is_no_gap(keep: Callable[..., Kept], monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is listed while files are made in it may show a later one without an earlier one."""
    kept = keep(head=64, tail=640)
    kept.write(1, lines(40))
    listed = reader._Folder.segments
    listings: list[list[tuple[int, str]]] = []

    def missing_one(self: reader._Folder) -> list[tuple[int, str]]:
        listings.append(listed(self))
        return [segment for place, segment in enumerate(listings[-1]) if place != 2 or len(listings) > 1]

    monkeypatch.setattr(reader._Folder, "segments", missing_one)
    assert kept.reader.read_since(0, limit=1000) == Chunk(0, lines(40), 320)
    assert len(listings) > 1


def test_a_stream_of_a_segment_removed_while_it_is_read_is_a_gap_and_never_the_other_stream(
    keep: Callable[..., Kept], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(head=0, tail=640)
    for number in range(40):
        kept.write(2 - number % 2, b"%07d\n" % number)
    start, victim = kept.reader._list()[1]
    following = kept.reader._list()[2][0]
    opened = cast("Callable[[object, str], int]", reader._Folder.open)

    def vanishing(self: object, name: str) -> int:
        descriptor = opened(self, name)
        if name == victim:  # after the reader opened it, as the writer does it: data, then index
            (kept.folder / victim).unlink()
            (kept.folder / victim.replace("output", "streams.idx")).unlink()
        return descriptor

    monkeypatch.setattr(reader._Folder, "open", vanishing)
    chunk = kept.reader.read_since(start, limit=1000, stream=1)
    assert (chunk.offset, chunk.gap_bytes) == (following, following - start)
    assert chunk.data == kept.of_stream(1, following, len(kept.content))


@pytest.mark.parametrize("tail", [1 << 20, 5_120], ids=["nothing goes", "the tail rotates"])
def test_a_reader_beside_the_writer_sees_every_byte_in_its_place(tmp_path: Path, tail: int) -> None:
    total = 60_000
    content = lines(total)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(tail), str(total)])
    following = SpoolReader(tmp_path, live=True)
    offset = seen = gaps = 0
    while offset < len(content):
        ended = writer.poll() is not None
        chunk = following.read_since(offset, limit=3000)
        assert chunk.offset == offset + chunk.gap_bytes
        assert chunk.data == content[chunk.offset : chunk.next_offset]
        gaps += chunk.gap_bytes
        seen += len(chunk.data)
        assert not (ended and chunk.next_offset == offset), "the writer is gone and the reader does not get to the end"
        offset = chunk.next_offset
    assert writer.wait() == 0
    assert seen + gaps == len(content)
    if tail > len(content):
        assert gaps == 0, "a gap was reported where everything is kept"


def test_threads_may_share_one_descriptor(keep: Callable[..., Kept]) -> None:
    kept = keep(head=0, tail=64_000)
    for number in range(1000):
        kept.write(1 + number % 2, b"%07d\n" % number)
    shared = SpoolReader(kept.descriptor)
    wrong: list[bytes] = []

    def read() -> None:
        for _ in range(40):
            chunk = shared.read_since(4000, limit=64)
            if chunk.data != kept.content[4000:4064] or chunk.gap_bytes:
                wrong.append(chunk.data)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    check_reading(kept, 8000)
