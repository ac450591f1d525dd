"""The one answer to "inside?", for working directories, policy, patches and sandbox plans.

Both sides are taken as real paths: symlinks and ``..`` are followed as the kernel follows them, and a path that does not exist yet is
judged by where it would be made. A path that cannot be judged is outside.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["inside"]


def inside(path: str, roots: Iterable[str]) -> bool:
    """Tell whether ``path`` is one of ``roots`` or lies below one; relative paths count from the process's working directory."""
    if not path:
        return False
    try:
        real = os.path.realpath(path)
        return any(_below(real, os.path.realpath(root)) for root in roots if root)
    except ValueError:  # a NUL in the path: no file has such a name
        return False


def _below(real: str, root: str) -> bool:
    ancestor, wanted = os.path.normcase(real), os.path.normcase(root)
    if ancestor == wanted or ancestor.startswith(os.path.join(wanted, "")):
        return True
    return _reaches_same_folder(real, root)


def _reaches_same_folder(real: str, root: str) -> bool:
    # Two spellings may name one folder without any symlink: a bind mount, or a file system that ignores case.
    try:
        wanted = os.stat(root)
    except OSError:
        return False
    while True:
        try:
            if os.path.samestat(os.stat(real), wanted):
                return True
        except OSError:
            pass  # not there yet; an ancestor is
        parent = os.path.dirname(real)
        if parent == real:
            return False
        real = parent
