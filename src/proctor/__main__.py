"""Where ``proctor`` and ``python -m proctor`` begin; ``--version`` is answered here, before anything else is imported."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"]:
        from . import __version__

        sys.stdout.write(f"proctor {__version__}\n")
        return 0
    from .cli import main as command_line

    return command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
