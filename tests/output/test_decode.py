from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.errors import RequestError
from proctor.output import TextStream, decode

ENCODINGS = [None, "auto", "utf-8", "utf-16", "latin-1", "utf-7", "utf-8-sig", "utf-32", "gb18030", "iso2022_jp", "hz"]


@pytest.mark.requirement("O-OE-01")
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")), cuts=st.lists(st.integers(0, 400), max_size=20))
def test_streamed_text_is_the_text_wherever_it_is_cut(text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    stream = TextStream()
    deltas = [stream.feed(data[begin:end]) for begin, end in pairwise(places)]
    assert "".join(deltas) + stream.close() == text


@pytest.mark.requirement("O-OE-01")
def test_byte_by_byte_every_character_comes_whole_and_as_soon_as_it_is() -> None:
    stream = TextStream()
    assert [stream.feed(bytes([byte])) for byte in "≤€".encode()] == ["", "", "≤", "", "", "€"]


@pytest.mark.requirement("O-OE-01")
@pytest.mark.parametrize("cut", ["你".encode()[:1], "你".encode()[:2], "🎉".encode()[:3]])
def test_a_character_that_the_real_end_cut_becomes_one_replacement(cut: bytes) -> None:
    stream = TextStream()
    assert stream.feed(b"ok " + cut) + stream.close() == "ok \ufffd"
    decoded = decode(b"ok " + cut)
    assert (decoded.text, decoded.encoding, decoded.lossy) == ("ok \ufffd", "utf-8", True)


@pytest.mark.requirement("O-OE-02")
def test_a_stated_encoding_is_used() -> None:
    assert decode(b"status: ok\n\xd6\xd0\xce\xc4\n", encoding="gb18030").text == "status: ok\n中文\n"
    assert decode(b"\x93\xfa\x96\x7b", encoding="shift_jis").text == "日本"
    stream = TextStream(encoding="gb18030")
    assert stream.feed(b"\xd6") + stream.feed(b"\xd0") == "中"


@pytest.mark.requirement("O-OE-02")
def test_an_unknown_encoding_is_never_silently_replaced() -> None:
    decoded = decode(b"status: ok\n\xd6\xd0\xce\xc4\n")
    assert decoded.lossy
    assert not decoded.binary
    assert decoded.text.startswith("status: ok\n")


def test_long_text_in_a_legacy_encoding_is_recognised() -> None:
    text = "Привет, мир! Это проверка текста, и она длинная.\n" * 20
    decoded = decode(text.encode("cp1251"))
    assert decoded.text == text


@pytest.mark.parametrize("name", ["hex", "no-such", "rot13", "", "unicode_escape", "idna", "undefined"])
def test_an_encoding_that_does_not_exist_is_a_bad_request(name: str) -> None:
    with pytest.raises(RequestError):
        decode(b"x", encoding=name)
    with pytest.raises(RequestError):
        TextStream(encoding=name)


@pytest.mark.requirement("O-OE-08")
@settings(max_examples=300)
@given(data=st.binary(max_size=400), encoding=st.sampled_from(ENCODINGS))
def test_any_bytes_give_text_that_strict_readers_take(data: bytes, encoding: str | None) -> None:
    decoded = decode(data, encoding=encoding)
    assert "\0" not in decoded.text
    assert json.loads(json.dumps(decoded.text, ensure_ascii=False).encode()) == decoded.text
    stream = TextStream()
    live = stream.feed(data[:7]) + stream.feed(data[7:]) + stream.close()
    assert "\0" not in live
    live.encode()


@pytest.mark.requirement("O-OE-08")
def test_random_bytes_and_zeros_are_binary_and_a_few_nuls_are_not() -> None:
    assert decode(b"a\0b\n\xed\xa0\x80\n" + bytes(range(256))).binary
    assert decode(bytes(1000)).binary
    found = decode(b"one.txt\0two.txt\0")
    assert (found.text, found.binary, found.lossy) == ("one.txt␀two.txt␀", False, True)


@pytest.mark.requirement("O-OE-09")
@pytest.mark.parametrize("data", [b"\xff\xfeo\0k\0\n\0", b"o\0k\0\n\0"])
def test_utf16_is_text_with_and_without_its_mark(data: bytes) -> None:
    decoded = decode(data)
    assert (decoded.text, decoded.encoding, decoded.binary) == ("ok\n", "utf-16-le", False)


@pytest.mark.requirement("O-OE-09")
def test_utf16_split_in_a_code_unit_is_whole_in_the_stream() -> None:
    stream = TextStream()
    assert stream.feed(b"\xff\xfeo") + stream.feed(b"\0k\0\n\0") + stream.close() == "ok\n"


def test_a_mark_of_utf8_is_not_part_of_the_text_and_nothing_else_waits_for_one() -> None:
    stream = TextStream()
    assert [stream.feed(part) for part in (b"\xef", b"\xbb", b"\xbfx")] == ["", "", "x"]
    assert TextStream().feed(b"p") == "p"
    assert decode(b"\xef\xbb\xbfx").text == "x"


def test_one_damaged_byte_does_not_change_the_encoding_of_the_rest() -> None:
    decoded = decode("Größe: 你好\n".encode() * 5 + b"\xff\n")
    assert (decoded.encoding, decoded.lossy) == ("utf-8", True)
    assert decoded.text.count("\ufffd") == 1
