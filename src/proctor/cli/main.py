"""From the words of the command line to an exit code: parse, open the home, carry the command out, tell what went wrong in one line."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import ProctorError
from .exits import BROKEN_PIPE, code_of_error
from .parser import COMMANDS, build_parser, command_parser_of
from .printing import error_object, fault, object_out

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130
# What carries a command out, and whether it needs the home and its index opened first.
_MODULES = {
    "run": ("run", True),
    "ps": ("listing", True),
    "show": ("showing", True),
    "logs": ("logs", True),
    "wait": ("waiting", True),
    "stop": ("stopping", True),
    "send": ("sending", True),
    "gc": ("collecting", True),
    "doctor": ("doctor", False),
    "demo": ("demo", False),
    "completion": ("completing", False),
}


def main(words: Sequence[str]) -> int:
    """Carry out one command line; return the exit code. Raises ``SystemExit`` for usage errors and help, as argparse does."""
    arguments = _parsed(list(words))
    try:
        return _carried_out(arguments)
    except ProctorError as error:
        if getattr(arguments, "json", False):
            object_out(error_object(error))
        fault(error.code, error.message, error.hint)
        return code_of_error(error.code)
    except BrokenPipeError:
        _forget_standard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _parsed(words: list[str]) -> Namespace:
    first = words[0] if words and words[0] in COMMANDS else None
    command: list[str] = []
    if first == "run" and "--" in words:  # what is behind it is the user's, byte for byte, whatever argparse makes of a second one
        border = words.index("--")
        words, command = words[:border], words[border + 1 :]
    parser = build_parser(first)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        hint = " A command is written behind --: proctor run [FLAGS] -- COMMAND." if first == "run" and not command else ""
        command_parser_of(parser, first).error(f"unrecognized arguments: {' '.join(unknown)}.{hint}")
    if command:
        arguments.command = [*arguments.command, *command]
    return arguments


def _carried_out(arguments: Namespace) -> int:
    name, needs_runtime = _MODULES[arguments.name]
    module = import_module(f".{name}", __package__)
    if not needs_runtime:
        return int(module.execute(arguments))
    from ..runtime import LocalRuntime

    runtime = LocalRuntime.for_one_command() if arguments.name == "run" else LocalRuntime()
    try:
        return int(module.execute(arguments, runtime))
    finally:
        runtime.close()


def _forget_standard_output() -> None:
    """Point descriptor 1 elsewhere: the interpreter would fail once more when it flushes at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
