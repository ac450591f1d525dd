"""How a command's text reaches a shell, one dialect a shell: which program, which arguments, byte for byte."""

from .detect import NAMES, default_dialect, find, platform, platform_name
from .posix import INLINE_LIMIT_BYTES, ShellCall, shell_call

__all__ = ["INLINE_LIMIT_BYTES", "NAMES", "ShellCall", "default_dialect", "find", "platform", "platform_name", "shell_call"]
