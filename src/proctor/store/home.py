"""Where proctor keeps its runs and its index, and whether that folder can be trusted with them.

``home_path`` decides by name only; ``open_home`` makes the folder (0700, with ``runs/``) or says in one sentence why it cannot be used.
SQLite's write-ahead log needs shared memory and the keepers need locks that die with their owner; a network file system gives neither for
sure, so it is refused unless it was chosen on purpose.
"""

from __future__ import annotations

import errno
import ntpath
import os
import posixpath
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from ..env import HOME
from ..errors import ErrorCode, RequestError, StoreError
from ..execution.layout import RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["filesystem_of", "home_path", "is_network_filesystem", "open_home"]

_PRIVATE = 0o700
_NETWORK_TYPES = frozenset(
    {
        "9p",
        "acfs",
        "afp",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fhgfs",
        "fuse.ceph",
        "fuse.ceph-fuse",
        "fuse.davfs2",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "sshfs",
        "webdav",
    }
)
_ADVICE = {
    errno.ENOSPC: "Free some space on that disk, or set PROCTOR_HOME to a folder on another one.",
    errno.EDQUOT: "Free some of your disk quota, or set PROCTOR_HOME to a folder on another disk.",
    errno.EROFS: "Set PROCTOR_HOME to a folder on a disk that can be written.",
}
_OTHERWISE = "Set PROCTOR_HOME to a folder that you own and can write."


def home_path(environ: Mapping[str, str], platform: str, user_home: str) -> str:
    """Return the home's path: ``$PROCTOR_HOME``, else the state folder of this user on ``platform`` (``sys.platform``'s names).

    Raises ``RequestError`` when PROCTOR_HOME is set to a relative path, which would name another home in each folder.
    """
    path = ntpath if platform == "win32" else posixpath
    chosen = environ.get(HOME)
    if chosen:
        if not path.isabs(chosen):
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{HOME} is {chosen!r}, a relative path.", "Set it to an absolute path.")
        return chosen
    if platform == "win32":
        return ntpath.join(environ.get("LOCALAPPDATA") or ntpath.join(user_home, "AppData", "Local"), "proctor")
    if platform == "darwin":
        return posixpath.join(user_home, "Library", "Application Support", "proctor")
    state = environ.get("XDG_STATE_HOME", "")
    base = state if posixpath.isabs(state) else posixpath.join(user_home, ".local", "state")
    return posixpath.join(base, "proctor")


def open_home(path: str, *, allow_network: bool) -> str:
    """Make the home and its ``runs/`` if they are not there, check both, and return the home's real path.

    Raises ``StoreError`` (store_unavailable) naming the path and the reason: not a folder, not writable, someone else's, on a network
    file system, or a folder that other files already live in and other users may read.
    """
    home = os.path.realpath(path)
    try:
        _make(home)
        _make_private(home)
        runs = os.path.join(home, RUNS)
        if not stat.S_ISDIR(_status_or_make(runs).st_mode):
            raise _refuse(home, f"{runs} is not a folder", _OTHERWISE)
    except OSError as error:
        raise _refuse(home, error.strerror or str(error), _ADVICE.get(error.errno or 0, _OTHERWISE)) from error
    if not os.access(home, os.W_OK | os.X_OK) or not os.access(runs, os.W_OK | os.X_OK):
        raise _refuse(home, "it cannot be written", _OTHERWISE)
    if not allow_network:
        _check_local(home)
    return home


def _make(home: str) -> None:
    try:
        os.mkdir(home, _PRIVATE)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(os.path.dirname(home), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(home, _PRIVATE)


def _make_private(home: str) -> None:
    status = os.stat(home)
    if not stat.S_ISDIR(status.st_mode):
        raise _refuse(home, "it is not a folder", _OTHERWISE)
    user = getattr(os, "geteuid", None)  # absent on Windows, where neither owner nor mode bits say who may read
    if user is None:
        return
    if status.st_uid != user():
        raise _refuse(home, f"it belongs to user {status.st_uid}, and this process runs as user {user()}", _OTHERWISE)
    if stat.S_IMODE(status.st_mode) & 0o777 == _PRIVATE:
        return
    # Closing a folder that was handed in by mistake (/tmp, a project) to everyone else would do damage elsewhere.
    names = os.listdir(home)
    if names and RUNS not in names:
        raise _refuse(
            home, "it holds other files and is open to other users", "Name an empty or new folder, or make this one private (chmod 700)."
        )
    os.chmod(home, _PRIVATE)


def _status_or_make(folder: str) -> os.stat_result:
    try:
        return os.stat(folder)
    except FileNotFoundError:
        os.makedirs(folder, _PRIVATE, exist_ok=True)
        return os.stat(folder)


def _check_local(home: str) -> None:
    if home.startswith(("\\\\", "//")):
        kind: str | None = "share"
    else:
        kind = filesystem_of(os.stat(home).st_dev, home)
    if kind is not None and (kind == "share" or is_network_filesystem(kind)):
        raise _refuse(
            home,
            f"it lies on a network file system ({kind}), where locks and the index are not safe",
            "Set PROCTOR_HOME to a folder on a local disk, or PROCTOR_ALLOW_NETWORK_HOME=1 to use it all the same.",
        )


def is_network_filesystem(kind: str) -> bool:
    """Tell whether a file system type, as the mount table spells it, is served by another machine."""
    return kind.lower() in _NETWORK_TYPES


def filesystem_of(device: int, path: str) -> str | None:
    """Return the type of the file system of ``path`` on ``device``; ``None`` when it is on a disk of this machine or cannot be told."""
    numbers = [split(device) for name in ("major", "minor") if (split := getattr(os, name, None)) is not None]
    if not numbers or numbers[0]:
        return None  # a block device; network, fuse, overlay and memory file systems have major number 0
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
            return type_in(table.read(), ":".join(map(str, numbers)), path)
    except OSError:
        return None


def type_in(mountinfo: str, device: str, path: str) -> str | None:
    """Return the type of the mount with this device, else of the deepest mount above ``path`` (proc_pid_mountinfo(5))."""
    deepest, kind = "", None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if not after or len(fields) < 5:  # noqa: PLR2004 - the fifth field is the mount point
            continue
        found = after.split(" ", 1)[0]
        if fields[2] == device:
            return found
        point = _unescaped(fields[4])  # btrfs gives each subvolume a device number that the table does not show
        if len(point) >= len(deepest) and (path + "/").startswith(point.rstrip("/") + "/"):
            deepest, kind = point, found
    return kind


def _unescaped(text: str) -> str:
    for code, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, letter)
    return text


def _refuse(home: str, why: str, hint: str) -> StoreError:
    return StoreError(ErrorCode.STORE_UNAVAILABLE, f"The folder for proctor's records, {home}, cannot be used: {why}.", hint)
