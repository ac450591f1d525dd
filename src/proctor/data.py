"""Frozen, slotted, keyword-only records without generated code: what the rest of proctor is described with.

``dataclasses`` compiles several functions for every class, 1.2 ms a class on the machine this was measured on, and brings ``inspect``
along: with sixty classes that was more than half of the command line's start-up. Here one metaclass reads the annotations, and all
classes share one ``__init__``. Type checkers see dataclasses (PEP 681).

A class may say ``kw_only=False`` (fields may be given in order) or ``frozen=False``. Defaults are shared, so they must be immutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Any:
        return lambda decorated: decorated


__all__ = ["Data", "changed", "field_names"]

T = TypeVar("T")
_MISSING: Any = object()
_set = object.__setattr__


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _DataType(type):
    """Makes slots of the annotated names and keeps their defaults, in order, parents' first."""

    FIELDS: Mapping[str, Any]
    IN_ORDER: bool

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, kw_only: bool = True, frozen: bool = True
    ) -> _DataType:
        own = {field: namespace.pop(field, _MISSING) for field in _annotated(namespace)}
        namespace["__slots__"] = tuple(own)
        if not frozen:
            namespace["__setattr__"] = object.__setattr__
            namespace["__hash__"] = None
        made = super().__new__(cls, name, bases, namespace)
        inherited = {field: default for base in reversed(made.__mro__[1:]) for field, default in getattr(base, "FIELDS", {}).items()}
        type.__setattr__(made, "FIELDS", {**inherited, **own})
        type.__setattr__(made, "IN_ORDER", not kw_only)
        type.__setattr__(made, "__match_args__", tuple(made.FIELDS))
        return made


def _annotated(namespace: Mapping[str, Any]) -> list[str]:
    hints: Mapping[str, str] = namespace.get("__annotations__", {})
    return [name for name, hint in hints.items() if not hint.startswith("ClassVar")]


class Data(metaclass=_DataType):
    """The base of all records: equality, hash and text by its fields."""

    def __init__(self, *values: Any, **named: Any) -> None:
        kind = type(self)
        if values:
            named = _in_order(kind, values, named)
        if not named.keys() <= kind.FIELDS.keys():
            msg = f"{kind.__name__} has no field {min(named.keys() - kind.FIELDS.keys())!r}"
            raise TypeError(msg)
        for name, value in {**kind.FIELDS, **named}.items():
            if value is _MISSING:
                msg = f"{kind.__name__} needs a value for {name!r}"
                raise TypeError(msg)
            _set(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"{type(self).__name__} is frozen; make another with changed(…, {name}=…)"
        raise AttributeError(msg)

    def __delattr__(self, name: str) -> None:
        msg = f"{type(self).__name__} keeps all its fields"
        raise AttributeError(msg)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in type(self).FIELDS)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).FIELDS))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in type(self).FIELDS)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), {name: getattr(self, name) for name in type(self).FIELDS})


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of a record's fields, in their declared order."""
    return tuple(kind.FIELDS)


def changed(value: T, **changes: Any) -> T:
    """Return a copy of a record with some fields changed; the caller's names are trusted to be fields."""
    kind: Any = type(value)
    copy = object.__new__(kind)
    for name in kind.FIELDS:
        _set(copy, name, changes[name] if name in changes else getattr(value, name))
    return copy  # type: ignore[no-any-return] # of the very type of `value`


def _in_order(kind: Any, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    names = tuple(kind.FIELDS)
    if not kind.IN_ORDER or len(values) > len(names):
        msg = f"{kind.__name__} takes its fields by name"
        raise TypeError(msg)
    given = dict(zip(names, values, strict=False))
    if twice := given.keys() & named.keys():
        msg = f"{kind.__name__} got {min(twice)!r} twice"
        raise TypeError(msg)
    return {**given, **named}


def _rebuilt(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**values)
