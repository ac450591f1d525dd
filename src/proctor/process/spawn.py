"""Starting a root process on POSIX, with the reason told exactly when it does not come to the exec.

Two ways with one result. The quick one is posix_spawn (a vfork underneath: 0.5 ms measured, against 2.3 ms for fork and exec), with
folder and umask set in the keeper around it; it serves whenever limits, niceness and user are the keeper's own. Else fork and exec: the
child writes the step and errno into a close-on-exec pipe, and end of file on that pipe means that exec happened.
"""

from __future__ import annotations

import os
import resource
import select
import signal
from errno import E2BIG, EACCES, EAGAIN, ELOOP, ENOENT, ENOEXEC, ENOMEM, ENOTDIR, EPERM
from typing import TYPE_CHECKING, NoReturn

from ..errors import ErrorCode
from .backend import SpawnError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..execution import Launch

__all__ = ["spawn_root"]

EXEC_LIMIT_S = 30.0  # a working folder on a dead network mount can block chdir; the keeper must not hang with it
_STEPS = ("session", "user", "limits", "cwd", "exec")
_STRING_LIMIT = 131_072  # MAX_ARG_STRLEN in linux/binfmts.h, the closing NUL included


def spawn_root(launch: Launch, ends: tuple[int, ...]) -> int:
    """Start ``launch`` and return its pid once exec succeeded; raises ``SpawnError``, and then nothing is left of it."""
    step = "cwd"
    try:
        if not _shares_limits(launch):
            return _fork_root(launch, ends)
        os.chdir(launch.cwd)
        step = "exec"
        return _spawn_quickly(launch, ends)
    except OSError as error:
        raise _explain(launch, step, error.errno or 0) from error
    finally:
        os.chdir("/")  # a keeper never stands in anybody's way: not in a folder to be deleted, not on a mount to be taken away


def _shares_limits(launch: Launch) -> bool:
    """Tell whether the command may run with exactly what this process has."""
    if launch.user is not None or launch.nice > os.nice(0):
        return False
    return all(resource.getrlimit(which) == (soft, hard) for which, soft, hard in launch.rlimits)


def _spawn_quickly(launch: Launch, ends: tuple[int, ...]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate(ends)]
    ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
    before = os.umask(launch.umask)
    try:
        return _first_that_runs(
            _candidates(launch),
            lambda program: os.posix_spawn(
                program, launch.argv, launch.env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=ignored
            ),
        )
    finally:
        os.umask(before)


def _fork_root(launch: Launch, ends: tuple[int, ...]) -> int:
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        os.close(reading)
        os.close(writing)
        raise _explain(launch, "fork", error.errno or 0) from error
    if pid == 0:
        _become(launch, ends, writing)
    os.close(writing)
    with open(reading, "rb", buffering=0) as pipe:
        report = _await_exec(pid, pipe.fileno())
    if report:
        os.waitpid(pid, 0)
        step, errno = report.split()
        raise _explain(launch, _STEPS[int(step)], int(errno))
    return pid


def _await_exec(pid: int, reading: int) -> bytes:
    if not select.select([reading], [], [], EXEC_LIMIT_S)[0]:
        os.kill(pid, signal.SIGKILL)
        return b"3 %d" % EACCES
    return os.read(reading, 64)


def _candidates(launch: Launch) -> tuple[str, ...]:
    program = launch.argv[0]
    if "/" in program:
        return (program,)
    path = launch.env.get("PATH", os.defpath)
    places = tuple(os.path.join(folder or ".", program) for folder in path.split(os.pathsep))
    return tuple(place for place in places if os.path.exists(place)) or places[:1]


def _become(launch: Launch, ends: tuple[int, ...], report: int) -> NoReturn:
    """Turn the forked child into the command. Nothing here may raise past the report, and nothing may run Python clean-up."""
    step = 0
    try:
        os.setsid()
        _place(ends, report)
        _restore_signals()
        step = 1
        if launch.user is not None:
            _take_identity(launch.user)
        step = 2
        _apply_limits(launch)
        step = 3
        os.chdir(launch.cwd)
        step = 4
        _first_that_runs(_candidates(launch), lambda program: os.execve(program, launch.argv, launch.env))  # noqa: S606 - that is what is asked for
    except OSError as error:
        os.write(report, b"%d %d" % (step, error.errno or 0))
    finally:
        os._exit(127)


