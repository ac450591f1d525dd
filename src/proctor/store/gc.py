"""Clearing the home: ended executions and patches that are old, then the oldest until the rest fits; never anything unfinished or held.

``plan_gc`` decides from plain data, ``collect`` carries it out, ``due`` lets one host a day do it. A folder is first moved to
``runs/.removed`` in one step, then its row goes, then its files: whatever a crash leaves behind, the next collection finds there and
finishes. Nothing is ever followed through a symlink.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from ..data import Data
from ..errors import ProctorError
from ..execution import is_id, milliseconds_of
from ..execution.layout import LOCK, RUNS
from .folder import RunFolder
from .lock import try_lock
from .rebuild import Stage, stage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .index import Index

__all__ = ["DAY_S", "Entry", "GcReport", "collect", "due", "plan_gc"]

DAY_S = 86_400.0
PATCHES = "patches"
_STAMP = "gc.stamp"
_REMOVED = ".removed"
_LONGEST_STAMP = 32


class Entry(Data):
    """One folder that may be removed: an ended execution or a patch, since when (seconds since 1970), and how large it is on disk."""

    id: str
    folder: str
    ended_at_s: float
    size_bytes: int


class GcReport(Data):
    """What was removed (or, in a dry run, would be), how many bytes that frees, how many entries stay, and what could not be removed."""

    removed: tuple[str, ...]
    freed_bytes: int
    kept: int
    skipped: tuple[str, ...] = ()


def plan_gc(entries: Iterable[Entry], now_s: float, *, older_than_s: float, max_bytes: int) -> tuple[list[Entry], list[Entry]]:
    """Return what to remove (older than ``older_than_s``, then the oldest down to ``max_bytes``) and what to keep, oldest first."""
    ordered = sorted(entries, key=lambda entry: (entry.ended_at_s, entry.id))
    excess = sum(entry.size_bytes for entry in ordered) - max_bytes
    count = 0
    for entry in ordered:
        if excess <= 0 and now_s - entry.ended_at_s <= older_than_s:
            break
        excess -= entry.size_bytes
        count += 1
    return ordered[:count], ordered[count:]


def due(home: str, now_s: float) -> bool:
    """Tell whether this host is the one that collects today; of several that ask at once exactly one is told so."""
    descriptor = try_lock(os.path.join(home, _STAMP), create=True)
    if descriptor is None:
        return False
    try:
        if abs(now_s - _stamped(descriptor)) < DAY_S:
            return False
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, b"%d\n" % now_s)
        return True
    finally:
        os.close(descriptor)


def _stamped(descriptor: int) -> float:
    try:
        return int(os.read(descriptor, _LONGEST_STAMP))
    except ValueError:
        return -DAY_S  # new, or damaged


def collect(home: str, index: Index, now_s: float, *, older_than_s: float, max_bytes: int, dry_run: bool = False) -> GcReport:
    """Remove what ``plan_gc`` chooses, and what an earlier collection or an interrupted start left; raises ``StoreError``.

    A folder that somebody holds, or that cannot be removed, stays with its row and is named in ``skipped``.
    """
    runs = os.path.join(home, RUNS)
    rows = index.oldest_ended()
    remove, keep = plan_gc([*_runs(runs, rows), *_patches(home)], now_s, older_than_s=older_than_s, max_bytes=max_bytes)
    chosen = (*remove, *_interrupted(home, index, frozenset(name for name, _ in rows), now_s))
    if dry_run:
        return _report(chosen, (), keep)
    reasons = [(entry, _move(entry.folder, os.path.join(runs, _REMOVED))) for entry in chosen]
    moved = [entry for entry, reason in reasons if reason is None]
    index.remove([*(entry.id for entry in moved), *_names(os.path.join(runs, _REMOVED))])
    for name in _names(os.path.join(runs, _REMOVED)):
        _delete(os.path.join(runs, _REMOVED, name))
    index.refresh()
    return _report(moved, (f"{entry.id}: {reason}" for entry, reason in reasons if reason is not None), keep)


def _report(removed: Iterable[Entry], skipped: Iterable[str], keep: list[Entry]) -> GcReport:
    gone, stay = tuple(removed), tuple(skipped)
    freed = sum(entry.size_bytes for entry in gone)
    return GcReport(removed=tuple(entry.id for entry in gone), freed_bytes=freed, kept=len(keep) + len(stay), skipped=stay)


def _runs(runs: str, rows: Iterable[tuple[str, float]]) -> Iterator[Entry]:
    for name, ended_at_s in rows:
        folder = os.path.join(runs, name)
        yield Entry(id=name, folder=folder, ended_at_s=ended_at_s, size_bytes=_size(folder))


def _patches(home: str) -> Iterator[Entry]:
    for name in _names(os.path.join(home, PATCHES)):
        folder = os.path.join(home, PATCHES, name)
        try:
            changed = os.lstat(folder).st_mtime
        except OSError:
            continue
        yield Entry(id=name, folder=folder, ended_at_s=changed, size_bytes=_size(folder))


def _interrupted(home: str, index: Index, ended: frozenset[str], now_s: float) -> Iterator[Entry]:
    """Yield run folders of hosts that died before they had written the spec: nothing ran in them and no row names them."""
    for name in _names(os.path.join(home, RUNS)):
        if not is_id(name) or name in ended or now_s - milliseconds_of(name) / 1000 < DAY_S or index.matching(name):
            continue
        try:
            folder = RunFolder.open(home, name)
        except ProctorError:
            continue
        try:
            changed = os.stat(folder.descriptor).st_mtime
            if stage_of(folder) is Stage.ABANDONED and now_s - changed > DAY_S:
                yield Entry(id=name, folder=folder.path, ended_at_s=changed, size_bytes=_size(folder.path))
        except OSError:
            continue
        finally:
            folder.close()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _size(folder: str) -> int:
    try:
        with os.scandir(folder) as files:
            return sum(_allocated(file.stat(follow_symlinks=False)) for file in files)
    except OSError:
        return 0


def _allocated(status: os.stat_result) -> int:
    blocks = getattr(status, "st_blocks", None)  # in units of 512 bytes, stat(2); output with a hole takes less than its length
    return status.st_size if blocks is None else blocks * 512


def _move(folder: str, removed: str) -> str | None:
    """Move a folder to ``removed``, which other hosts do not look into; return why not, or ``None``."""
    lock: int | None = None
    try:
        if not stat.S_ISLNK(os.lstat(folder).st_mode):
            lock = _locked(folder)
        os.makedirs(removed, 0o700, exist_ok=True)
        os.rename(folder, os.path.join(removed, os.path.basename(folder)))
    except FileNotFoundError:
        pass  # another host was faster, or a person
    except BlockingIOError:
        return "a process holds its lock"
    except OSError as error:
        return error.strerror or str(error)
    finally:
        if lock is not None:
            os.close(lock)
    return None


def _locked(folder: str) -> int | None:
    try:
        lock = try_lock(os.path.join(folder, LOCK))
    except FileNotFoundError:
        return None
    if lock is None:
        raise BlockingIOError
    return lock


def _delete(path: str) -> None:
    """Delete a file, a link or a folder with all in it; what cannot be deleted is left for the next collection."""
    from shutil import rmtree

    if os.path.isdir(path) and not os.path.islink(path):
        rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)
