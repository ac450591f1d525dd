"""bash, sh and zsh: the text goes to the shell byte for byte as one argument, or, when it is too long for one, as a script on descriptor 3.

Nothing is parsed, escaped or glued on. 128 KiB is the kernel's limit for one argument (MAX_ARG_STRLEN, execve(2)).
"""

from __future__ import annotations

from ..data import Data

__all__ = ["INLINE_LIMIT_BYTES", "ShellCall", "shell_call"]

INLINE_LIMIT_BYTES = 131_071 - 1024  # room for what the kernel counts along with it
SCRIPT = "/dev/fd/3"


class ShellCall(Data, kw_only=False):
    """How a text is handed to a shell: the argv, and the script for descriptor 3 where the text is not in the argv."""

    argv: tuple[str, ...]
    script: bytes | None = None


def shell_call(program: str, text: str, *, login: bool) -> ShellCall:
    """Return the call that makes ``program`` run ``text``."""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) <= INLINE_LIMIT_BYTES:
        return ShellCall((program, "-lc" if login else "-c", text))
    return ShellCall((program, *(("-l",) if login else ()), SCRIPT), data)