def _place(ends: tuple[int, ...], report: int) -> None:
    # A source may be below 3 itself (the keeper's own 0-2 are /dev/null, so it is not here): dup2 makes the copies inheritable.
    for target, source in enumerate(ends):
        os.dup2(source, target)
    os.closerange(len(ends), report)
    os.closerange(report + 1, 4096)


def _restore_signals() -> None:
    # Python ignores SIGPIPE and SIGXFSZ, and a host may ignore others: exec keeps what is ignored.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_identity(user: str) -> None:
    import pwd

    entry = pwd.getpwnam(user)
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def _apply_limits(launch: Launch) -> None:
    os.umask(launch.umask)
    if (missing := launch.nice - os.nice(0)) > 0:
        os.nice(missing)
    for which, soft, hard in launch.rlimits:
        if resource.getrlimit(which) != (soft, hard):
            resource.setrlimit(which, (soft, hard))


def _first_that_runs(candidates: tuple[str, ...], run: Callable[[str], int]) -> int:
    """Try each place as execvp(3) does: one that may not be run is remembered while the search goes on."""
    refusal: OSError = FileNotFoundError(ENOENT, os.strerror(ENOENT))
    for program in candidates:
        try:
            return run(program)
        except FileNotFoundError:
            continue
        except (NotADirectoryError, PermissionError) as error:
            refusal = error
    raise refusal


def _explain(launch: Launch, step: str, errno: int) -> SpawnError:
    text = os.strerror(errno)
    if step == "cwd":
        return _explain_cwd(launch.cwd, errno, text)
    if errno in (EAGAIN, ENOMEM):
        hint = "Free processes or memory, or raise the limit (ulimit -u), then try again."
        return SpawnError(ErrorCode.SPAWN_FAILED, f"The system refused another process: {text}.", hint)
    if step == "exec":
        return _explain_exec(launch, errno, text)
    hint = "Run as root to take another user's identity." if step == "user" and errno == EPERM else ""
    return SpawnError(ErrorCode.SPAWN_FAILED, f"The process could not be set up ({step}): {text}.", hint)


def _explain_cwd(cwd: str, errno: int, text: str) -> SpawnError:
    if errno == ENOENT:
        return SpawnError(ErrorCode.CWD_NOT_FOUND, f"The working folder {cwd} does not exist.", "Make it first, or give another cwd.")
    if errno in (ENOTDIR, ELOOP):
        return SpawnError(ErrorCode.CWD_NOT_A_DIRECTORY, f"The working folder {cwd} is not a folder.", "Give a folder as cwd.")
    return SpawnError(
        ErrorCode.CWD_NOT_ACCESSIBLE, f"The working folder {cwd} cannot be entered: {text}.", "Give a folder that this user may enter."
    )


def _explain_exec(launch: Launch, errno: int, text: str) -> SpawnError:
    program = launch.argv[0]
    if errno == E2BIG:
        return too_long(launch)
    if errno in (ENOENT, ENOTDIR):
        hint = "Check the name, PATH, and the interpreter on its first line."
        return SpawnError(ErrorCode.PROGRAM_NOT_FOUND, f"The program {program} was not found.", hint)
    if errno in (EACCES, ENOEXEC, EPERM):
        hint = "Make it executable (chmod +x), and give a script a #! line."
        return SpawnError(ErrorCode.PROGRAM_NOT_EXECUTABLE, f"The program {program} cannot be executed: {text}.", hint)
    return SpawnError(ErrorCode.SPAWN_FAILED, f"The program {program} could not be started: {text}.")


def too_long(launch: Launch) -> SpawnError:
    """Name the argument or variable that is over the kernel's limit, or the sum of them."""
    limit = f"{_STRING_LIMIT} bytes"
    for position, word in enumerate(launch.argv):
        if len(os.fsencode(word)) >= _STRING_LIMIT:
            hint = "Pass it through a file or standard input."
            return SpawnError(
                ErrorCode.ARGUMENT_TOO_LONG, f"Argument {position} has {len(os.fsencode(word))} bytes; the limit is {limit}.", hint
            )
    for name, value in launch.env.items():
        size = len(os.fsencode(f"{name}={value}"))
        if size >= _STRING_LIMIT:
            hint = "Pass it through a file instead."
            return SpawnError(ErrorCode.ARGUMENT_TOO_LONG, f"Environment variable {name} has {size} bytes; the limit is {limit}.", hint)
    hint = "Pass the data through files or standard input."
    return SpawnError(ErrorCode.ARGUMENT_TOO_LONG, "Arguments and environment together are over the limit of 2 MB.", hint)
