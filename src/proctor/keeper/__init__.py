"""Keepers: one process per execution that owns its tree, its output and its ending, and outlives whoever asked for it.

This face is the host's: start a zygote, hand it assignments, speak the control protocol. What runs inside a keeper (``zygote``,
``supervise``) is reached only by exec.
"""

from .assignment import Delivery, Handed, pack
from .burial import append_if_open
from .hosting import Zygote
from .protocol import PROTOCOL, LineBuffer, ProtocolError, line_of
from .sealing import read_journal_at

__all__ = [
    "PROTOCOL",
    "Delivery",
    "Handed",
    "LineBuffer",
    "ProtocolError",
    "Zygote",
    "append_if_open",
    "line_of",
    "pack",
    "read_journal_at",
]
