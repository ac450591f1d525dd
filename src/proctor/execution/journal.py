"""The line format of ``journal.jsonl``: eight hex digits of CRC-32, a space, a JSON object with a running number, a newline.

A torn or altered line, and everything behind it, is not believed: ``read_journal`` returns the good beginning and says what it left.
"""

from __future__ import annotations

import json
from binascii import crc32
from typing import TYPE_CHECKING

from ..data import Data
from .events import decode_event, encode_event

if TYPE_CHECKING:
    from .events import Event

__all__ = ["JOURNAL_VERSION", "JournalContent", "journal_body", "journal_line", "read_journal", "sealed_line"]

JOURNAL_VERSION = 1
_CHECKSUM_DIGITS = 8
# What the parts of a line raise when it is not a line of this format; `RecursionError`: JSON nested beyond reason.
_NOT_UNDERSTOOD = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class JournalContent(Data, kw_only=False):
    """The believable beginning of a journal; ``next_number`` continues it, ``damaged`` says that bytes were left behind it."""

    events: tuple[Event, ...]
    next_number: int
    good_bytes: int
    damaged: bool


def journal_body(number: int, event: Event) -> bytes:
    """Return the JSON object of the ``number``-th event (from 0); it is also the notice that a keeper sends."""
    return json.dumps({"v": JOURNAL_VERSION, "at_line": number, **encode_event(event)}, separators=(",", ":")).encode()


def journal_line(number: int, event: Event) -> bytes:
    """Return the line of the ``number``-th event."""
    return sealed_line(journal_body(number, event))


def sealed_line(body: bytes) -> bytes:
    """Return the line that holds ``body``, with its checksum."""
    return b"%08x %s\n" % (crc32(body), body)


def read_journal(content: bytes) -> JournalContent:
    """Return the events of a journal up to its first line that is torn, altered, out of order or not understood."""
    events: list[Event] = []
    number = good_bytes = 0
    for line in content.splitlines(keepends=True):
        try:
            event = _read(line, number)
        except _NOT_UNDERSTOOD:
            break
        if event is not None:
            events.append(event)
        number += 1
        good_bytes += len(line)
    return JournalContent(tuple(events), number, good_bytes, damaged=good_bytes < len(content))


def _read(line: bytes, number: int) -> Event | None:
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or len(checksum) != _CHECKSUM_DIGITS or checksum != b"%08x" % crc32(body):
        raise ValueError(line)
    data = json.loads(body)
    if data["at_line"] != number:
        raise ValueError(number)
    return decode_event(data)
