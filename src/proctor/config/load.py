"""Layer upon layer: built-in, user's file, workspace's file (only to tighten), environment, argument; the origin of each value is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..data import Data, changed
from ..errors import ErrorCode, RequestError
from .files import read_file, user_file, workspace_file
from .keys import KEYS, Key, environment_name
from .settings import Face, Settings, defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Resolved", "load"]

BUILT_IN = "built-in"
ARGUMENT = "argument"


class Resolved(Data, kw_only=False):
    """The effective settings; for each key "argument", "environment PROCTOR_X", a file's path or "built-in"; and notices."""

    settings: Settings
    origins: dict[str, str]
    notices: tuple[str, ...]


def load(
    environ: Mapping[str, str],
    *,
    workspace: str | None,
    platform: str,
    user_home: str,
    arguments: Mapping[str, Any],
    base: Settings | Face = Face.LIBRARY_RUN,
) -> Resolved:
    """Return the settings for a request; ``arguments`` holds the keys that the caller gave, and no others.

    Raises ``RequestError`` (invalid_request) naming the file or variable, the key and what it takes.
    """
    start = defaults(base) if isinstance(base, Face) else base
    layers = _Layers(start)
    place = user_file(environ, platform, user_home)
    layers.put(place, read_file(place, follow=True))
    if workspace is not None:
        place = workspace_file(workspace)
        layers.tighten(place, read_file(place, follow=False))
    for key in KEYS.values():
        name = environment_name(key.name)
        text = environ.get(name, "")
        if text and key.parse is not None:
            layers.put(f"environment {name}", {key.name: _parsed(key, name, text)})
    layers.put(ARGUMENT, arguments)
    return Resolved(changed(start, **layers.values), layers.origins, tuple(layers.notices))


class _Layers:
    def __init__(self, start: Settings) -> None:
        self.values: dict[str, Any] = {key: getattr(start, key) for key in KEYS}
        self.origins = dict.fromkeys(KEYS, BUILT_IN)
        self.notices: list[str] = []

    def put(self, origin: str, given: Mapping[str, Any]) -> None:
        """Let every key of a layer win over the layers below."""
        for name, value in given.items():
            self.values[name] = _checked(origin, name, value)
            self.origins[name] = origin

    def tighten(self, origin: str, given: Mapping[str, Any]) -> None:
        """Let the keys of a layer win where they are tighter, and note the others."""
        for name, value in given.items():
            wanted = _checked(origin, name, value)
            rule = KEYS[name].tighten
            current = self.values[name]
            if rule is None:
                self.notices.append(f"config_ignored: {origin}: {name} is not for a workspace to set; it stays {_shown(current)}.")
                continue
            tightest = rule(current, wanted)
            if tightest != current:
                self.values[name] = tightest
                self.origins[name] = origin
            if not _honoured(wanted, tightest):
                self._looser(origin, name, wanted)

    def _looser(self, origin: str, name: str, wanted: Any) -> None:
        stays = f"{_shown(self.values[name])} ({self.origins[name]})"
        self.notices.append(f"config_ignored: {origin}: {name} = {_shown(wanted)} is looser than {stays}; a workspace may only tighten.")


def _honoured(wanted: Any, effective: Any) -> bool:
    return set(wanted) <= set(effective) if isinstance(wanted, tuple) else bool(wanted == effective)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _parsed(key: Key, variable: str, text: str) -> Any:
    try:
        return key.parse(text) if key.parse is not None else None
    except (ValueError, KeyError):
        raise _wrong(f"environment {variable}", key, text) from None


def _checked(origin: str, name: str, value: Any) -> Any:
    key = KEYS.get(name)
    if key is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{origin}: there is no key {name!r}.", f"The keys are {', '.join(KEYS)}.")
    try:
        return key.read(value)
    except (ValueError, TypeError):
        raise _wrong(origin, key, value) from None


def _wrong(origin: str, key: Key, value: Any) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{origin}: {key.name} is {value!r}.", f"It takes {key.takes}.")
