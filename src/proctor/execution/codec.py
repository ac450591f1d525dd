"""Plain data to JSON-ready values and back, for the records of this package.

Encoding walks fields in their declared order. Decoding ignores unknown keys and lets defaults stand in for missing ones, so an older
program reads what a newer one wrote. A class names the converters of its nested fields in ``CONVERTERS``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ..data import changed, field_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["changed", "decode", "decoder", "encode", "field_names", "many", "optional", "parse_time", "render_time", "texts"]

T = TypeVar("T")
_SCALARS = frozenset({str, int, float, bool, type(None)})


def encode(value: Any) -> Any:
    """Return ``value`` as JSON-ready lists, dicts, strings and numbers."""
    kind = type(value)
    return value if kind in _SCALARS else _encoder_of(kind)(value)


def _make_encoder(kind: Any) -> Callable[[Any], Any]:
    """Choose once for each type: records are encoded on the way from a command's end to its caller."""
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, datetime):
        return render_time
    if issubclass(kind, (tuple, list)):
        return lambda value: [item if type(item) in _SCALARS else encode(item) for item in value]
    if issubclass(kind, dict):
        return lambda value: {key: item if type(item) in _SCALARS else encode(item) for key, item in value.items()}
    names = field_names(kind)
    return lambda value: {name: part if type(part := getattr(value, name)) in _SCALARS else encode(part) for name in names}


_encoder_of: Callable[[Any], Callable[[Any], Any]] = cache(_make_encoder)


def decode(cls: type[T], data: Mapping[str, Any]) -> T:
    """Build a ``cls`` from what ``encode`` made of it; raises ``TypeError`` or ``ValueError`` when a required part is missing or wrong."""
    converters: Mapping[str, Callable[[Any], Any]] = getattr(cls, "CONVERTERS", {})
    known = ((name, data[name]) for name in field_names(cls) if name in data)
    return cls(**{name: converters[name](value) if name in converters else value for name, value in known})


def decoder(cls: type[T]) -> Callable[[Mapping[str, Any]], T]:
    """Return the converter for a nested ``cls``."""
    return lambda data: decode(cls, data)


def optional(convert: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Return a converter that leaves ``None`` alone."""
    return lambda value: None if value is None else convert(value)


def many(convert: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """Return a converter for a list of what ``convert`` takes."""
    return lambda values: tuple(convert(value) for value in values)


def texts(values: Any) -> tuple[str, ...]:
    """Convert a list of strings."""
    return tuple(str(value) for value in values)


def render_time(moment: datetime) -> str:
    """Return an aware time as ISO 8601 in UTC with microseconds and ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_time(text: str) -> datetime:
    """Return the aware time of ``render_time``'s text; any ISO 8601 text with an offset is taken."""
    return datetime.fromisoformat(text)
