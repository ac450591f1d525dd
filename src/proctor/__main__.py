"""Where ``proctor`` and ``python -m proctor`` begin; ``--version`` is answered here, before anything else is imported."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line and return its exit code."""
    _fill_standard_descriptors()
    if sys.argv[1:] == ["--version"]:
        from . import __version__

        sys.stdout.write(f"proctor {__version__}\n")
        return 0
    from .cli import main as command_line

    return command_line(sys.argv[1:])


def _fill_standard_descriptors() -> None:
    """Put /dev/null where the caller closed a standard descriptor: a socket would take its number, and output would go there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            if number and getattr(sys, ("stdin", "stdout", "stderr")[number]) is None:
                setattr(sys, ("stdin", "stdout", "stderr")[number], open(number, "w", closefd=False))  # noqa: SIM115 - for the process's life


if __name__ == "__main__":
    sys.exit(main())
