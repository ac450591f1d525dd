"""Each reason why a command cannot start in a folder has its own code, and the path in its message."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from proctor.errors import ErrorCode, RequestError
from proctor.workspace import check_cwd

if TYPE_CHECKING:
    from pathlib import Path


def _refusal(path: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        check_cwd(path)
    return caught.value


def test_a_folder_that_may_be_entered_is_fine(tmp_path: Path) -> None:
    check_cwd(str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)
    check_cwd(str(tmp_path / "link"))


@pytest.mark.requirement("O-SQ-05")
def test_missing_no_folder_and_not_accessible_are_told_apart_and_name_the_path(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    cases = {
        str(tmp_path / "missing"): ErrorCode.CWD_NOT_FOUND,
        "": ErrorCode.CWD_NOT_FOUND,
        str(tmp_path / "nul\0"): ErrorCode.CWD_NOT_FOUND,
        str(file): ErrorCode.CWD_NOT_A_DIRECTORY,
        str(file / "below"): ErrorCode.CWD_NOT_A_DIRECTORY,
        str(tmp_path / ("x" * 300)): ErrorCode.CWD_NOT_ACCESSIBLE,
    }
    for path, code in cases.items():
        refusal = _refusal(path)
        assert refusal.code is code
        assert repr(path) in refusal.message
        assert refusal.hint


@pytest.mark.posix
@pytest.mark.requirement("O-SQ-05")
@pytest.mark.parametrize("below", ["", "child"])
def test_a_folder_without_permission_is_not_accessible_for_a_plain_user(tmp_path: Path, below: str) -> None:
    if sys.platform == "win32":
        pytest.skip("needs POSIX users and files")
    closed = tmp_path / "closed"
    (closed / "child").mkdir(parents=True)
    for folder in (*reversed(tmp_path.parents), tmp_path):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    closed.chmod(0)
    path = str(closed / below) if below else str(closed)
    try:
        if os.geteuid() == 0:
            check_cwd(path)  # permission bits do not count for root
            os.seteuid(65534)
        assert _refusal(path).code is ErrorCode.CWD_NOT_ACCESSIBLE
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        closed.chmod(0o755)
