"""Bytes of a command to text, as late as possible: the bytes stay as they were, the text is always valid Unicode without NUL or surrogates.

``decode`` sees all the bytes that are to be shown and decides once: a stated encoding, else a byte order mark, UTF-8, UTF-16 by its
NULs, then detection. A guess, and whatever had to be replaced, is ``lossy``. ``TextStream`` decodes live output piece by piece as UTF-8
(or by its mark) and never cuts a character; one that the real end cut becomes a single U+FFFD.
"""

from __future__ import annotations

import codecs

from ..data import Data
from ..errors import ErrorCode, RequestError

__all__ = ["Decoded", "TextStream", "decode"]

NUL_SIGN = "\u2400"  # what a NUL is shown as
SURE = 0.95  # confidence from which a detected encoding is no longer called a guess
LIKELY = 0.1  # short texts are recognised well and get little confidence; below SURE they are marked lossy anyway
FEW_CONTROLS = 8
CONTROL_SHARE = 0.1
UTF16_SHARE = 0.6

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NOTATIONS = frozenset({"unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined"})  # of Python and DNS, not of programs
# Control bytes that text does not have; BEL, BS, TAB, LF, VT, FF, CR and ESC do occur in it.
_CONTROLS = bytes([*range(7), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


class Decoded(Data, kw_only=False):
    """Text and how it came about; ``lossy``: it may differ from what was written; ``binary``: there is no text, ``text`` is empty."""

    text: str
    encoding: str | None
    lossy: bool = False
    binary: bool = False


def decode(data: bytes, *, encoding: str | None = None) -> Decoded:
    """Return the text of ``data``; raises ``RequestError`` for a stated encoding that does not exist."""
    if encoding is not None and encoding != "auto":
        return _replaced(data, _known(encoding))
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _replaced(data[len(mark) :], name)
    if b"\0" not in data:
        return _without_nul(data)
    utf16 = _utf16_without_mark(data)
    if utf16 is not None:
        return _replaced(data, utf16)
    text = _strict(data, "utf-8")
    if text is None or _is_binary(data):
        return Decoded("", None, binary=True)
    return _valid(text, "utf-8", lossy=True)


def _without_nul(data: bytes) -> Decoded:
    text = _strict(data, "utf-8")
    if text is not None and not _is_binary(data):
        return Decoded(text, "utf-8")
    if _is_binary(data):
        return Decoded("", None, binary=True)
    replaced = data.decode("utf-8", "replace")
    bad = replaced.count("\ufffd")
    # Characters of several bytes that are whole do not come by chance: then the rest is damage, not another encoding.
    whole = len(data) - bad - len(data.decode("ascii", "ignore"))
    if whole >= bad or _cut_at_the_end(data):
        return Decoded(replaced, "utf-8", lossy=True)
    return _detected(data) or Decoded(replaced, "utf-8", lossy=True)


def _cut_at_the_end(data: bytes) -> bool:
    return any(_strict(data[:-cut], "utf-8") is not None for cut in range(1, min(4, len(data)))) and data[-1:] >= b"\x80"


def _detected(data: bytes) -> Decoded | None:
    import chardet

    found = chardet.detect(data)
    name, confidence = found.get("encoding"), found.get("confidence") or 0.0
    if not name or confidence < LIKELY:
        return None
    text = _strict(data, name)
    return None if text is None else _valid(text, name.lower(), lossy=confidence < SURE)


def _utf16_without_mark(data: bytes) -> str | None:
    """Tell UTF-16 of mostly Latin text by where its NULs are: every second byte."""
    half = len(data) // 2
    low, high = data[0 : half * 2 : 2].count(0), data[1 : half * 2 : 2].count(0)
    name = "utf-16-le" if high > low else "utf-16-be"
    regular = half > 1 and max(low, high) >= UTF16_SHARE * half and min(low, high) <= half // 20
    return name if regular and _strict(data[: half * 2], name) is not None else None


def _is_binary(data: bytes) -> bool:
    controls = len(data) - len(data.translate(None, _CONTROLS))
    return controls > max(FEW_CONTROLS, CONTROL_SHARE * len(data))


def _known(encoding: str) -> str:
    """Return Python's name of a stated encoding; raises ``RequestError`` when it is none that text is written in."""
    try:
        name = codecs.lookup(encoding).name
        text = name not in _NOTATIONS and bool("x".encode(encoding))
    except (LookupError, ValueError):
        text = False
    if not text:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"There is no text encoding named {encoding!r}.", "Give a name such as utf-8 or gb18030, or auto."
        )
    return name


def _replaced(data: bytes, name: str) -> Decoded:
    text = _strict(data, name)
    return _valid(data.decode(name, "replace") if text is None else text, name, lossy=text is None)


def _strict(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except (UnicodeError, LookupError):
        return None


def _valid(text: str, name: str, *, lossy: bool) -> Decoded:
    clean = _without_surrogates(text.replace("\0", NUL_SIGN))
    return Decoded(clean, name, lossy=lossy or clean != text)


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # by way of UTF-16, so that a pair becomes its character and one alone a single U+FFFD
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class TextStream:
    """Decodes live output; holds back only a character, or a byte order mark, that is not complete yet.

    Raises ``RequestError`` for a stated encoding that does not exist.
    """

    __slots__ = ("_decoder", "_start")

    def __init__(self, *, encoding: str | None = None) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        if encoding is not None and encoding != "auto":
            self._decoder = codecs.getincrementaldecoder(_known(encoding))("replace")
        self._start = b""

    def feed(self, data: bytes) -> str:
        """Return the text that is complete now."""
        return self._decoded(data, final=False)

    def close(self) -> str:
        """Return what the end of the output left: U+FFFD for a character that was cut."""
        return self._decoded(b"", final=True)

    def _decoded(self, data: bytes, *, final: bool) -> str:
        if self._decoder is None:
            data = self._start + data
            if not final and any(len(data) < len(mark) and mark.startswith(data) for mark, _ in _MARKS):
                self._start = data
                return ""
            mark, name = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
            self._decoder = codecs.getincrementaldecoder(name)("replace")
            data = data[len(mark) :]
        text = self._decoder.decode(data, final)
        return _valid(text, "", lossy=False).text
