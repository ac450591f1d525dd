"""Whether a command can start in a folder, asked before anything is started so that a missing folder is never told as a missing program.

The kernel reports both through the same error of ``execve``; only a look at the folder tells them apart.
"""

from __future__ import annotations

import os
import stat

from ..errors import ErrorCode, RequestError

__all__ = ["check_cwd"]


def check_cwd(path: str) -> None:
    """Return if a process of this user could have ``path`` as its working directory, else raise ``RequestError`` that names the path.

    The codes are cwd_not_found, cwd_not_a_directory and cwd_not_accessible. For root permission bits do not count, as for the kernel.
    """
    try:
        mode = os.stat(path).st_mode
    except ValueError:
        raise _refuse(ErrorCode.CWD_NOT_FOUND, path, "no folder's name contains a NUL character") from None
    except NotADirectoryError:
        raise _refuse(ErrorCode.CWD_NOT_A_DIRECTORY, path, "a part of it is a file") from None
    except PermissionError:
        raise _refuse(ErrorCode.CWD_NOT_ACCESSIBLE, path, "a folder above it may not be entered") from None
    except FileNotFoundError:
        raise _refuse(ErrorCode.CWD_NOT_FOUND, path, "it does not exist") from None
    except OSError as error:
        raise _refuse(ErrorCode.CWD_NOT_ACCESSIBLE, path, error.strerror or str(error)) from error
    if not stat.S_ISDIR(mode):
        raise _refuse(ErrorCode.CWD_NOT_A_DIRECTORY, path, "it is not a folder")
    if not os.access(path, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _refuse(ErrorCode.CWD_NOT_ACCESSIBLE, path, "this user may not enter it")


def _refuse(code: ErrorCode, path: str, why: str) -> RequestError:
    return RequestError(
        code, f"The working directory {path!r} cannot be used: {why}.", "Nothing was started; pass an existing folder as cwd."
    )
