"""Where configuration files lie and what is in them; the TOML parser is loaded only when there is a file.

A repository may put anything in the place of its file, so only a regular file of a sane size is read, and never through a symlink.
"""

from __future__ import annotations

import errno
import ntpath
import os
import posixpath
import stat
from typing import TYPE_CHECKING, Any

from ..errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_file", "user_file", "workspace_file"]

_LONGEST_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not wait for a writer


def user_file(environ: Mapping[str, str], platform: str, user_home: str) -> str:
    """Return the place of the user's file on ``platform`` (``sys.platform``'s names)."""
    if platform == "win32":
        base = environ.get("APPDATA") or ntpath.join(user_home, "AppData", "Roaming")
        return ntpath.join(base, "proctor", "config.toml")
    chosen = environ.get("XDG_CONFIG_HOME", "")
    if posixpath.isabs(chosen):
        return posixpath.join(chosen, "proctor", "config.toml")
    folder = posixpath.join("Library", "Application Support") if platform == "darwin" else ".config"
    return posixpath.join(user_home, folder, "proctor", "config.toml")


def workspace_file(workspace: str) -> str:
    """Return the place of the workspace's file."""
    return os.path.join(workspace, ".proctor", "config.toml")


def read_file(path: str, *, follow: bool) -> dict[str, Any]:
    """Return the top table of the file, empty when there is none; raises ``RequestError`` (invalid_request) that names it."""
    try:
        content = _content(path, follow=follow)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refuse(path, "it is a symbolic link") from error
        raise _refuse(path, error.strerror or str(error)) from error
    from tomllib import TOMLDecodeError, loads

    try:
        return loads(content.decode())
    except (TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refuse(path, f"it is not valid TOML: {error}") from error


def _content(path: str, *, follow: bool) -> bytes:
    descriptor = os.open(path, _FLAGS | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LONGEST_BYTES:
            raise _refuse(path, f"it is not a regular file of at most {_LONGEST_BYTES} bytes")
        return file.read(_LONGEST_BYTES)


def _refuse(path: str, why: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"The configuration {path} cannot be used: {why}.", "Correct the file or remove it.")
