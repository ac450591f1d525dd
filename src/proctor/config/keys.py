"""The table of keys: what each takes, from TOML and from the environment, and which of two values is the tighter one. Pure.

A key without a ``tighten`` rule is not for a workspace to set: what a repository brings along must not loosen what its user chose, nor
decide how much of the user's history and evidence is kept.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from ..execution import Lifetime, OnLinger, Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["KEYS", "Key", "environment_name"]

_NONE = "none"
_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Key(NamedTuple):
    """One key. ``read`` takes a value as TOML or an argument gives it, ``parse`` turns the environment's text into such a value."""

    name: str
    takes: str
    read: Callable[[Any], Any]
    parse: Callable[[str], Any] | None
    tighten: Callable[[Any, Any], Any] | None


def environment_name(key: str) -> str:
    """Return the name of the environment variable for a key."""
    return f"PROCTOR_{key.upper()}"


def _one_of(values: Iterable[str], make: Callable[[str], Any] = str) -> Callable[[Any], Any]:
    known = frozenset(values)

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise ValueError(value)
        return make(value)

    return read


def _number(least: float, *, whole: bool = False, above: bool = False, optional: bool = False) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if optional and value in (None, _NONE):
            return None
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise TypeError(value)
        if not isfinite(value) or value < least or (above and value == least):
            raise ValueError(value)
        return int(value) if whole else float(value)

    return read


def _flag(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(value)
    return tuple(dict.fromkeys(value))


def _parse_number(text: str) -> Any:
    if text == _NONE:
        return text
    try:
        return int(text)
    except ValueError:
        return float(text)


def _parse_flag(text: str) -> bool:
    return _FLAGS[text.lower()]


def _parse_texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _smaller(current: float | None, wanted: float | None) -> float | None:
    return min(current, wanted, key=lambda value: inf if value is None else value)


def _earlier_of(*order: Any) -> Callable[[Any, Any], Any]:
    return lambda current, wanted: min(current, wanted, key=order.index)


def _fewer(current: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in current if name in wanted)


def _more(current: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*current, *wanted)))


_DIALECTS = ("bash", "sh", "zsh", "cmd", "pwsh", "powershell", "none")
_SECONDS = "a number of seconds above 0"
_LIMIT = _number(0, above=True, optional=True)
_LIFETIMES = tuple(Lifetime)

KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key("dialect", f"one of {', '.join(_DIALECTS)}", _one_of(_DIALECTS), str, None),
        Key("login", "true or false", _flag, _parse_flag, None),
        Key("lifetime", f"one of {', '.join(_LIFETIMES)}", _one_of(_LIFETIMES, Lifetime), None, _earlier_of(*_LIFETIMES)),
        Key("on_linger", "stop or keep", _one_of(OnLinger, OnLinger), str, _earlier_of(OnLinger.STOP, OnLinger.KEEP)),
        Key("timeout_s", f'{_SECONDS}, or "none"', _LIMIT, _parse_number, _smaller),
        Key("maximum_timeout_s", _SECONDS, _number(0, above=True), _parse_number, _smaller),
        Key("idle_timeout_s", f'{_SECONDS}, or "none"', _LIMIT, _parse_number, _smaller),
        Key(
            "output_limit_bytes",
            'a whole number of bytes above 0, or "none"',
            _number(0, whole=True, above=True, optional=True),
            _parse_number,
            _smaller,
        ),
        Key("grace_s", "a number of seconds, 0 or more", _number(0), _parse_number, _smaller),
        Key("kept_head_bytes", "a whole number of bytes, 0 or more", _number(0, whole=True), _parse_number, None),
        Key("kept_tail_bytes", "a whole number of bytes, 0 or more", _number(0, whole=True), _parse_number, None),
        Key("streams", "split or merged", _one_of(Streams, Streams), str, None),
        Key("env_allow", "a list of names", _texts, _parse_texts, _fewer),
        Key("env_withhold", "a list of name patterns", _texts, _parse_texts, _more),
        Key("gc_older_than_s", "a number of seconds, 0 or more", _number(0), _parse_number, None),
        Key("gc_max_bytes", "a whole number of bytes, 0 or more", _number(0, whole=True), _parse_number, None),
        Key("session_quota", "a whole number above 0", _number(0, whole=True, above=True), _parse_number, _smaller),
    )
}
