"""The line format of ``journal.jsonl``: eight hex digits of CRC-32, a space, a JSON object with a running number, a newline.

A torn or altered line, and everything behind it, is not believed: ``read_journal`` returns the good beginning and says what it left.
"""

from __future__ import annotations

import json
from binascii import crc32
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .events import decode_event, encode_event

if TYPE_CHECKING:
    from .events import Event

__all__ = ["JOURNAL_VERSION", "JournalContent", "journal_body", "journal_line", "read_journal", "sealed_line"]

JOURNAL_VERSION = 1
_CHECKSUM_DIGITS = 8


@dataclass(frozen=True, slots=True)
class JournalContent:
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
        data = _checked(line)
        if data is None or data.get("at_line") != number:
            break
        event = _decoded(data)
        if event is not None:
            events.append(event)
        number += 1
        good_bytes += len(line)
    return JournalContent(tuple(events), number, good_bytes, damaged=good_bytes < len(content))


def _checked(line: bytes) -> dict[str, object] | None:
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or len(checksum) != _CHECKSUM_DIGITS or checksum != b"%08x" % crc32(body):
        return None
    data = json.loads(body)
    return data if isinstance(data, dict) else None


def _decoded(data: dict[str, object]) -> Event | None:
    return decode_event(data)
