"""Output beyond any buffer: memory stays flat, offsets are exact, the disk is bounded, the tail is there, the ending is true."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from proctor import Status

if TYPE_CHECKING:
    from pathlib import Path

    from proctor import Record, SyncExecution, SyncProctor

MIB = 1 << 20
KEPT_LIMIT = 64 * MIB
DISK_LIMIT = KEPT_LIMIT + 2 * MIB  # and one segment that is being written
GROWTH_LIMIT = 30 * MIB
LINE = b"0123456789abcde\n"
WRITTEN_LIMIT_S = 120.0
LOOK_AGAIN_S = 0.01


def pattern(start: int, length: int) -> bytes:
    """Return what ``yes`` wrote at an offset."""
    turned = LINE[start % 16 :] + LINE[: start % 16]
    return (turned * (length // 16 + 1))[:length]


def peak_of(pid: int | str) -> int:
    """Return the most memory that a process has had, in bytes."""
    with open(f"/proc/{pid}/status") as file:
        (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", file.read())
    return int(kilobytes) * 1024


def forget_own_peak() -> None:
    """Have the peak of this process begin anew (proc_pid_clear_refs(5))."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def disk_use_of(folder: str) -> int:
    """Return how much of the disk a folder's files take."""
    return sum(entry.stat().st_blocks * 512 for entry in os.scandir(folder))


def await_bytes(execution: SyncExecution, total: int) -> None:
    until = time.monotonic() + WRITTEN_LIMIT_S
    while not execution.read_since(total - 1, limit=1).data:
        assert time.monotonic() < until
        select.select((), (), (), LOOK_AGAIN_S)


def assert_counts(record: Record, total: int) -> None:
    output = record.output
    assert (output.bytes, output.kept_bytes + output.dropped_bytes, output.incomplete) == (total, total, None)
    assert output.kept_bytes <= KEPT_LIMIT + MIB
    assert output.kept_bytes >= min(total, KEPT_LIMIT - 2 * MIB)


def show_that_all_is_bounded_and_exact(host: SyncProctor, home: str, amount: int) -> None:
    ending = b"\nthe end\n"
    total = amount + len(ending)
    text = f"yes 0123456789abcde | head -c {amount}; printf '\\nthe end\\n'; read -r _; exit 9"
    with host.start(["sh", "-c", text], stdin="pipe", streams="merged") as execution:
        keeper = execution.record.keeper_pid
        assert keeper is not None
        before = peak_of(keeper)
        forget_own_peak()
        own_before = peak_of("self")
        await_bytes(execution, total)
        assert peak_of(keeper) - before < GROWTH_LIMIT
        assert disk_use_of(os.path.join(home, "runs", execution.id)) < DISK_LIMIT
        execution.write(b"\n")
        record = execution.wait(timeout=20)
        assert (record.status, record.exit_code) == (Status.EXITED, 9)
        assert_counts(record, total)
        assert record.output.text is not None
        assert record.output.text.startswith(pattern(0, 1600).decode())
        assert record.output.text.endswith("\nthe end\n")
        assert len(record.output.text) < 50_000
        for offset in (0, 777, 7 * MIB + 3, total - 20 * MIB, total - MIB):
            assert execution.read_since(offset, limit=5000).data == pattern(offset, 5000)
        assert execution.read_since(total - 9, limit=100).data == ending
        gap = execution.read_since(9 * MIB, limit=100)
        if record.output.dropped_bytes:
            assert gap.gap_bytes > 0
            assert gap.offset == 9 * MIB + gap.gap_bytes
            assert gap.data == pattern(gap.offset, 100)
        assert peak_of("self") - own_before < GROWTH_LIMIT


