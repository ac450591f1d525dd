"""Output of a command: kept within a cap, read by absolute offset, decoded, cleaned and shown late."""

from . import wording
from .clean import LiveCleaner, clean
from .decode import Decoded, TextStream, decode
from .reader import Chunk, Piece, Range, SpoolReader
from .search import Match, search
from .spool import MEMORY_BYTES, Spool
from .view import BackgroundView, View, background_view, view_of

__all__ = [
    "MEMORY_BYTES",
    "BackgroundView",
    "Chunk",
    "Decoded",
    "LiveCleaner",
    "Match",
    "Piece",
    "Range",
    "Spool",
    "SpoolReader",
    "TextStream",
    "View",
    "background_view",
    "clean",
    "decode",
    "search",
    "view_of",
    "wording",
]
