"""Which folder is the workspace: the one given, else the nearest folder with ``.git`` above the working directory, else that directory.

The root of a file system is never a workspace, since everything would lie inside it; the user's home folder is one only with a notice.
"""

from __future__ import annotations

import os

from ..data import Data
from ..errors import ErrorCode, RequestError

__all__ = ["Workspace", "find"]

_MARK = ".git"  # a folder, or a file in a linked worktree or submodule


class Workspace(Data, kw_only=False):
    """The workspace's real path, and what a person should know about how it was chosen (code, colon, sentence)."""

    root: str
    notices: tuple[str, ...] = ()


def find(cwd: str, given: str | None = None, *, home: str | None) -> Workspace:
    """Return the workspace for a command that starts in ``cwd``; ``home`` is the user's home folder, if there is one.

    Raises ``RequestError`` (invalid_request) when it would be ``/`` or when ``given`` is not an existing folder.
    """
    root = _given(given) if given is not None else _found(os.path.realpath(cwd))
    if _is_top(root):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The workspace would be {root}, and everything on this machine would lie inside it.",
            "Start in a project folder, or name one as the workspace (--workspace DIR).",
        )
    if home and root == os.path.realpath(home):
        return Workspace(root, (f"workspace_is_home: The workspace is the home folder {root}; name a project folder to narrow it.",))
    return Workspace(root)


def _given(path: str) -> str:
    if not path or "\0" in path or not os.path.isdir(path):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"The workspace {path!r} is not an existing folder.", "Name an existing folder, or leave it out."
        )
    return os.path.realpath(path)


def _found(cwd: str) -> str:
    folder = cwd
    while not _is_top(folder):
        if os.path.lexists(os.path.join(folder, _MARK)):
            return folder
        folder = os.path.dirname(folder)
    return cwd


def _is_top(folder: str) -> bool:
    return os.path.dirname(folder) == folder
