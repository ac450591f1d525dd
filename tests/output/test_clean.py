from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.output import LiveCleaner, clean

HOSTILE = "\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b[2J\x1b[31mred\x1b[0m \x1b]8;;http://e.invalid\x1b\\link\x1b]8;;\x1b\\ \x9b 5n\n"
FORBIDDEN = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
sequences = st.text(st.sampled_from("ab1;0 mK[]P^_X\\\n\r\b\t\x07\x1b\x9b\x9c\x9d\x90\x98\x9e\x9f\x00\x02é"), max_size=60)


@pytest.mark.requirement("O-OE-06")
def test_titles_clipboard_links_and_colours_are_stripped_and_the_text_stays() -> None:
    assert clean(HOSTILE) == "red link 5n\n"
    assert LiveCleaner().feed(HOSTILE) == "red link 5n\n"


@pytest.mark.requirement("O-OE-06")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b", "a"),
        ("a\x1b[", "a"),
        ("a\x1b[12;3", "a"),
        ("a\x1b]0;title", "a"),
        ("a\x1b]0;title\nb", "a\nb"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x90q#0\x1b\\b", "ab"),
        ("a\x1bPq\x1b\\b\x1b_x\x1b\\c\x1b^y\x9cd\x1bXz\x1b\\e", "abcde"),
        ("a\x1b(Bb\x1b7c\x1bcd", "abcd"),
        ("bell\x07 null\x00 del\x7f nel\x85", "bell null del nel"),
        ("\x1b[38;5;196mred\x1b[m", "red"),
    ],
)
def test_every_form_of_sequence_goes_also_a_cut_one(text: str, expected: str) -> None:
    assert clean(text) == expected
    assert LiveCleaner().feed(text) == expected


@pytest.mark.requirement("O-OE-07")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc\rX\n", "Xbc\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("one\r\r\n", "one\n"),
        ("50%\r100%\n", "100%\n"),
        ("long line\r\x1b[Kshort\n", "short\n"),
        ("long line\r\x1b[2Kshort\n", "short\n"),
        ("long line\x1b[2K\rshort\n", "short\n"),
        ("12345\b\b\x1b[Kx", "123x"),
        ("N\bNA\bA", "NA"),
        ("typo\b \b", "typ "),
        ("\b\b\bx", "x"),
        ("abc\r\b\bx", "xbc"),
        ("end\r", "end"),
        ("a\tb", "a\tb"),
    ],
)
def test_carriage_return_and_backspace_show_what_a_terminal_would(text: str, expected: str) -> None:
    assert clean(text) == expected


@pytest.mark.requirement("O-OE-07")
def test_a_progress_bar_shows_its_last_redraw_once() -> None:
    bar = "".join(f"\r{number:4d}/3000" for number in range(1, 3001)) + "\nok\n"
    assert clean(bar) == "3000/3000\nok\n"


@pytest.mark.requirement("O-OE-06")
@given(text=sequences)
def test_nothing_that_controls_a_terminal_is_left(text: str) -> None:
    assert not FORBIDDEN.search(clean(text))
    assert "\r" not in clean(text)
    assert "\b" not in clean(text)
    assert not FORBIDDEN.search(LiveCleaner().feed(text))


@pytest.mark.requirement("O-OE-06")
@given(text=sequences, cuts=st.lists(st.integers(0, 60), max_size=10))
def test_cutting_a_stream_anywhere_gives_what_the_whole_gives(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    live = LiveCleaner()
    assert "".join(live.feed(text[begin:end]) for begin, end in pairwise(places)) == LiveCleaner().feed(text)


@pytest.mark.parametrize(
    "unit",
    ["\x1b]", "\x9d", "\x1b[", "\x1b[1", "\x1b", "\x1b ", "x\r", "\x1b[2Kx", "\x1b[Kx", "x\b", "\x9d\x1b"],
    ids=ascii,
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    """A quadratic step takes far longer; the bound is far above what a busy machine needs."""
    for text in (unit * (160_000 // len(unit)), "y" * 80_000 + unit * (80_000 // len(unit))):
        begin = time.process_time()
        clean(text)
        live = LiveCleaner()
        for place in range(0, len(text), 4096):
            live.feed(text[place : place + 4096])
        assert time.process_time() - begin < 5


def test_an_endless_sequence_is_not_held_in_memory() -> None:
    live = LiveCleaner()
    live.feed("\x1b]52;c;")
    for _ in range(100):
        assert live.feed("A" * 1000) == ""
    assert len(live._pending) == 0
    assert live.feed("\x07seen") == "seen"
