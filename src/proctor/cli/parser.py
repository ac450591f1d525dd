"""Every command and flag of the command line, as data for argparse; the reference in ``docs/`` and the completions are made from it.

A parser is built without importing what carries a command out, and for one command alone where that is known: start-up time counts.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COMMANDS", "build_parser", "command_parser_of"]

_ID = "an execution: its id, a unique beginning of it, or - for the last one"
_EPILOG = "Exit codes everywhere: 2 usage, 4 unknown id, 125 proctor failed. `proctor COMMAND --help` tells more."


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or with just the one command ``only``."""
    parser = argparse.ArgumentParser(prog="proctor", description="Run commands and tell only what was verified.", epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"proctor {__version__}")
    commands = parser.add_subparsers(dest="name", metavar="COMMAND", required=True)
    for name, (summary, fill) in COMMANDS.items():
        if only is None or only == name:
            one = commands.add_parser(name, help=summary, description=_sentence(summary), allow_abbrev=False)
            fill(one)
    return parser


def command_parser_of(parser: argparse.ArgumentParser, name: str | None) -> argparse.ArgumentParser:
    """Return the parser of one command, for usage errors that are about it; the whole parser for a name that is none."""
    for action in parser._actions:  # argparse has no public way to a subparser
        if isinstance(action.choices, dict) and name in action.choices:
            found: argparse.ArgumentParser = action.choices[name]
            return found
    return parser


def _sentence(summary: str) -> str:
    return summary[0].upper() + summary[1:] + "."


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


_seconds.__name__ = "number of seconds"


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


_count.__name__ = "whole number"


def _run(parser: argparse.ArgumentParser) -> None:
    parser.usage = "proctor run [OPTION...] -- COMMAND [ARG...]"
    parser.epilog = (
        "One word behind -- is a text for the shell; several are a program and its arguments, run without one. Exit code: the command's; "
        "124 timed out; 125 proctor failed, or the ending is lost or unproved; 126 not allowed; 127 not found; 128+N ended by signal N."
    )
    add = parser.add_argument
    add("command", nargs="*", metavar="COMMAND", help="the command, behind --")
    add("--cwd", metavar="D", help="working directory")
    add("--workspace", metavar="D", help="the workspace folder (default: the nearest folder with .git above the working directory)")
    add("--add-dir", metavar="D", action="append", help="one more folder that the sandbox leaves writable")
    _run_limits(parser)
    add("--shell", metavar="NAME", choices=("bash", "sh", "zsh", "cmd", "pwsh", "powershell", "none"), help="shell for a text, or none")
    add("--login", action=argparse.BooleanOptionalAction, default=None, help="whether the shell reads its login profile (default: yes)")
    add("--tty", action="store_true", help="run in a terminal of its own (not in this version)")
    add("--stdin", metavar="FILE|-", help="standard input from a file, or - for this process's own (default: none)")
    add("--stdin-open", action="store_true", help="keep standard input open for `proctor send`")
    add("--env", metavar="K=V|NAME", action="append", help="set a variable, or pass on one that looks secret")
    add("--env-file", metavar="F", help="a file of K=V or NAME lines")
    add("--user", metavar="U", help="run as this user (needs root)")
    add("--streams", choices=("split", "merged"), help="two pipes, or one that keeps the exact order (default: split)")
    add(
        "--sandbox",
        metavar="MODE",
        choices=("read-only", "workspace-write", "danger-full-access"),
        default="danger-full-access",
        help="how the command is confined (this version: danger-full-access)",
    )
    add("--network", choices=("on", "off", "loopback"), default="on", help="network of the command (this version: on)")
    add("--allow-unsandboxed", action="store_true", help="run without the sandbox when it cannot start; the record says so")
    add("--policy", metavar="F", help="rules to judge the command by (not in this version)")
    add("--explain", action="store_true", help="say what policy and sandbox would do (not in this version)")
    add("--session", metavar="S", help="the session that the execution belongs to")
    add(
        "--lifetime",
        choices=("call", "host", "session", "detached"),
        help="when it ends at the latest (default: call; with --background detached)",
    )
    add("--on-linger", choices=("stop", "keep"), help="what happens to processes that the command leaves (default: stop)")
    add("--background", action="store_true", help="print the id and return at once")
    add("--reason", metavar="TEXT", help="why it is run, for the record")
    add("--json", action="store_true", help="print the record alone")
    add("--yes", action="store_true", help="answer what policy would ask with yes")


