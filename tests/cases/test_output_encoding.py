"""Faults of the kind "what the caller reads is not what the command wrote": the whole way from a real command to its record."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from proctor import Status
from proctor.execution import record_to_json

if TYPE_CHECKING:
    from pathlib import Path

    from proctor import Record, SyncProctor


def _raw(host: SyncProctor, record: Record) -> bytes:
    with host.attach(record.id) as execution:
        data, offset = b"", 0
        while (chunk := execution.read_since(offset)).data:
            assert chunk.offset == offset, "nothing may be missing"
            data, offset = data + chunk.data, chunk.next_offset
        return data


@pytest.mark.requirement("O-OE-01")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_characters_that_arrive_byte_by_byte_are_whole(stream: str, host: SyncProctor, work: Path) -> None:
    text = "≤€你🎉\n"
    (work / "slow.py").write_text(
        f"import sys, time\nfor x in {text.encode()!r}:\n sys.{stream}.buffer.write(bytes([x])); sys.{stream}.flush(); time.sleep(.01)\n"
    )
    record = host.run("python3 slow.py")
    assert getattr(record.output, stream) == text
    assert (record.output.encoding, record.output.lossy) == ("utf-8", False)


@pytest.mark.requirement("O-OE-01")
def test_no_read_boundary_cuts_a_character(host: SyncProctor) -> None:
    record = host.run("""python3 -c 'print("你" * 50000, end="")'""")
    assert _raw(host, record).decode() == "你" * 50_000
    assert "\ufffd" not in (record.output.text or "")


@pytest.mark.requirement("O-OE-01")
def test_a_character_cut_by_the_real_end_is_one_replacement(host: SyncProctor) -> None:
    record = host.run(r"printf 'caf\303\251 \342\202'")
    assert record.output.text == "café \ufffd"
    assert record.output.lossy is True


@pytest.mark.requirement("O-OE-02")
@pytest.mark.parametrize(
    ("written", "encoding", "expected"),
    [
        (r"printf 'status: ok\n'; sleep 0.1; printf '\326\320\316\304\n'", "gb18030", "status: ok\n中文\n"),
        (r"printf '\223\372\226\173'", "shift_jis", "日本"),
    ],
)
def test_a_stated_encoding_is_used_and_auto_never_lies(written: str, encoding: str, expected: str, host: SyncProctor) -> None:
    stated = host.run(written, encoding=encoding)
    assert (stated.output.stdout, stated.output.lossy) == (expected, False)
    auto = host.run(written)
    assert _raw(host, auto) == expected.encode(encoding)
    if auto.output.text != expected:
        assert auto.output.lossy is True or auto.output.encoding not in {None, "utf-8"}


@pytest.mark.requirement("O-OE-03", "I2-long-line")
def test_one_huge_line_costs_no_memory(host: SyncProctor) -> None:
    before = _rss()
    record = host.run(r"head -c 100000000 /dev/zero | tr '\0' x; echo >&2 end", timeout=50)
    assert (record.exit_code, record.output.stderr) == (0, "end\n")
    assert record.output.bytes == 100_000_000 + 4
    assert len(record.output.text or "") < 64 << 10
    assert _rss() - before < 30 << 20


def _rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.requirement("O-OE-04")
def test_a_line_of_200_kilobytes_is_delivered(host: SyncProctor) -> None:
    record = host.run("""python3 -c "print('k'*200000); print('z')" """)
    assert record.exit_code == 0
    assert _raw(host, record) == b"k" * 200_000 + b"\nz\n"


@pytest.mark.requirement("O-OE-05")
def test_a_shortened_view_has_both_ends_the_count_and_the_way_to_the_rest(host: SyncProctor) -> None:
    record = host.run("seq 1 200000; echo 'FATAL: pool exhausted' >&2; exit 7", streams="merged")
    text = record.output.text or ""
    assert record.exit_code == 7
    assert text.startswith("1\n2\n3\n")
    assert text.endswith("FATAL: pool exhausted\n")
    assert record.id in text
    raw = _raw(host, record)
    head, _, rest = text.partition("[")
    omitted = int(rest.split(" ")[0].replace(",", ""))
    tail = rest.partition("]")[2]
    assert len(head.rstrip("\n")) + omitted + len(tail.lstrip("\n")) == pytest.approx(len(raw), abs=3)


@pytest.mark.requirement("O-OE-06")
def test_no_control_sequence_reaches_the_text_and_the_raw_bytes_stay(host: SyncProctor) -> None:
    title, clipboard, link = r"\033]0;owned\007", r"\033]52;c;cm0gLXJm\007", r"\033]8;;http://e.invalid\033\\link\033]8;;\033\\"
    written = rf"printf '{title}{clipboard}\033[2J\033[31mred\033[0m {link} \302\233 5n\n'"
    record = host.run(written)
    text = record.output.stdout or ""
    assert text.startswith("red link ")
    assert not any((ord(char) < 32 and char not in "\n\t") or 0x7F <= ord(char) <= 0x9F for char in text)
    assert _raw(host, record).startswith(b"\x1b]0;owned\x07\x1b]52;")


@pytest.mark.requirement("O-OE-07")
def test_redrawn_lines_are_shown_once(host: SyncProctor) -> None:
    record = host.run(r"for i in $(seq 1 3000); do printf '\r%4d/3000' $i; done; printf '\nok\n'")
    assert record.output.stdout == "3000/3000\nok\n"
    assert _raw(host, record).count(b"\r") == 3000
    assert host.run(r"printf 'abc\rX\n'").output.stdout == "Xbc\n"


@pytest.mark.requirement("O-OE-08", "I2-random-bytes")
def test_whatever_the_bytes_the_record_is_strict_json(host: SyncProctor, work: Path) -> None:
    record = host.run(r"printf 'a\000b\n'; printf '\355\240\200\n'; head -c 300 /dev/urandom | tee bytes")
    encoded = json.dumps(record_to_json(record)).encode()
    loaded = json.loads(encoded.decode("utf-8", "strict"))
    for text in (loaded["output"]["text"], loaded["output"]["stdout"]):
        if text is not None:
            text.encode("utf-8", "strict")  # a lone surrogate would refuse
            assert "\0" not in text
    assert len(_raw(host, record)) == 4 + 4 + 300
    assert _raw(host, record)[8:] == (work / "bytes").read_bytes()


@pytest.mark.requirement("O-OE-09")
@pytest.mark.parametrize(
    "written",
    [r"printf '\377\376o\000k\000\n\000'", r"printf '\377\376o'; sleep .1; printf '\000k\000\n\000'"],
    ids=["whole", "split in a unit"],
)
def test_utf_16_is_read_as_text(written: str, host: SyncProctor) -> None:
    record = host.run(written)
    assert record.output.stdout == "ok\n"
    assert (record.output.encoding or "").startswith("utf-16")


@pytest.mark.requirement("I2-closed-stdout")
def test_a_command_that_closes_its_output_and_works_on_is_waited_for(host: SyncProctor, work: Path) -> None:
    began = time.monotonic()
    record = host.run("echo before; exec >&- 2>&-; sleep 0.7; touch done; exit 4")
    assert time.monotonic() - began >= 0.7
    assert (record.status, record.exit_code, record.output.stdout) == (Status.EXITED, 4, "before\n")
    assert (work / "done").exists()
