"""The one registry of environment variables that proctor reads, and that it sets in every command.

Names, meanings and where they apply are data here; the table in ``docs/environment.md`` is generated from it.
"""

from __future__ import annotations

from functools import cache

from .data import Data

__all__ = ["EXECUTION_ID", "HOME", "QUIET", "READ", "SECRET_TAILS", "SECRET_WORDS", "SET", "Variable", "is_secret_name"]


class Variable(Data, kw_only=False):
    """One variable: its name, what it means."""

    name: str
    meaning: str


HOME = "PROCTOR_HOME"
EXECUTION_ID = "PROCTOR_EXECUTION_ID"

READ: tuple[Variable, ...] = (
    Variable(HOME, "the folder that holds runs, index and configuration state"),
    Variable("XDG_STATE_HOME", "base of the default home on Linux"),
    Variable("XDG_CONFIG_HOME", "base of the user's configuration, proctor/config.toml"),
    Variable("PROCTOR_ALLOW_NETWORK_HOME", "1 lets the home lie on a network file system"),
    Variable("LOCALAPPDATA", "base of the default home on Windows"),
    Variable("APPDATA", "base of the user's configuration on Windows"),
    Variable("NO_COLOR", "no colours in what the command line prints for people"),
    Variable("PROCTOR_DIALECT", "which shell takes a command's text"),
    Variable("PROCTOR_LOGIN", "whether that shell is a login shell"),
    Variable("PROCTOR_ON_LINGER", "stop or keep what is left when a command's root process has ended"),
    Variable("PROCTOR_TIMEOUT_S", "time limit of a command, in seconds, or none"),
    Variable("PROCTOR_MAXIMUM_TIMEOUT_S", "the longest time limit that may be asked for"),
    Variable("PROCTOR_IDLE_TIMEOUT_S", "how long a command may be without output, in seconds, or none"),
    Variable("PROCTOR_OUTPUT_LIMIT_BYTES", "how much a command may write before it is stopped, or none"),
    Variable("PROCTOR_GRACE_S", "seconds between asking a command to end and forcing it"),
    Variable("PROCTOR_KEPT_HEAD_BYTES", "how much of the beginning of the output is kept"),
    Variable("PROCTOR_KEPT_TAIL_BYTES", "how much of the end of the output is kept"),
    Variable("PROCTOR_STREAMS", "split or merged"),
    Variable("PROCTOR_ENV_ALLOW", "names, with commas between, that commands get although they look secret"),
    Variable("PROCTOR_ENV_WITHHOLD", "further name patterns, with commas between, that commands do not get"),
    Variable("PROCTOR_GC_OLDER_THAN_S", "how long ended executions are kept, in seconds"),
    Variable("PROCTOR_GC_MAX_BYTES", "how much room ended executions may take"),
    Variable("PROCTOR_SESSION_QUOTA", "how many unfinished executions a session may have"),
)

SET: tuple[Variable, ...] = (
    Variable("PROCTOR", "1 in every command that proctor runs"),
    Variable(EXECUTION_ID, "the id of the execution"),
    Variable("PROCTOR_SESSION", "the session's name; empty without one"),
    Variable("PROCTOR_WORKSPACE", "the workspace folder"),
    Variable("PROCTOR_SANDBOX", "the sandbox mode in force"),
    Variable("PROCTOR_NETWORK", "on, off or loopback"),
)

# Values that keep a program from waiting for a person; not set for a terminal.
QUIET: dict[str, str] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "TERM": "dumb",
    "NO_COLOR": "1",
}

SECRET_WORDS = frozenset(
    {"SECRET", "SECRETS", "TOKEN", "TOKENS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY"}
)
SECRET_TAILS = ("_KEY", "_API_KEY", "_ACCESS_KEY", "_PRIVATE_KEY", "_AUTH", "_PAT", "_DSN", "_CONNECTION_STRING", "_DATABASE_URL")


@cache
def is_secret_name(name: str) -> bool:
    """Tell whether a variable of this name is withheld from commands unless it was asked for by name."""
    upper = name.upper()
    return not SECRET_WORDS.isdisjoint(upper.split("_")) or upper.endswith(SECRET_TAILS) or upper == "DATABASE_URL"
