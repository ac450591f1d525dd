"""The parser as data: complete, described, and cheap to build."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import import_module

import pytest

from proctor import __version__
from proctor.cli import build_parser
from proctor.cli.main import _MODULES
from proctor.cli.parser import COMMANDS

HEAVY = ("asyncio", "subprocess", "logging", "inspect", "pathlib", "tempfile", "urllib.request", "chardet", "rich", "tomllib")


def commands() -> dict[str, argparse.ArgumentParser]:
    actions = build_parser()._actions
    return next(dict(action.choices) for action in actions if isinstance(action, argparse._SubParsersAction))


def test_every_command_is_described_and_can_be_carried_out() -> None:
    assert set(commands()) == set(COMMANDS) == set(_MODULES)
    for name, parser in commands().items():
        assert callable(import_module(f"proctor.cli.{_MODULES[name][0]}").execute)
        assert all(action.help for action in parser._actions), name


def test_the_parser_of_one_command_is_the_same_as_in_the_whole() -> None:
    whole = commands()
    for name in COMMANDS:
        alone = next(action.choices[name] for action in build_parser(name)._actions if isinstance(action, argparse._SubParsersAction))
        assert alone.format_help() == whole[name].format_help()


@pytest.mark.requirement("I2-start-up")
def test_the_version_is_told_without_loading_anything() -> None:
    code = "import sys; sys.argv[1:] = ['--version']; from proctor.__main__ import main; main(); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=_environ(), timeout=10)
    assert done.stdout == f"proctor {__version__}\n"
    loaded = set(done.stderr.split())
    assert {name for name in loaded if name.startswith("proctor")} == {"proctor", "proctor.__main__"}
    assert not loaded & {"argparse", "typing", "re", "dataclasses"}


@pytest.mark.requirement("I2-start-up")
def test_a_run_loads_nothing_heavy(home: str) -> None:
    code = (
        "import sys; from proctor.cli import main; code = main(['run', '--shell', 'none', '--', 'true']);"
        "print(code, *sys.modules, file=sys.stderr)"
    )
    environ = {**_environ(), "PROCTOR_HOME": home, "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=environ, timeout=20)
    code_shown, *loaded = done.stderr.split()
    assert code_shown == "0"
    assert not set(loaded) & set(HEAVY)


def _environ() -> dict[str, str]:
    package = import_module("proctor").__path__[0]
    return {"PYTHONPATH": package.rpartition("/")[0]}
