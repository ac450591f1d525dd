"""Of a journal that was torn, cut or altered exactly the good beginning is believed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.execution import EndedBy, Event, Forced, StopAsked, journal_body, journal_line, read_journal, sealed_line

from .strategies import START, events

journals = st.lists(events, max_size=5)


def lines_of(happened: list[Event]) -> list[bytes]:
    return [journal_line(number, event) for number, event in enumerate(happened)]


@pytest.mark.requirement("I2-journal")
@settings(deadline=None)
@given(happened=journals)
def test_a_whole_journal_is_read_back(happened: list[Event]) -> None:
    content = b"".join(lines_of(happened))
    journal = read_journal(content)
    assert journal.events == tuple(happened)
    assert (journal.next_number, journal.good_bytes, journal.damaged) == (len(happened), len(content), False)


@pytest.mark.requirement("I2-journal", "O-DU-03")
@settings(deadline=None)
@given(happened=journals.filter(bool), data=st.data())
def test_a_journal_cut_at_any_byte_keeps_exactly_its_whole_lines(happened: list[Event], data: st.DataObject) -> None:
    lines = lines_of(happened)
    content = b"".join(lines)
    at = data.draw(st.integers(0, len(content)))
    whole = content[:at].count(b"\n")
    journal = read_journal(content[:at])
    assert journal.events == tuple(happened[:whole])
    assert journal.good_bytes == sum(map(len, lines[:whole]))
    assert journal.damaged == (journal.good_bytes != at)


@pytest.mark.requirement("I2-journal", "O-DU-03")
def test_a_line_counts_with_its_newline_and_not_a_byte_sooner() -> None:
    lines = lines_of([StopAsked(at=START, ended_by=EndedBy.STOP, by="person"), Forced(at=START)])
    content = b"".join(lines)
    for at in range(len(content) + 1):
        whole = content[:at].count(b"\n")
        assert read_journal(content[:at]).good_bytes == sum(map(len, lines[:whole]))


@pytest.mark.requirement("I2-journal", "O-DU-03")
def test_a_line_is_believed_with_its_newline_and_not_a_byte_sooner() -> None:
    lines = lines_of([Forced(at=START), StopAsked(at=START, ended_by=EndedBy.STOP, by="person"), Forced(at=START)])
    content = b"".join(lines)
    for at in range(len(content) + 1):
        assert read_journal(content[:at]).next_number == content[:at].count(b"\n")


@pytest.mark.requirement("I2-journal", "O-DU-03")
@settings(deadline=None)
@given(happened=journals.filter(bool), data=st.data())
def test_a_journal_altered_at_any_byte_keeps_exactly_what_is_before_that_line(happened: list[Event], data: st.DataObject) -> None:
    lines = lines_of(happened)
    content = b"".join(lines)
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != content[at]))
    altered = content[:at] + bytes([byte]) + content[at + 1 :]
    whole = content[:at].count(b"\n")
    journal = read_journal(altered)
    assert journal.events == tuple(happened[:whole])
    assert (journal.next_number, journal.good_bytes, journal.damaged) == (whole, sum(map(len, lines[:whole])), True)


@pytest.mark.requirement("I2-journal")
@settings(deadline=None)
@given(happened=journals, garbage=st.binary(min_size=1, max_size=80))
def test_garbage_behind_a_journal_is_left(happened: list[Event], garbage: bytes) -> None:
    content = b"".join(lines_of(happened))
    journal = read_journal(content + garbage)
    assert journal.events == tuple(happened)
    assert (journal.good_bytes, journal.damaged) == (len(content), True)


@pytest.mark.requirement("I2-journal")
@given(content=st.binary(max_size=200))
def test_any_bytes_at_all_are_read_without_an_error(content: bytes) -> None:
    assert read_journal(content).good_bytes <= len(content)


@pytest.mark.requirement("I2-journal")
def test_a_line_that_is_missing_repeated_or_out_of_order_ends_what_is_believed() -> None:
    first, second, third = lines_of([Forced(at=START)] * 3)
    for content, good in ((first + third, 1), (first + first, 1), (second, 0), (first + second + first, 2)):
        assert len(read_journal(content).events) == good
        assert read_journal(content).damaged


@pytest.mark.requirement("I2-journal", "I2-golden-files")
def test_an_event_of_a_later_version_is_skipped_and_does_not_end_the_journal() -> None:
    later = sealed_line(json.dumps({"v": 1, "at_line": 1, "event": "teleported", "at": "2026-12-01T00:00:00Z"}).encode())
    journal = read_journal(journal_line(0, Forced(at=START)) + later + journal_line(2, Forced(at=START)))
    assert journal.events == (Forced(at=START), Forced(at=START))
    assert (journal.next_number, journal.damaged) == (3, False)


@pytest.mark.requirement("I2-journal")
@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        b"\xff\xfe",
        b'{"at_line":0,"event":"asked"}',
        b'{"at_line":0,"event":["asked"]}',
        b'{"at_line":0,"event":"asked","at":"yesterday","ended_by":"stop","by":"person"}',
        b'{"at_line":0,"event":"asked","at":1,"ended_by":"stop","by":"person"}',
        b'{"at_line":0,"event":"asked","at":"2026-12-01T00:00:00Z","ended_by":"boredom","by":"person"}',
        b'{"at_line":0,"event":"ended","at":"2026-12-01T00:00:00Z","tree":null,"output":{},"duration_s":1}',
    ],
)
def test_a_sealed_line_that_is_not_understood_ends_what_is_believed(body: bytes) -> None:
    journal = read_journal(sealed_line(body))
    assert (journal.events, journal.good_bytes, journal.damaged) == ((), 0, True)


def test_a_line_is_its_checksum_and_its_body() -> None:
    event = StopAsked(at=START, ended_by=EndedBy.STOP, by="person", reason="a\nb\u2028c")
    line = journal_line(7, event)
    assert line == sealed_line(journal_body(7, event))
    assert line.count(b"\n") == 1
    assert line.isascii()
