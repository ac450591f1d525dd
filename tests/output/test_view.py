from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from proctor.output import background_view, view_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .keeping import Kept

NOTICE = re.compile(r"\[(\d+) bytes omitted, read them with proctor logs REF --since (\d+)\]\n")


def show(kept: Kept, *, split: bool = True, encoding: str | None = None) -> str:
    text = view_of(kept.reader, split=split, ref="REF", encoding=encoding).text
    assert text is not None
    return text


def test_a_short_output_is_shown_whole_and_by_stream(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1 << 20)
    kept.write(1, b"out\r\n")
    kept.write(2, b"\x1b[31merr\x1b[0m\n")
    kept.write(1, b"out again\n")
    view = view_of(kept.reader, split=True, ref="REF")
    assert (view.text, view.stdout, view.stderr) == ("out\nerr\nout again\n", "out\nout again\n", "err\n")
    assert (view.encoding, view.lossy, view.binary) == ("utf-8", False, False)


def test_streams_are_given_only_where_they_were_split(keep: Callable[..., Kept]) -> None:
    kept = keep(split=False)
    kept.write(1, b"all")
    view = view_of(kept.reader, split=False, ref="REF")
    assert (view.text, view.stdout, view.stderr) == ("all", None, None)
    only_out = view_of(kept.reader, split=True, ref="REF")
    assert (only_out.stdout, only_out.stderr) == ("all", "")


def test_no_output_is_empty_text(keep: Callable[..., Kept]) -> None:
    kept = keep()
    kept.spool.close()
    view = view_of(kept.reader, split=True, ref="REF")
    assert (view.text, view.stdout, view.stderr, view.binary) == ("", "", "", False)


@pytest.mark.requirement("O-OE-05")
def test_of_a_long_output_both_ends_and_the_exact_number_of_omitted_bytes_are_shown(keep: Callable[..., Kept]) -> None:
    kept = keep(head=8 << 20)
    kept.write(1, b"".join(b"%d\n" % number for number in range(1, 200_001)))
    kept.write(2, b"FATAL: pool exhausted\n")
    view = view_of(kept.reader, split=True, ref="REF")
    text = view.text or ""
    notice = NOTICE.search(text)
    assert notice is not None
    head, tail = text[: notice.start()], text[notice.end() :]
    assert (head, tail) == (kept.content[:2000].decode(), kept.content[-2000:].decode())
    assert int(notice[1]) == len(kept.content) - 4000
    assert kept.reader.read_since(int(notice[2]), limit=8).data == kept.content[2000:2008]
    assert tail.endswith("200000\nFATAL: pool exhausted\n")
    assert view.stderr == "FATAL: pool exhausted\n"
    assert (view.stdout or "").endswith("200000\n")


@pytest.mark.requirement("O-OE-01")
@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16-le"])
def test_ends_are_cut_at_characters(keep: Callable[..., Kept], shift: int, encoding: str) -> None:
    kept = keep(head=8 << 20)
    text = "x" * shift + "你" * 60_000 + "🎉" + "y" * shift
    kept.write(1, text.encode(encoding))
    shown = show(kept, encoding=None if encoding == "utf-8" else encoding)
    notice = NOTICE.search(shown)
    assert notice is not None
    head, tail = shown[: notice.start() - 1], shown[notice.end() :]
    assert (head, tail) == (text[:2000], text[-2000:])
    assert int(notice[1]) == len(kept.content) - len((head + tail).encode(encoding))


@pytest.mark.requirement("O-OE-03")
def test_one_endless_line_is_shown_by_its_ends_and_what_is_not_kept_is_said(keep: Callable[..., Kept]) -> None:
    kept = keep(head=10_000, tail=20_000, split=False)
    for _ in range(100):
        kept.write(1, b"x" * 1000)
    kept.write(1, b"end\n")
    shown = show(kept, split=False)
    lost = kept.spool.counts().dropped_bytes
    assert lost > 0
    assert f"[96004 bytes omitted, {lost} of them no longer kept, read the rest with proctor logs REF --since 2000]" in shown
    assert shown.endswith("xend\n")


def test_gaps_in_a_short_output_are_shown_where_they_are(keep: Callable[..., Kept]) -> None:
    kept = keep(head=64, tail=128, split=False)
    kept.write(1, b"%07d\n" * 50 % tuple(range(50)))
    shown = show(kept, split=False)
    lost = kept.spool.counts().dropped_bytes
    assert shown.startswith("0000000\n")
    assert f"0000007\n[{lost} bytes omitted, they are no longer kept]\n" in shown
    assert shown.endswith("0000049\n")


def test_binary_output_has_no_text(keep: Callable[..., Kept]) -> None:
    kept = keep(head=1 << 20)
    kept.write(1, bytes(range(256)) * 300)
    kept.write(2, b"warning: binary\n")
    view = view_of(kept.reader, split=True, ref="REF")
    assert (view.text, view.stdout, view.stderr, view.binary) == (None, None, "warning: binary\n", True)


def test_the_background_view_is_the_end_since_an_offset(keep: Callable[..., Kept]) -> None:
    kept = keep(head=8 << 20)
    kept.write(1, "你".encode() * 10_000)
    view = background_view(kept.reader, ref="REF")
    assert view.next_offset == 30_000
    shown = 8 * 1024 // 3 * 3
    assert view.text == f"[{30_000 - shown} bytes omitted, read them with proctor logs REF --since 0]\n" + "你" * (shown // 3)
    assert view.omitted_bytes == 30_000 - shown
    kept.write(1, b"more\n")
    again = background_view(kept.reader, ref="REF", since=view.next_offset)
    assert (again.text, again.omitted_bytes, again.next_offset) == ("more\n", 0, 30_005)
    assert background_view(kept.reader, ref="REF", since=again.next_offset).text == ""


@pytest.mark.parametrize("shift", range(3))
def test_damage_and_a_cut_end_do_not_shift_characters_at_the_cuts(keep: Callable[..., Kept], shift: int) -> None:
    damaged = keep(head=8 << 20)
    damaged.write(1, b"x" * shift + b"\xff" + "你".encode() * 60_000 + b"\xff" + b"y" * shift)
    assert show(damaged).count("\ufffd") == 2
    cut = keep(head=8 << 20)
    cut.write(1, b"\xff\xfe" + "x".encode("utf-16-le") * shift + ("你" * 60_000).encode("utf-16-le") + b"\x60")
    shown = show(cut)
    assert set(shown[shown.index("since") :]) <= set("since 0123456789]\n你\ufffd")
    assert shown.endswith("你\ufffd")
