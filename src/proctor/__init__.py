"""Proctor runs commands and tells only what it verified. The root is lazy: importing it loads nothing else (PEP 562)."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
