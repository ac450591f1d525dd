"""A record with the view of its output: what a person or a model reads first, taken from the run folder when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OutputError
from ..execution import Streams, changed
from ..output import SpoolReader, clean, decode, view_of, wording

if TYPE_CHECKING:
    from ..execution import Output, Record
    from ..store import RunFolder

__all__ = ["with_view"]

TAIL_BYTES = 8_192  # of up to 256 KiB that the keeper held: about what a view shows of an end


def with_view(record: Record, folder: RunFolder, memory_tail: tuple[int, bytes] | None, *, encoding: str | None = None) -> Record:
    """Return the record with text, encoding and, for split streams, stdout and stderr; figures are read where nobody could tell them."""
    if record.ended and record.duration_s is not None and record.output.bytes == 0:  # its keeper counted to the end: nothing
        return changed(record, output=_silent(record.output, split=record.streams is Streams.SPLIT))
    reader = SpoolReader(folder.descriptor, live=record.output.bytes == 0)  # nothing written yet is no missing output
    output = record.output
    try:
        if output.bytes == 0 and memory_tail is None:
            output = changed(output, bytes=reader.total_bytes(), kept_bytes=sum(part.end - part.start for part in reader.kept()))
        view = view_of(reader, split=record.streams is Streams.SPLIT, ref=record.id, encoding=encoding)
    except OutputError:
        if memory_tail is None:
            return record
        return changed(record, output=_with_tail(output, memory_tail, encoding))
    shown = changed(
        output,
        text=view.text,
        stdout=view.stdout,
        stderr=view.stderr,
        encoding=view.encoding,
        lossy=view.lossy,
        binary=view.binary,
    )
    if memory_tail is not None:
        shown = _with_tail(shown, memory_tail, encoding)
    return changed(record, output=shown)


def _with_tail(output: Output, memory_tail: tuple[int, bytes], encoding: str | None) -> Output:
    """Put behind the stored text what no disk took: it came over the connection and exists nowhere else."""
    start, data = memory_tail
    decoded = decode(data[-TAIL_BYTES:], encoding=encoding)
    if decoded.binary:
        return changed(output, binary=True, text=None)
    start += max(0, len(data) - TAIL_BYTES)
    gap = max(0, start - output.kept_bytes)
    notice = f"\n{wording.bytes_omitted(gap, '', lost=gap)}\n" if gap else ""
    return changed(
        output, text=(output.text or "") + notice + clean(decoded.text), binary=False, encoding=output.encoding or decoded.encoding
    )


def _silent(output: Output, *, split: bool) -> Output:
    """Return the view of a command that is known to have written nothing: there is no file to ask."""
    part = "" if split else None
    return changed(output, text="", stdout=part, stderr=part, encoding="utf-8", lossy=False, binary=False)
