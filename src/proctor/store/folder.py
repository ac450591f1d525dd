"""A run folder from the host's side: made, locked, described, and later read by anybody of the same user.

Start order (DESIGN section 4): the host makes the folder, locks ``lock``, writes ``spec.json``, hands the locked descriptor to the
keeper and closes its own. The lock belongs to the open file, so it is free exactly when no keeper lives: no pid is asked.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from typing import TYPE_CHECKING

from ..errors import ErrorCode, ExecutionError, StoreError
from ..execution import Spec, decode, read_journal
from ..execution.layout import JOURNAL, LOCK, RUNS, SPEC, TOKEN

if TYPE_CHECKING:
    from ..execution import JournalContent

__all__ = ["RunFolder"]

NEW_LOCK = f"{LOCK}.new"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_OLD = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


class RunFolder:
    """One run folder, held open; ``lock`` is the locked descriptor between creation and hand-over, else ``None``."""

    def __init__(self, path: str, descriptor: int, lock: int | None = None) -> None:
        self.path = path
        self.descriptor = descriptor
        self.lock = lock

    @classmethod
    def create(cls, home: str, execution_id: str, spec_json: bytes) -> RunFolder:
        """Make the folder of a new execution, locked; raises ``store_unavailable`` and leaves nothing behind when it cannot."""
        path = os.path.join(home, RUNS, execution_id)
        try:
            os.mkdir(path, 0o700)
            folder = cls(path, os.open(path, _FOLDER))
        except OSError as error:
            raise _unavailable(path, error) from error
        try:
            # Locked before it has its name: a host that looks in between would take the start for an abandoned one.
            folder.lock = os.open(
                NEW_LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=folder.descriptor
            )
            fcntl.flock(folder.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(NEW_LOCK, LOCK, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
            folder._write(SPEC, spec_json)
        except OSError as error:
            folder.discard()
            raise _unavailable(path, error) from error
        return folder

    @classmethod
    def open(cls, home: str, execution_id: str) -> RunFolder:
        """Open an existing folder; raises ``unknown_execution`` when there is none."""
        path = os.path.join(home, RUNS, execution_id)
        try:
            return cls(path, os.open(path, _FOLDER))
        except FileNotFoundError as error:
            message = f"Execution {execution_id} has no run folder any more."
            raise ExecutionError(ErrorCode.UNKNOWN_EXECUTION, message, "See `proctor ps --all` for those that are kept.") from error
        except OSError as error:
            raise _unavailable(path, error) from error

    @classmethod
    def glance(cls, home: str, execution_id: str) -> tuple[bool, int]:
        """Tell whether a keeper lives and how long the journal is (bytes, -1 without one), at the price of a few system calls."""
        path = os.path.join(home, RUNS, execution_id)
        try:
            alive = _is_locked(f"{path}/{LOCK}", None)
            return alive, os.stat(f"{path}/{JOURNAL}").st_size
        except OSError:
            return False, -1

    def close(self) -> None:
        """Close the descriptors; a lock that was not handed on is free with that."""
        self.release_lock()
        os.close(self.descriptor)

    def release_lock(self) -> None:
        """Close the host's copy of the lock."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def discard(self) -> None:
        """Remove a folder in which nothing ran, and close it."""
        for name in os.listdir(self.descriptor):
            os.unlink(name, dir_fd=self.descriptor)
        os.rmdir(self.path)
        self.close()

    def keeper_alive(self) -> bool:
        """Tell whether a keeper (or a host between creation and hand-over) holds the lock."""
        try:
            return _is_locked(LOCK, self.descriptor)
        except FileNotFoundError:
            return False

    def has_traces_of_a_keeper(self) -> bool:
        """Tell whether there is anything that only a keeper makes: then a command may have run, whatever the journal still says."""
        return any(name not in {LOCK, SPEC} for name in os.listdir(self.descriptor))

    def spec(self) -> Spec:
        """Read ``spec.json``; raises ``store_corrupt`` when it is not believable."""
        try:
            return decode(Spec, json.loads(self._read(SPEC)))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"The run folder {self.path} has no readable spec.json ({error})."
            raise StoreError(
                ErrorCode.STORE_CORRUPT, message, "Its output is still there; remove the folder when you no longer need it."
            ) from error

    def journal(self) -> JournalContent:
        """Read the believable beginning of the journal."""
        try:
            return read_journal(self._read(JOURNAL))
        except FileNotFoundError:
            return read_journal(b"")

    def token(self) -> str:
        """Read the token that a control request must carry."""
        return self._read(TOKEN).decode().strip()

    def _write(self, name: str, data: bytes) -> None:
        descriptor = os.open(name, _NEW, 0o600, dir_fd=self.descriptor)
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> bytes:
        with open(os.open(name, _OLD, dir_fd=self.descriptor), "rb") as file:
            return file.read()


def _is_locked(path: str, folder: int | None) -> bool:
    probe = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    try:
        fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(probe)
    return False


def _unavailable(path: str, error: OSError) -> StoreError:
    hints = {
        errno.ENOSPC: "Free some disk space (proctor gc removes old executions), then try again.",
        errno.EDQUOT: "Free some of your quota (proctor gc removes old executions), then try again.",
        errno.EACCES: "Give this user write access to it, or set PROCTOR_HOME to a folder that it may write.",
        errno.EROFS: "Set PROCTOR_HOME to a folder on a file system that can be written.",
    }
    hint = hints.get(error.errno or 0, "Check the folder, or set PROCTOR_HOME to another one.")
    return StoreError(ErrorCode.STORE_UNAVAILABLE, f"The run folder {path} cannot be used: {error.strerror}; nothing was started.", hint)
