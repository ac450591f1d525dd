"""Proctor's home on disk: where it is, the index over the run folders, and the clearing of old ones.

The run folder is the truth about one execution; everything else here can be rebuilt from run folders.
"""

from .folder import RunFolder
from .gc import DAY_S, Entry, GcReport, collect, due, plan_gc
from .home import home_path, open_home
from .index import Index
from .presence import Presence
from .rebuild import read_record

__all__ = [
    "DAY_S",
    "Entry",
    "GcReport",
    "Index",
    "Presence",
    "RunFolder",
    "collect",
    "due",
    "home_path",
    "open_home",
    "plan_gc",
    "read_record",
]
