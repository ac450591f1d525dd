"""What is said to people and programs: text on standard output, remarks on standard error; nothing here can fail on an odd character."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..errors import ProctorError

__all__ = ["colour", "fault", "object_out", "out", "remark", "rows"]

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "grey": "90"}
_GAP = "  "


def out(text: str) -> None:
    """Write text and a newline to standard output."""
    _write(sys.stdout, text)


def remark(text: str) -> None:
    """Write a line for people to standard error; a standard error that is closed is no reason to fail."""
    try:
        _write(sys.stderr, text)
    except OSError:
        return


def object_out(value: Any) -> None:
    """Write one JSON value to standard output."""
    out(json.dumps(value, indent=2, ensure_ascii=False))


def fault(code: str, message: str, hint: str = "") -> None:
    """Write the one line of an error."""
    advice = f" {hint}" if hint else ""
    remark(f"proctor: {message}{advice} [{code}]")


def error_object(error: ProctorError) -> dict[str, Any]:
    """Return an error as programs read it."""
    return {"error": {"code": str(error.code), "message": error.message, "hint": error.hint}}


def colour(text: str, name: str) -> str:
    """Colour a text, where standard output is a terminal and NO_COLOR is not set."""
    if name not in _COLOURS or os.environ.get("NO_COLOR") or sys.stdout is None or not sys.stdout.isatty():
        return text
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def rows(header: Sequence[str], lines: Iterable[Sequence[str]], *, colours: Sequence[str] = ()) -> str:
    """Return a table with aligned columns; ``colours`` gives one for each line, for its second column."""
    table = [list(header), *(list(line) for line in lines)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    tints = ["", *colours, *[""] * len(table)]
    return "\n".join(_aligned(line, widths, tint) for line, tint in zip(table, tints, strict=False))


def _aligned(line: Sequence[str], widths: Sequence[int], tint: str) -> str:
    cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=False)]
    if tint and len(cells) > 1:
        cells[1] = colour(cells[1], tint)
    return _GAP.join([*cells, line[-1]]).rstrip()


def _write(stream: Any, text: str) -> None:
    if stream is None:  # closed by whoever started this process
        return
    stream.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    stream.buffer.flush()
