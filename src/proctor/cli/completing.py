"""``proctor completion``: a script for bash, zsh or fish, made from the parser itself, so that it knows every command and flag there is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .exits import SUCCESS
from .parser import build_parser
from .printing import out

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["execute", "script_for"]

_TAKES_IDS = ("show", "logs", "wait", "stop", "send")
_LIST_IDS = "proctor ps --all --limit 50 2>/dev/null | awk 'NR > 1 {print $1}'"


def execute(arguments: Namespace) -> int:
    """Print the script."""
    out(script_for(arguments.shell))
    return SUCCESS


def script_for(shell: str) -> str:
    """Return the completion script of a shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](_flags())


def _flags() -> dict[str, list[tuple[str, str]]]:
    """Return, for each command, its flags with their help."""
    parser = build_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: [(flag, action.help or "") for action in one._actions for flag in action.option_strings]
        for name, one in commands.choices.items()
    }


def _bash(flags: dict[str, list[tuple[str, str]]]) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join(flag for flag, _ in options)}" ;;' for name, options in flags.items())
    return f"""\
# Completion of proctor for bash: source it, as in  eval "$(proctor completion bash)"
_proctor() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do [ "$word" = "--" ] && {{ COMPREPLY=($(compgen -c -- "$current")); return; }}; done
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(flags)} --version --help" -- "$current")); return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "${{COMP_WORDS[1]}}" in
    {"|".join(_TAKES_IDS)}) [[ "$current" == -* ]] || words="$({_LIST_IDS})" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _proctor proctor"""


def _zsh(flags: dict[str, list[tuple[str, str]]]) -> str:
    cases = "\n".join(f"    {name}) compadd -- {' '.join(flag for flag, _ in options)} ;;" for name, options in flags.items())
    return f"""\
#compdef proctor
# Completion of proctor for zsh: put it into a folder of $fpath as _proctor, or  eval "$(proctor completion zsh)"
_proctor() {{
  if (( CURRENT == 2 )); then compadd -- {" ".join(flags)} --version --help; return; fi
  if (( ${{words[(I)--]}} > 0 && ${{words[(I)--]}} < CURRENT )); then _normal; return; fi
  if [[ ${{words[2]}} == ({"|".join(_TAKES_IDS)}) && ${{words[CURRENT]}} != -* ]]; then compadd -- ${{(f)"$({_LIST_IDS})"}}; return; fi
  case ${{words[2]}} in
{cases}
  esac
  _files
}}
compdef _proctor proctor"""


def _fish(flags: dict[str, list[tuple[str, str]]]) -> str:
    lines = ["# Completion of proctor for fish: save it as ~/.config/fish/completions/proctor.fish", "complete -c proctor -f"]
    commands = " ".join(flags)
    lines.append(f"complete -c proctor -n 'not __fish_seen_subcommand_from {commands}' -a '{commands}'")
    for name, options in flags.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        if name in _TAKES_IDS:
            lines.append(f'complete -c proctor {seen} -a "({_LIST_IDS.replace("$", chr(92) + "$")})"')
        for flag, summary in options:
            kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            text = summary.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"complete -c proctor {seen} {kind} -d '{text}'")
    return "\n".join(lines)
