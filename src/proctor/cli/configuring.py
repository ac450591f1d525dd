"""The settings that hold for one command line: flags over environment over the workspace's file over the user's file over the built-in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .. import dialects, workspace
from ..config import Face, load
from ..errors import RequestError

if TYPE_CHECKING:
    from argparse import Namespace

    from ..config import Resolved

__all__ = ["settings_here", "settings_of_run"]

_FLAGS = {
    "shell": "dialect",
    "login": "login",
    "lifetime": "lifetime",
    "on_linger": "on_linger",
    "timeout": "timeout_s",
    "idle_timeout": "idle_timeout_s",
    "output_limit": "output_limit_bytes",
    "grace": "grace_s",
    "streams": "streams",
}


def settings_of_run(arguments: Namespace) -> Resolved:
    """Return the settings of ``proctor run`` with these flags; raises ``invalid_request`` for what no setting can be."""
    given = {key: getattr(arguments, flag) for flag, key in _FLAGS.items() if getattr(arguments, flag) is not None}
    face = Face.CLI_BACKGROUND if arguments.background else Face.CLI_RUN
    return _loaded(arguments.cwd or ".", arguments.workspace, given, face)


def settings_here() -> Resolved:
    """Return the settings in force in the present folder, without flags."""
    return _loaded(".", None, {}, Face.CLI_RUN)


def _loaded(cwd: str, given_workspace: str | None, arguments: dict[str, Any], face: Face) -> Resolved:
    user_home = os.path.expanduser("~")
    return load(
        os.environ,
        workspace=_root(cwd, given_workspace, user_home),
        platform=dialects.platform_name(),
        user_home=user_home,
        arguments=arguments,
        base=face,
    )


def _root(cwd: str, given: str | None, user_home: str) -> str | None:
    try:
        workspace.check_cwd(os.path.abspath(cwd))
        return workspace.find(cwd, given, home=user_home).root
    except RequestError:
        return None  # the start itself says what is wrong with a folder that was named
    except FileNotFoundError:
        return None  # the working directory is gone
