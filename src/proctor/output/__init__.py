"""Output of a command: kept whole within a cap, read by absolute offset, decoded and cleaned late."""

from .reader import Chunk, Range, SpoolReader
from .spool import MEMORY_BYTES, Spool

__all__ = ["MEMORY_BYTES", "Chunk", "Range", "Spool", "SpoolReader"]
