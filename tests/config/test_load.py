"""Which layer wins, what a workspace may do, and what is said about a file that is wrong."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.config import KEYS, Face, Resolved, Settings, defaults, load, user_file, workspace_file
from proctor.data import field_names
from proctor.env import READ
from proctor.errors import ErrorCode, RequestError
from proctor.execution import Lifetime, OnLinger, Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Load = Callable[..., Resolved]


@pytest.fixture
def resolve(tmp_path: Path) -> Load:
    def run(
        *, user: str = "", workspace: str = "", environ: Mapping[str, str] | None = None, base: Face = Face.CLI_RUN, **given: Any
    ) -> Resolved:
        places = {user_file({}, "linux", str(tmp_path / "u")): user, workspace_file(str(tmp_path / "w")): workspace}
        for place, text in places.items():
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if text:
                with open(place, "w", encoding="utf-8") as file:
                    file.write(text)
        return load(
            environ or {}, workspace=str(tmp_path / "w"), platform="linux", user_home=str(tmp_path / "u"), arguments=given, base=base
        )

    return run


def test_every_setting_is_a_key_and_every_key_a_setting() -> None:
    assert list(field_names(Settings)) == list(KEYS)


def test_every_environment_variable_that_is_read_is_in_the_registry() -> None:
    registered = {variable.name for variable in READ}
    assert {f"PROCTOR_{key.name.upper()}" for key in KEYS.values() if key.parse is not None} <= registered
    assert "PROCTOR_LIFETIME" not in registered


def test_without_files_everything_is_built_in(resolve: Load) -> None:
    resolved = resolve()
    assert resolved.settings == defaults(Face.CLI_RUN)
    assert set(resolved.origins) == set(KEYS)
    assert set(resolved.origins.values()) == {"built-in"}
    assert resolved.notices == ()


@pytest.mark.requirement("I2-config")
def test_argument_wins_over_environment_over_workspace_over_user_over_built_in(resolve: Load, tmp_path: Path) -> None:
    layers: dict[str, Any] = {
        "user": "timeout_s = 50\ngrace_s = 2.5\nsession_quota = 6\nlogin = false",
        "workspace": "timeout_s = 40\ngrace_s = 1\nsession_quota = 5",
        "environ": {"PROCTOR_TIMEOUT_S": "300", "PROCTOR_SESSION_QUOTA": "40"},
    }
    resolved = resolve(**layers, timeout_s=20)
    user, workspace = user_file({}, "linux", str(tmp_path / "u")), workspace_file(str(tmp_path / "w"))
    settings = resolved.settings
    assert (settings.timeout_s, resolved.origins["timeout_s"]) == (20, "argument")
    assert (settings.session_quota, resolved.origins["session_quota"]) == (40, "environment PROCTOR_SESSION_QUOTA")
    assert (settings.grace_s, resolved.origins["grace_s"]) == (1, workspace)
    assert (settings.login, resolved.origins["login"]) == (False, user)
    assert (settings.dialect, resolved.origins["dialect"]) == (None, "built-in")
    assert resolved.notices == ()


TIGHTER = {
    "timeout_s": ("60", "30", 30.0),
    "maximum_timeout_s": ("600", "300", 300.0),
    "idle_timeout_s": ('"none"', "30", 30.0),
    "output_limit_bytes": ('"none"', "1000", 1000),
    "grace_s": ("5", "0", 0.0),
    "session_quota": ("8", "1", 1),
    "on_linger": ('"keep"', '"stop"', OnLinger.STOP),
    "lifetime": ('"detached"', '"session"', Lifetime.SESSION),
    "env_allow": ('["A_TOKEN", "B_TOKEN"]', '["B_TOKEN"]', ("B_TOKEN",)),
    "env_withhold": ('["A*"]', '["B*"]', ("A*", "B*")),
}


@pytest.mark.requirement("I2-config")
@pytest.mark.parametrize("key", TIGHTER)
def test_a_workspace_may_tighten(resolve: Load, key: str) -> None:
    user, workspace, effective = TIGHTER[key]
    resolved = resolve(user=f"{key} = {user}", workspace=f"{key} = {workspace}")
    assert getattr(resolved.settings, key) == effective
    assert resolved.origins[key].endswith(os.path.join("w", ".proctor", "config.toml"))
    assert resolved.notices == ()


@pytest.mark.requirement("I2-config")
@pytest.mark.parametrize("key", [key for key in TIGHTER if key != "env_withhold"])
def test_what_a_workspace_would_loosen_is_ignored_with_a_notice(resolve: Load, key: str) -> None:
    looser, tighter, effective = TIGHTER[key]
    resolved = resolve(user=f"{key} = {tighter}", workspace=f"{key} = {looser}")
    assert getattr(resolved.settings, key) == effective
    (notice,) = resolved.notices
    assert notice.startswith("config_ignored: ")
    assert f"{key} = " in notice
    if key != "env_allow":  # of a list the part that is no looser counts
        assert resolved.origins[key].endswith(os.path.join("u", ".config", "proctor", "config.toml"))


@pytest.mark.parametrize("line", ['dialect = "none"', "login = true", "kept_tail_bytes = 0", "gc_max_bytes = 0", 'streams = "merged"'])
def test_a_workspace_decides_nothing_about_shell_evidence_and_history(resolve: Load, line: str) -> None:
    resolved = resolve(workspace=line)
    assert resolved.settings == defaults(Face.CLI_RUN)
    (notice,) = resolved.notices
    assert "not for a workspace to set" in notice


def test_a_workspace_cannot_loosen_what_no_file_set(resolve: Load) -> None:
    resolved = resolve(workspace='timeout_s = "none"\nenv_allow = ["AWS_SECRET_ACCESS_KEY"]', base=Face.TOOL_FOREGROUND)
    assert resolved.settings == defaults(Face.TOOL_FOREGROUND)
    assert len(resolved.notices) == 2


limits = st.one_of(st.none(), st.integers(1, 10_000))


@given(limits, limits)
def test_a_tighter_limit_is_never_above_either(current: int | None, wanted: int | None) -> None:
    tighten = KEYS["timeout_s"].tighten
    assert tighten is not None
    given_values = [value for value in (current, wanted) if value is not None]
    assert tighten(current, wanted) == (min(given_values) if given_values else None)


WRONG = [
    "timeout_s = 0",
    "timeout_s = -1",
    "timeout_s = true",
    "timeout_s = nan",
    'timeout_s = "soon"',
    'maximum_timeout_s = "none"',
    "output_limit_bytes = 1.5",
    "session_quota = 0",
    'dialect = "fish"',
    "dialect = 1",
    'lifetime = "forever"',
    'on_linger = "ask"',
    'streams = "one"',
    'login = "yes"',
    'env_allow = "A"',
    "env_allow = [1]",
]


@pytest.mark.parametrize("line", WRONG)
@pytest.mark.parametrize("layer", ["user", "workspace"])
def test_a_wrong_value_is_an_error_that_names_file_key_and_what_it_takes(resolve: Load, layer: str, line: str) -> None:
    with pytest.raises(RequestError) as caught:
        resolve(**{layer: line})
    key = line.split(" ", maxsplit=1)[0]
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert os.path.join("proctor", "config.toml") in caught.value.message.replace(".proctor", "proctor")
    assert f"{key} is " in caught.value.message
    assert KEYS[key].takes in caught.value.hint


@pytest.mark.parametrize("layer", ["user", "workspace"])
def test_an_unknown_key_is_an_error_that_lists_the_known_ones(resolve: Load, layer: str) -> None:
    with pytest.raises(RequestError, match="timeuot_s") as caught:
        resolve(**{layer: "timeuot_s = 5"})
    assert "timeout_s" in caught.value.hint


@pytest.mark.parametrize("text", ["timeout_s = ", "[[[", "a\0b"])
def test_a_file_that_is_no_toml_is_an_error_that_names_it(resolve: Load, text: str) -> None:
    with pytest.raises(RequestError, match=r"config\.toml cannot be used: it is not valid TOML"):
        resolve(user=text)


def test_a_wrong_variable_is_an_error_that_names_it(resolve: Load) -> None:
    with pytest.raises(RequestError, match="PROCTOR_GRACE_S") as caught:
        resolve(environ={"PROCTOR_GRACE_S": "long"})
    assert "seconds" in caught.value.hint


def test_the_environment_speaks_of_every_kind_of_value(resolve: Load) -> None:
    environ = {
        "PROCTOR_LOGIN": "No",
        "PROCTOR_TIMEOUT_S": "none",
        "PROCTOR_GRACE_S": "0.5",
        "PROCTOR_STREAMS": "merged",
        "PROCTOR_ENV_ALLOW": "A_TOKEN, B_TOKEN,",
        "PROCTOR_DIALECT": "",
    }
    settings = resolve(environ=environ, base=Face.TOOL_FOREGROUND).settings
    assert settings.login is False
    assert settings.timeout_s is None
    assert settings.grace_s == 0.5
    assert settings.streams is Streams.MERGED
    assert settings.env_allow == ("A_TOKEN", "B_TOKEN")
    assert settings.dialect is None


def test_arguments_may_say_none_and_are_checked_like_the_rest(resolve: Load) -> None:
    assert resolve(timeout_s=None, base=Face.TOOL_FOREGROUND).settings.timeout_s is None
    assert resolve(lifetime=Lifetime.DETACHED).settings.lifetime is Lifetime.DETACHED
    with pytest.raises(RequestError, match="argument: timeout_s is 0"):
        resolve(timeout_s=0)


@pytest.mark.posix
def test_a_workspace_file_that_is_a_link_or_a_fifo_is_refused_at_once(resolve: Load, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("needs POSIX users and files")
    place = workspace_file(str(tmp_path / "w"))
    os.makedirs(os.path.dirname(place))
    os.mkfifo(place)
    with pytest.raises(RequestError, match="not a regular file"):
        resolve()
    os.unlink(place)
    os.symlink("/dev/zero", place)
    with pytest.raises(RequestError, match="symbolic link"):
        resolve()


def test_the_users_file_may_be_a_link_into_dotfiles(resolve: Load, tmp_path: Path) -> None:
    place = user_file({}, "linux", str(tmp_path / "u"))
    os.makedirs(os.path.dirname(place))
    (tmp_path / "dotfile").write_text("grace_s = 9")
    os.symlink(tmp_path / "dotfile", place)
    assert resolve().settings.grace_s == 9


def test_the_users_file_lies_where_each_platform_keeps_such_files() -> None:
    assert user_file({}, "linux", "/home/a") == "/home/a/.config/proctor/config.toml"
    assert user_file({"XDG_CONFIG_HOME": "/c"}, "linux", "/home/a") == "/c/proctor/config.toml"
    assert user_file({"XDG_CONFIG_HOME": "relative"}, "linux", "/home/a") == "/home/a/.config/proctor/config.toml"
    assert user_file({}, "darwin", "/Users/a") == "/Users/a/Library/Application Support/proctor/config.toml"
    assert user_file({"APPDATA": "C:\\r"}, "win32", "C:\\a") == "C:\\r\\proctor\\config.toml"
    assert user_file({}, "win32", "C:\\a") == "C:\\a\\AppData\\Roaming\\proctor\\config.toml"
