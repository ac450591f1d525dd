"""Where the home is, and which folders are refused with what reason."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from proctor.errors import ErrorCode, RequestError, StoreError
from proctor.store import home_path, open_home
from proctor.store.home import is_network_filesystem, type_in

if TYPE_CHECKING:
    from pathlib import Path

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
40 22 0:50 / /mnt/share rw,relatime - nfs4 server:/export rw,vers=4.2
41 22 0:51 / /mnt/with\040space rw - fuse.sshfs user@host:/ rw
42 22 0:52 / /data rw shared:5 master:1 - btrfs /dev/sdb rw
43 42 0:53 / /data/share rw - cifs //server/share rw
"""


def _refusal(path: object, *, allow_network: bool = True) -> StoreError:
    with pytest.raises(StoreError) as caught:
        open_home(str(path), allow_network=allow_network)
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert str(path) in caught.value.message
    assert "PROCTOR_HOME" in caught.value.hint or "private" in caught.value.hint
    return caught.value


def test_the_home_lies_where_each_platform_keeps_state() -> None:
    assert home_path({}, "linux", "/home/a") == "/home/a/.local/state/proctor"
    assert home_path({"XDG_STATE_HOME": "/s"}, "linux", "/home/a") == "/s/proctor"
    assert home_path({"XDG_STATE_HOME": "relative"}, "linux", "/home/a") == "/home/a/.local/state/proctor"
    assert home_path({}, "darwin", "/Users/a") == "/Users/a/Library/Application Support/proctor"
    assert home_path({"LOCALAPPDATA": "C:\\l"}, "win32", "C:\\a") == "C:\\l\\proctor"
    assert home_path({}, "win32", "C:\\a") == "C:\\a\\AppData\\Local\\proctor"


def test_the_variable_wins_everywhere_and_must_be_absolute() -> None:
    assert home_path({"PROCTOR_HOME": "/h", "XDG_STATE_HOME": "/s"}, "linux", "/home/a") == "/h"
    assert home_path({"PROCTOR_HOME": "D:\\h"}, "win32", "C:\\a") == "D:\\h"
    with pytest.raises(RequestError, match="absolute"):
        home_path({"PROCTOR_HOME": "h"}, "linux", "/home/a")


def test_a_new_home_is_private_with_its_runs_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = open_home(str(tmp_path / "a" / "b" / "home"), allow_network=True)
    finally:
        os.umask(before)
    assert home == str(tmp_path / "a" / "b" / "home")
    assert [os.stat(path).st_mode & 0o777 for path in (home, os.path.join(home, "runs"))] == [0o700, 0o700]
    assert open_home(home, allow_network=True) == home


def test_a_home_that_others_may_enter_is_closed_to_them(tmp_path: Path) -> None:
    home = open_home(str(tmp_path / "home"), allow_network=True)
    os.chmod(home, 0o750)  # noqa: S103 - what the test is about
    open_home(home, allow_network=True)
    assert os.stat(home).st_mode & 0o777 == 0o700


def test_an_open_folder_with_other_files_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project").chmod(0o755)
    (tmp_path / "project" / "file").write_text("")
    assert "other files" in _refusal(tmp_path / "project").message
    assert os.stat(tmp_path / "project").st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path / "project") == ["file"]


@pytest.mark.parametrize("below", ["", "deeper/home"])
def test_a_file_in_the_way_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    _refusal(tmp_path / "file" / below if below else tmp_path / "file")


def test_runs_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "runs").write_text("")
    assert "runs is not a folder" in _refusal(tmp_path / "home").message


@pytest.mark.posix
def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("needs POSIX users and files")
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    (tmp_path / "home").mkdir(mode=0o700)
    os.chown(tmp_path / "home", 65534, 65534)
    assert "user 65534" in _refusal(tmp_path / "home").message


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_home(str(tmp_path / "home"), allow_network=True)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere else, so the answer has to be played
    assert "cannot be written" in _refusal(home).message


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason() -> None:
    assert "No such file or directory" in _refusal("/proc/proctor-home/below").message


@pytest.mark.parametrize(
    ("device", "path", "kind"),
    [
        ("0:50", "/mnt/share/home", "nfs4"),
        ("0:51", "/mnt/with space/home", "fuse.sshfs"),
        ("0:99", "/mnt/with space/home", "fuse.sshfs"),
        ("0:99", "/data/sub/home", "btrfs"),
        ("0:99", "/data/share", "cifs"),
        ("0:99", "/database", "ext4"),
    ],
)
def test_the_mount_table_tells_the_file_system_of_a_path(device: str, path: str, kind: str) -> None:
    assert type_in(MOUNTS, device, path) == kind


def test_network_file_systems_are_known_by_name() -> None:
    assert all(map(is_network_filesystem, ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "afs", "ceph", "fuse.glusterfs", "lustre"]))
    assert not any(map(is_network_filesystem, ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "fuseblk", "apfs"]))


def test_a_network_home_is_refused_unless_it_was_chosen_on_purpose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.store.home.filesystem_of", lambda *_: "nfs4")
    assert "PROCTOR_ALLOW_NETWORK_HOME=1" in _refusal(tmp_path / "home", allow_network=False).hint
    open_home(str(tmp_path / "home"), allow_network=True)
