"""Inside is what the kernel would reach, not what the text looks like."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.workspace import inside

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.requirement("I2-workspace")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make ``root`` with a folder, links in and out of it, and a neighbour whose name begins the same."""
    (tmp_path / "root" / "folder").mkdir(parents=True)
    (tmp_path / "root-neighbour").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "dangling").symlink_to(tmp_path / "outside" / "not-there")
    (tmp_path / "root" / "loop").symlink_to("loop")
    (tmp_path / "in").symlink_to(tmp_path / "root" / "folder")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("root", True),
        ("root/", True),
        ("root/folder", True),
        ("root/new/deep/file", True),
        ("root/folder/../folder/x", True),
        ("in", True),
        ("in/x", True),
        ("in/../folder", True),  # `..` of the link's target
        (".", False),
        ("root/..", False),
        ("root/folder/../../outside", False),
        ("root-neighbour", False),
        ("outside", False),
        ("root/out", False),
        ("root/out/x", False),
        ("root/out/../root/folder", True),
        ("root/dangling", False),
        ("root/new\0", False),
    ],
)
def test_a_path_is_inside_when_its_real_place_is(tree: Path, path: str, *, expected: bool) -> None:
    assert inside(os.path.join(tree, path), [str(tree / "root")]) is expected


def test_the_root_itself_may_be_named_through_a_link(tree: Path) -> None:
    assert inside(str(tree / "root" / "folder" / "x"), [str(tree / "in")])


def test_any_of_several_roots_will_do_and_none_is_never_enough(tree: Path) -> None:
    roots = [str(tree / "root"), str(tree / "outside")]
    assert inside(str(tree / "root" / "out" / "x"), roots)
    assert not inside(str(tree / "root"), [])
    assert not inside("", roots)
    assert not inside(str(tree), ["", str(tree / "not-there")])


def test_a_relative_path_counts_from_the_working_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "root")
    assert inside("folder", [str(tree / "root")])
    assert not inside("../outside", [str(tree / "root")])


def test_everything_is_inside_the_root_of_the_file_system(tree: Path) -> None:
    assert inside(str(tree), ["/"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "root", "folder", "out", "in", "outside", "new", "dangling"]), max_size=8))
def test_inside_agrees_with_where_the_kernel_arrives(tree: Path, parts: list[str]) -> None:
    path = os.path.join(tree, *parts)
    if os.path.exists(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            arrived = os.readlink(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        root = str(tree / "root")
        assert inside(path, [root]) is (arrived == root or arrived.startswith(root + "/"))
