"""Lines in any number of pieces, and nonsense that is called nonsense."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.keeper import PROTOCOL, LineBuffer, ProtocolError, line_of
from proctor.keeper.protocol import LINE_LIMIT

_TEXT = st.text(max_size=20)
_MESSAGES = st.lists(
    st.dictionaries(_TEXT.filter(lambda name: name != "v"), _TEXT | st.integers() | st.lists(_TEXT, max_size=3), max_size=4), max_size=4
)


@pytest.mark.requirement("I2-control")
@settings(max_examples=50, deadline=None)  # a busy machine is no finding
@given(messages=_MESSAGES, data=st.data())
def test_messages_are_the_same_however_their_bytes_are_cut(messages: list[dict[str, object]], data: st.DataObject) -> None:
    stream = b"".join(map(line_of, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    buffer = LineBuffer()
    heard = [message for start, end in pairwise([0, *cuts, len(stream)]) for message in buffer.feed(stream[start:end])]
    assert heard == [{"v": PROTOCOL, **message} for message in messages]


@pytest.mark.requirement("I2-control")
@pytest.mark.parametrize("line", [b"nonsense\n", b"[1]\n", b"1\n", b"null\n", b"{\n", b"\xff\xfe\n", b'{"a": "\xff"}\n'])
def test_a_line_that_is_no_object_is_a_fault(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        LineBuffer().feed(line)


@pytest.mark.requirement("I2-control")
def test_a_line_without_end_is_a_fault_as_soon_as_it_is_too_long() -> None:
    buffer = LineBuffer()
    piece = b"x" * 65_536
    for _ in range(LINE_LIMIT // len(piece)):
        assert buffer.feed(piece) == []
    with pytest.raises(ProtocolError):
        buffer.feed(piece)


@pytest.mark.requirement("I2-control")
def test_empty_lines_are_nothing_and_newlines_inside_are_escaped() -> None:
    assert LineBuffer().feed(b"\n\n") == []
    line = line_of({"text": "a\nb"})
    assert line.count(b"\n") == 1
    assert json.loads(line)["text"] == "a\nb"
