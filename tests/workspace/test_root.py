"""The workspace is the one given, else where ``.git`` lies, else the working directory, and never everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proctor.errors import ErrorCode, RequestError
from proctor.workspace import Workspace, find

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.requirement("I2-workspace")


def test_the_nearest_folder_with_a_git_mark_above_is_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "outer" / ".git").mkdir(parents=True)
    (tmp_path / "outer" / "inner" / "deep").mkdir(parents=True)
    assert find(str(tmp_path / "outer" / "inner" / "deep"), home=None) == Workspace(str(tmp_path / "outer"))
    (tmp_path / "outer" / "inner" / ".git").write_text("gitdir: elsewhere\n")  # a linked worktree
    assert find(str(tmp_path / "outer" / "inner" / "deep"), home=None).root == str(tmp_path / "outer" / "inner")
    assert find(str(tmp_path / "outer" / "inner"), home=None).root == str(tmp_path / "outer" / "inner")


def test_without_a_mark_the_working_directory_is_the_workspace_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert find(str(tmp_path / "link"), home=None).root == str(tmp_path / "real")


def test_the_given_folder_wins(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "given").mkdir()
    assert find(str(tmp_path), str(tmp_path / "given"), home=None).root == str(tmp_path / "given")


@pytest.mark.parametrize("given", ["missing", "file", "nul\0"])
def test_a_given_workspace_that_is_no_folder_is_refused(tmp_path: Path, given: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError) as caught:
        find(str(tmp_path), str(tmp_path / given), home=None)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("given", [None, "/", "/tmp/.."])
def test_the_root_of_the_file_system_is_refused_and_the_error_says_what_to_do(given: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        find("/", given, home=None)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert "--workspace" in caught.value.hint


@pytest.mark.parametrize("given", [True, False])
def test_the_home_folder_is_a_workspace_with_a_notice_only(tmp_path: Path, *, given: bool) -> None:
    workspace = find(str(tmp_path), str(tmp_path) if given else None, home=str(tmp_path))
    assert workspace.root == str(tmp_path)
    (notice,) = workspace.notices
    assert notice.startswith("workspace_is_home: ")
    (tmp_path / "project").mkdir()
    assert find(str(tmp_path / "project"), home=str(tmp_path)).notices == ()
