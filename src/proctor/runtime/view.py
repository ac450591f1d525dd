"""A record with the view of its output: what a person or a model reads first, taken from the run folder when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OutputError
from ..execution import Streams, changed
from ..output import SpoolReader, view_of

if TYPE_CHECKING:
    from ..execution import Record
    from ..store import RunFolder

__all__ = ["with_view"]


def with_view(record: Record, folder: RunFolder, memory_tail: tuple[int, bytes] | None, *, encoding: str | None = None) -> Record:
    """Return the record with text, encoding and, for split streams, stdout and stderr; figures are read where nobody could tell them."""
    reader = SpoolReader(folder.descriptor, live=record.output.bytes == 0)  # nothing written yet is no missing output
    output = record.output
    try:
        if output.bytes == 0 and memory_tail is None:
            output = changed(output, bytes=reader.total_bytes(), kept_bytes=sum(part.end - part.start for part in reader.kept()))
        view = view_of(reader, split=record.streams is Streams.SPLIT, ref=record.id, encoding=encoding)
    except OutputError:
        return record
    shown = changed(
        output,
        text=view.text,
        stdout=view.stdout,
        stderr=view.stderr,
        encoding=view.encoding,
        lossy=view.lossy,
        binary=view.binary,
    )
    return changed(record, output=shown)
