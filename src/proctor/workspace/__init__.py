"""Where a request may act: the workspace folder, what lies inside it, and whether a working directory can be used.

Paths come in, facts about the file system go out; nothing is changed and nothing is remembered between calls.
"""

from .containment import inside
from .cwd import check_cwd
from .root import Workspace, find

__all__ = ["Workspace", "check_cwd", "find", "inside"]
