"""Processes of one platform behind one switch: ``Backend`` for a keeper's tree, ``HostSurroundings`` for what a host can see.

Every backend file gives the same names; the contract is on the protocols in ``backend``.
"""

import sys

from .backend import ProcessBackend, Reaped, Root, Sent, SpawnError, Surroundings
from .checkpoint import Checkpoints

if sys.platform == "linux":
    from .linux import LinuxBackend as Backend
    from .linux import LinuxSurroundings as HostSurroundings
    from .linux import rename_process
elif sys.platform == "darwin":
    from .darwin import DarwinBackend as Backend
    from .darwin import DarwinSurroundings as HostSurroundings
    from .darwin import rename_process
else:
    from .windows import WindowsBackend as Backend
    from .windows import WindowsSurroundings as HostSurroundings
    from .windows import rename_process

__all__ = [
    "Backend",
    "Checkpoints",
    "HostSurroundings",
    "ProcessBackend",
    "Reaped",
    "Root",
    "Sent",
    "SpawnError",
    "Surroundings",
    "rename_process",
]
