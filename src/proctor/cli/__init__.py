"""The command line: what people at a terminal and scripts use (DESIGN section 12)."""

from .main import main
from .parser import build_parser

__all__ = ["build_parser", "main"]
