"""`make bench`: every line of DESIGN section 15 that exists now; `python -m bench spawning stopping` measures only these."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

from . import command_line, crowd, history, spawning, stopping, swerex, throughput

if TYPE_CHECKING:
    from collections.abc import Callable

    from .measure import Line

PARTS: dict[str, Callable[[], list[Line]]] = {
    "spawning": spawning.measure,
    "command_line": command_line.measure,
    "throughput": throughput.measure,
    "crowd": crowd.measure,
    "stopping": stopping.measure,
    "history": history.measure,
}


def main() -> None:
    chosen = sys.argv[1:] or [*PARTS, "swerex"]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}; ratios hold, milliseconds are this machine's")
    lines = [line for name in chosen if name in PARTS for line in PARTS[name]()]
    if "swerex" in chosen:
        swerex.measure(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ".cache"))
    print(f"\n{'what':56} {'measured':34} {'target':20}")
    for line in lines:
        print(f"{line.what:56} {line.measured:34} {line.target:20} {'reached' if line.reached else 'MISSED'}")


main()
