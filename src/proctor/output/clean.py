"""Text of a command made harmless and readable, for models and terminals: control sequences out, redraws folded.

``clean`` takes a whole text: sequences (7-bit and 8-bit forms, cut ones too) go, carriage return and backspace overwrite as a terminal
would show it, other controls but newline and tab go. ``LiveCleaner`` does the same to a stream that goes to a terminal, except that it
lets carriage return and backspace pass: the terminal folds by itself. Both are linear; a string sequence ends at its line's end at the
latest, so that a stray introducer cannot swallow the rest of the output. Columns are characters.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["LiveCleaner", "clean"]

# ECMA-48: control sequences (CSI), control strings (OSC, DCS, SOS, PM, APC), other escapes; last, the controls themselves.
_REST = {
    "csi": r"[0-?]*[ -/]*(?P<{}>[@-~])?",
    "string": r"[^\x07\x1b\x9c\n]*(?P<{}>\x07|\x9c|\x1b\\)?",
    "escape": r"[ -/]*(?P<{}>[0-~])?",
}
_CONTROL = (
    r"(?P<csi>(?:\x1b\[|\x9b)" + _REST["csi"].format("csi_end") + ")"
    r"|(?P<string>(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])" + _REST["string"].format("string_end") + ")"
    r"|(?P<escape>\x1b" + _REST["escape"].format("escape_end") + ")"
    r"|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_ERASE_REST, _ERASE_LINE = "\x00", "\x02"  # stand-ins inside a line that is being folded; as controls of the text they are gone by then
_FOLD = r"([\r\x08\x00\x02])"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)  # at first use: a keeper imports this package and cleans nothing


def clean(text: str) -> str:
    """Return what a person would have seen in a terminal that was wide enough."""
    text = _compiled(_CONTROL).sub(_erasing, text)
    if _compiled(_FOLD).search(text) is None:
        return text
    return "\n".join([_folded(line) for line in text.split("\n")])


def _erasing(match: re.Match[str]) -> str:
    if match["csi_end"] != "K":
        return ""
    return {"": _ERASE_REST, "0": _ERASE_REST, "2": _ERASE_LINE}.get(match["csi"][:-1].lstrip("\x1b\x9b["), "")


def _folded(line: str) -> str:
    parts = _compiled(_FOLD).split(line.rstrip("\r"))
    if len(parts) == 1:
        return parts[0]
    cells: list[str] = []
    column = 0
    for part in parts:
        match part:
            case "\r":
                column = 0
            case "\b":
                column = max(0, column - 1)
            case "\x00":
                del cells[column:]
            case "\x02":  # the column would stay; every program goes to the first one before or after, and this keeps it linear
                cells.clear()
                column = 0
            case _:
                cells[column : column + len(part)] = part
                column += len(part)
    return "".join(cells)


class LiveCleaner:
    """Cleans a stream piece by piece in constant memory; a sequence split over pieces never gets through."""

    __slots__ = ("_inside", "_pending")

    def __init__(self) -> None:
        self._inside = ""
        self._pending = ""

    def feed(self, text: str) -> str:
        """Return what may be written to the terminal now."""
        text = self._continued(self._pending + text)
        self._pending = ""
        return _compiled(_CONTROL).sub(lambda match: self._left_open(match, len(text)), text)

    def _continued(self, text: str) -> str:
        """Drop the rest of a sequence that an earlier piece began."""
        if not self._inside or not text:
            return text
        match = _compiled(_REST[self._inside].format("end")).match(text)
        if match is None or (match.end() == len(text) and match["end"] is None):
            return ""
        self._inside = ""
        return text[match.end() :]

    def _left_open(self, match: re.Match[str], size: int) -> str:
        if match.end() == size:
            if match[0] == "\x1b":  # what it introduces is in the next piece
                self._pending = match[0]
            else:
                self._inside = next((kind for kind in _REST if match[kind] and not match[kind + "_end"]), "")
        return ""
