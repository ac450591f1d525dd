"""What of an output is shown: all of a short one, both ends of a long one around a notice of what is left out and how to read it.

Only the shown parts are read, so memory stays flat. An output of up to 51,200 bytes is shown whole; of a longer one the first and the last
2,000 characters, cut at character borders. One encoding is decided over all shown bytes; the text is decoded, then cleaned. Counts are of
raw bytes, and of an output that still grows they are those of the moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..data import Data
from . import wording
from .clean import clean
from .decode import Decoded, decode
from .segments import FIRST, SECOND

if TYPE_CHECKING:
    from .reader import SpoolReader

__all__ = ["BackgroundView", "View", "background_view", "view_of"]

WHOLE_BYTES = 51_200
END_CHARACTERS = 2_000
WINDOW_BYTES = END_CHARACTERS * 4  # the longest character has four bytes
BACKGROUND_BYTES = 8 << 10
LONGEST_CHARACTER = 4


class View(Data):
    """The view for a result: ``text`` in order of arrival, with split streams each of them too; ``None`` where the bytes are binary."""

    text: str | None
    stdout: str | None
    stderr: str | None
    encoding: str | None
    lossy: bool
    binary: bool


class BackgroundView(Data):
    """The newest output since an offset: ``text`` holds the notice about ``omitted_bytes``; ``next_offset`` continues."""

    text: str | None
    next_offset: int
    omitted_bytes: int
    binary: bool


class _Part(NamedTuple):
    """Raw bytes and how many were left out before them, of which ``lost`` are not kept."""

    data: bytes
    omitted: int = 0
    lost: int = 0
    offset: int = 0


def view_of(reader: SpoolReader, *, split: bool, ref: str, encoding: str | None = None) -> View:
    """Return the view of an output; ``ref`` is what ``proctor logs`` takes."""
    both = _shown(_parts(reader, None, encoding), ref, encoding)
    if not split:
        return _view(both, None, None)
    chosen = encoding or (both.decoded.encoding if not both.decoded.binary else None)
    stderr = _shown(_parts(reader, SECOND, chosen), ref, chosen)
    if not stderr.empty:
        stdout = _shown(_parts(reader, FIRST, chosen), ref, chosen)
        return _view(both, stdout.text, stderr.text)
    return _view(both, both.text, "")


def background_view(reader: SpoolReader, *, ref: str, since: int = 0, encoding: str | None = None) -> BackgroundView:
    """Return the last 8 KiB of what was written since an offset."""
    end = reader.total_bytes()
    begin = min(max(since, 0), end)
    chunk = reader.read_since(max(begin, end - BACKGROUND_BYTES), limit=BACKGROUND_BYTES)
    data = chunk.data
    if chunk.offset > begin:
        data = data[_border(data, chunk.offset, encoding or "utf-8") :]
    omitted = chunk.next_offset - begin - len(data)
    lost = omitted - _kept_between(reader, begin, chunk.next_offset - len(data))
    shown = _shown([_Part(data, omitted, lost, begin)], ref, encoding)
    return BackgroundView(text=shown.text, next_offset=chunk.next_offset, omitted_bytes=omitted, binary=shown.decoded.binary)


class _Shown(NamedTuple):
    text: str | None
    decoded: Decoded
    empty: bool


def _view(both: _Shown, stdout: str | None, stderr: str | None) -> View:
    decoded = both.decoded
    return View(text=both.text, stdout=stdout, stderr=stderr, encoding=decoded.encoding, lossy=decoded.lossy, binary=decoded.binary)


def _shown(parts: list[_Part], ref: str, encoding: str | None) -> _Shown:
    """Decode all parts as one, so that the encoding is decided once, and put the notices between them."""
    decoded = decode(b"".join([part.data for part in parts]), encoding=encoding)
    empty = not any(part.data or part.omitted for part in parts)
    if decoded.binary:
        return _Shown(None, decoded, empty)
    if len(parts) == 1 and not parts[0].omitted:
        return _Shown(clean(decoded.text), decoded, empty)
    pieces: list[str] = []
    for part in parts:
        text = clean(decode(part.data, encoding=decoded.encoding).text)
        if part.omitted:
            notice = wording.bytes_omitted(part.omitted, f"proctor logs {ref} --since {part.offset}", lost=part.lost)
            pieces.append("\n" if pieces and not pieces[-1].endswith("\n") else "")
            pieces.append(notice + "\n")
        pieces.append(text)
    return _Shown("".join(pieces), decoded, empty)


def _parts(reader: SpoolReader, stream: int | None, encoding: str | None) -> list[_Part]:
    first = reader.read_since(0, limit=WHOLE_BYTES + 1, stream=stream)
    total = reader.total_bytes() if stream is None else reader.stream_bytes(stream)
    if len(first.data) == total and not first.gap_bytes:
        return [_Part(first.data)] if total <= WHOLE_BYTES else _ends(reader, stream, first.data, total, encoding)
    if total <= WHOLE_BYTES:
        return _with_gaps(reader, stream, total)
    return _ends(reader, stream, b"" if first.gap_bytes else first.data, total, encoding)


def _with_gaps(reader: SpoolReader, stream: int | None, total: int) -> list[_Part]:
    """Show a short output of which parts are not kept: every gap where it is, one of a chosen stream only by its amount."""
    chunks = list(reader.iterate(stream=stream))
    kept = sum(len(chunk.data) for chunk in chunks)
    if stream is not None:
        lost = total - kept
        return [_Part(b"".join([chunk.data for chunk in chunks])), _Part(b"", lost, lost)]
    parts = [_Part(chunk.data, chunk.gap_bytes, chunk.gap_bytes, chunk.offset) for chunk in chunks]
    missing = total - chunks[-1].next_offset if chunks else total
    return [*parts, _Part(b"", missing, missing)] if missing > 0 else parts


def _ends(reader: SpoolReader, stream: int | None, beginning: bytes, total: int, encoding: str | None) -> list[_Part]:
    window = reader.tail(WINDOW_BYTES, stream=stream).data
    name = _deciding(beginning[:WINDOW_BYTES], window, encoding)
    head = _first_characters(beginning[:WINDOW_BYTES], name)
    tail = _last_characters(window, total - len(window), name)
    omitted = max(0, total - len(head) - len(tail))
    lost = 0
    if stream is None:
        lost = omitted - _kept_between(reader, len(head), total - len(tail))
    return [_Part(head), _Part(tail, omitted, max(0, lost), len(head) if stream is None else 0)]


def _deciding(beginning: bytes, ending: bytes, encoding: str | None) -> str:
    return decode(beginning + ending, encoding=encoding).encoding or "utf-8"


def _first_characters(data: bytes, name: str) -> bytes:
    for cut in range(LONGEST_CHARACTER):
        text = _text(data[: len(data) - cut], name)
        if text is not None:
            return data[: min(len(data), len(text[:END_CHARACTERS].encode(name, "replace")))]
    return data[: END_CHARACTERS + _border(data[END_CHARACTERS:], END_CHARACTERS, name)]


def _last_characters(data: bytes, offset: int, name: str) -> bytes:
    data = data[_border(data, offset, name) :]
    text = _text(data, name)
    if text is None:
        start = max(0, len(data) - END_CHARACTERS)
        return data[start + _border(data[start:], start, name) :]
    return data[max(0, len(data) - len(text[-END_CHARACTERS:].encode(name, "replace"))) :]


def _border(data: bytes, offset: int, name: str) -> int:
    """Return how many bytes at the start of ``data`` belong to a character that began before it."""
    if name.startswith("utf-16"):
        return offset & 1
    if name.startswith("utf-32"):
        return -offset % LONGEST_CHARACTER
    if name == "utf-8":  # also where other bytes are damaged
        return next((place for place in range(min(len(data), LONGEST_CHARACTER)) if data[place] & 0xC0 != 0x80), 0)  # noqa: PLR2004 - 10xxxxxx continues
    return next((cut for cut in range(LONGEST_CHARACTER) if _text(data[cut:], name) is not None), 0)


def _text(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except UnicodeError:
        return None


def _kept_between(reader: SpoolReader, begin: int, end: int) -> int:
    return sum(max(0, min(part.end, end) - max(part.start, begin)) for part in reader.kept())
