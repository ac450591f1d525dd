"""The host process that ``proctor demo`` kills: it starts a command, reads some of its output, and then only exists.

It is run as ``python -m proctor.cli.demo_host FOLDER PROGRAM [ARG...]`` and speaks in lines: the id; then, for each line it is sent, the
offset up to which it has read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..runtime import LocalRuntime, SyncProctor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(words: Sequence[str]) -> None:
    """Start the command in the folder, and read when told to."""
    folder, *command = words
    with SyncProctor(LocalRuntime()) as host, host.start(command, cwd=folder, lifetime="detached", reason="proctor demo") as execution:
        _say(execution.id)
        offset = 0
        for _ in sys.stdin:
            offset = execution.read_since(offset).next_offset
            _say(str(offset))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