def _run_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--timeout", metavar="S", type=_seconds, help="stop it after this many seconds (default: none)")
    add("--idle-timeout", metavar="S", type=_seconds, help="stop it after this many seconds without output")
    add("--output-limit", metavar="N", type=_count, help="stop it once it wrote more than this many bytes")
    add("--ttl", metavar="S", type=_seconds, help="the most that a background command may live")
    add("--grace", metavar="S", type=_seconds, help="seconds between asking and killing (default: 3)")


def _ps(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="ended ones too, newest first")
    parser.add_argument("--limit", metavar="N", type=_count, default=1000, help="with --all: the newest N of them (default: 1000)")
    parser.add_argument("--session", metavar="S", help="those of one session")
    parser.add_argument("--json", action="store_true", help="a list of records")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help=_ID)
    parser.add_argument("--json", action="store_true", help="the record")


def _stop(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 when everything is proved gone, those that had ended before included; 3 when something is left."
    parser.add_argument("ids", metavar="ID", nargs="*", help=_ID)
    parser.add_argument("--session", metavar="S", help="every unfinished execution of a session")
    parser.add_argument("--all", action="store_true", help="every unfinished execution")
    parser.add_argument("--grace", metavar="S", type=_seconds, help="seconds between asking and killing (default: the execution's)")
    parser.add_argument("--reason", metavar="T", default="", help="why, for the record")


def _logs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("id", metavar="ID", help=_ID)
    add("-f", "--follow", action="store_true", help="go on until the execution has ended")
    add("--since", metavar="OFFSET", type=_count, help="begin at this byte")
    add("--tail", metavar="N", type=_count, help="the last N lines")
    add("--grep", metavar="RE", help="only lines that match a regular expression (exit code 1: none)")
    add("--stream", choices=("stdout", "stderr"), help="one of the two streams (default: both, in order of arrival)")
    add("--raw", action="store_true", help="the bytes as they are, on a terminal too")


def _wait(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit code: 0 when it happened; 1 when an execution ended before it could; 124 when the limit passed. Nothing is stopped."
    )
    add = parser.add_argument
    add("ids", metavar="ID", nargs="+", help=_ID)
    add("--timeout", metavar="S", type=_seconds, help="wait at most this many seconds (default: no limit)")
    add("--any", action="store_true", help="until one of several, not all")
    add("--for", metavar="text=RE|port=N|file=P|idle=S", dest="condition", help="until this, and not until the end")


def _send(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("id", metavar="ID", help=_ID)
    add("text", metavar="TEXT", nargs="?", help="what to send; a newline is added unless it ends with one")
    add("--no-newline", action="store_true", help="send exactly the text")
    add("--eof", action="store_true", help="close standard input, behind the text if there is one")


def _gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older", metavar="D", help="what ended longer ago than this: 12h, 30d, or a number of days (default: 14d)")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="findings and settings as an object")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "It works in a temporary folder with a home of its own, and cleans up. Exit code: 1 when a claim does not hold."


# For each command: what it does, and what adds its flags.
COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "run": ("run a command to its proved ending", _run),
    "ps": ("list executions that have not ended", _ps),
    "show": ("show what is known about an execution", _show),
    "logs": ("print the output of an execution", _logs),
    "wait": ("wait for executions, without stopping them", _wait),
    "stop": ("stop executions and prove it", _stop),
    "send": ("send text to an execution's standard input", _send),
    "gc": ("remove old executions", _gc),
    "doctor": ("measure what works on this machine", _doctor),
    "demo": ("show on a small project what proctor does", _demo),
    "completion": ("print a completion script for a shell", _completion),
}
