"""The effective settings of one request, each with where it came from.

Argument over environment over the workspace's file (which may only tighten) over the user's file over the built-in default of the face.
"""

from .files import user_file, workspace_file
from .keys import KEYS, Key
from .load import Resolved, load
from .settings import Face, Settings, defaults

__all__ = ["KEYS", "Face", "Key", "Resolved", "Settings", "defaults", "load", "user_file", "workspace_file"]