@pytest.mark.requirement("I2-huge-output", "O-BG-03")
@pytest.mark.parametrize("amount", [20 * MIB, 150 * MIB], ids=["all kept", "middle dropped"])
def test_many_megabytes_are_counted_exactly_kept_within_bounds_and_readable_at_their_offsets(
    amount: int, host: SyncProctor, home: str
) -> None:
    show_that_all_is_bounded_and_exact(host, home, amount)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-huge-output", "O-BG-03")
def test_two_gigabytes_are_counted_exactly_kept_within_bounds_and_readable_at_their_offsets(host: SyncProctor, home: str) -> None:
    show_that_all_is_bounded_and_exact(host, home, 2 << 30)


def show_that_a_long_line_does_no_harm(host: SyncProctor, amount: int) -> None:
    forget_own_peak()
    before = peak_of("self")
    record = host.run(["sh", "-c", f"head -c {amount} /dev/zero | tr '\\0' x; printf 'the end'"], streams="merged", timeout=200)
    assert (record.status, record.exit_code) == (Status.EXITED, 0)
    assert_counts(record, amount + 7)
    assert record.output.text is not None
    assert record.output.text.startswith("x" * 1000)
    assert record.output.text.endswith("xxxthe end")
    assert len(record.output.text) < 50_000
    assert peak_of("self") - before < GROWTH_LIMIT


@pytest.mark.requirement("I2-long-line", "O-OE-03", "O-OE-04")
def test_one_line_of_a_hundred_megabytes_does_no_harm(host: SyncProctor) -> None:
    show_that_a_long_line_does_no_harm(host, 100 * MIB)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.requirement("I2-long-line", "O-OE-03", "O-OE-04")
def test_one_line_of_a_gigabyte_does_no_harm(host: SyncProctor) -> None:
    show_that_a_long_line_does_no_harm(host, 1 << 30)


@pytest.mark.requirement("I2-random-bytes", "O-OE-08")
def test_random_bytes_are_kept_bit_for_bit_and_are_no_text(host: SyncProctor, work: Path) -> None:
    with host.start(["sh", "-c", "head -c 3000000 /dev/urandom | tee copy"]) as execution:
        record = execution.wait(timeout=20)
        kept = b""
        while chunk := execution.read_since(len(kept), limit=65_537).data:
            kept += chunk
    assert kept == (work / "copy").read_bytes()
    assert record.output.bytes == record.output.kept_bytes == 3_000_000
    assert (record.output.binary, record.output.text) == (True, None)


@pytest.mark.requirement("I2-closed-stdout")
@pytest.mark.parametrize("streams", ["split", "merged"])
def test_a_command_that_closes_its_output_and_works_on_is_waited_for(streams: str, host: SyncProctor, work: Path) -> None:
    text = "echo early; exec >&- 2>&-; read -r _; echo worked > done; exit 5"
    with host.start(["sh", "-c", text], stdin="pipe", streams=streams) as execution:
        await_bytes(execution, len("early\n"))
        with pytest.raises(Exception, match="still runs"):
            execution.wait(timeout=0.5)
        assert not (work / "done").exists()
        execution.write(b"\n")
        record = execution.wait(timeout=10)
    assert (work / "done").exists()
    assert (record.status, record.exit_code, record.output.text) == (Status.EXITED, 5, "early\n")


@pytest.mark.requirement("I2-chatty-leftover")
def test_a_stranger_that_writes_into_the_output_for_ever_does_not_hold_up_the_ending(host: SyncProctor) -> None:
    with (
        host.start(["sh", "-c", "read -r _; echo mine"], stdin="pipe", streams="merged") as execution,
        open(f"/proc/{execution.record.pid}/fd/1", "wb") as output,
        subprocess.Popen(["yes"], stdout=output) as stranger,
    ):
        await_bytes(execution, MIB)
        execution.write(b"\n")
        record = execution.wait(timeout=10)
        stranger.wait(10)  # whoever writes to a reader that went away gets SIGPIPE
    assert (record.status, record.exit_code) == (Status.EXITED, 0)
    assert record.tree is not None
    assert record.tree.proved
