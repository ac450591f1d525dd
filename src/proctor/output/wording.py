"""The exact sentences about an execution that people and models read; tool descriptions quote them and a golden test holds them.

Pure functions; a sentence in brackets stands on a line of its own, apart from what the command wrote.
"""

from __future__ import annotations

__all__ = [
    "bare_cd",
    "bytes_omitted",
    "exit_code",
    "left_running",
    "no_isolation",
    "output_ended",
    "sandbox_unavailable",
    "signal",
    "still_running",
    "stopped_by",
    "timed_out",
]

COMMAND_CHARACTERS = 200
MEGABYTE = 1_000_000
KILOBYTE = 1_000


def exit_code(code: int) -> str:
    """Return the line for an exit code; a clean exit says nothing."""
    return f"[exit code {code}]" if code else ""


def signal(name: str) -> str:
    """Return the line for an end by a signal, SIGKILL and the like."""
    return f"[signal {name}]"


def timed_out(seconds: float) -> str:
    """Return the line for a limit that passed."""
    return f"[timed out after {seconds:g} s]"


def stopped_by(who: str, reason: str) -> str:
    """Return the line for a stop that somebody asked for."""
    return f"[stopped by {who}: {reason}]" if reason else f"[stopped by {who}]"


def still_running(execution: str) -> str:
    """Return the line for an execution that goes on under this id."""
    return f"[still running: {execution}]"


def left_running(pid: int, command: str) -> str:
    """Return the line for one process that the command left; the command is brought to one line."""
    line = " ".join(command.split())
    shown = line if len(line) <= COMMAND_CHARACTERS else line[: COMMAND_CHARACTERS - 1] + "…"
    return f"[left running: {pid} {shown}]"


def bytes_omitted(amount: int, how: str, *, lost: int = 0) -> str:
    """Return the line for bytes that are not shown; ``how`` reads them, ``lost`` of them are not kept."""
    if lost >= amount:
        return f"[{amount} bytes omitted, they are no longer kept]"
    if lost:
        return f"[{amount} bytes omitted, {lost} of them no longer kept, read the rest with {how}]"
    return f"[{amount} bytes omitted, read them with {how}]"


def output_ended(limit_bytes: int) -> str:
    """Return the line for a command that was stopped because it wrote too much."""
    return f"[output ended at {_size(limit_bytes)}, command stopped]"


def no_isolation(reason: str) -> str:
    """Return the line for a run without a sandbox."""
    return f"[this run had no OS isolation: {reason}]"


def sandbox_unavailable(reason: str) -> str:
    """Return the sentence for a command that was not run because its sandbox could not start."""
    return f"The command did not run. Do not change the command; the sandbox could not start: {reason}"


def bare_cd(workspace: str, folder: str, *, written: str = "") -> str:
    """Return the sentence for a lone cd; ``written`` is the joined form in the dialect's own words."""
    joined = written or f"cd {folder} && COMMAND"
    return f'cd lasts for this call only; the next call starts in {workspace} again. Pass cwd="{folder}", or write {joined}'


def _size(amount: int) -> str:
    if amount >= MEGABYTE:
        return f"{amount / MEGABYTE:.3g} MB"
    return f"{amount / KILOBYTE:.3g} KB" if amount >= KILOBYTE else f"{amount} bytes"
