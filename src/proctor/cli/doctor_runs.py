"""``proctor doctor``: commands, really run: how long a start takes, whether what escapes is caught, what each shell's profile does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from .. import dialects
from ..errors import ProctorError
from ..execution import Lifetime, Status
from ..runtime import LocalRuntime, Request
from .demo_witness import carriers
from .driving import drive
from .findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..execution import Record

__all__ = ["findings"]

_SHELLS = ("bash", "sh", "zsh")
_LIMIT_S = 20.0
_WARM_ROUNDS = 5
_SLOW_PROFILE_S = 0.1
# The root ends at once; what it leaves has a session and a parent of its own, and does not listen to TERM.
_ESCAPE = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 60; sleep 60' >/dev/null 2>&1 &) & exit 0"


def findings(home: str) -> Iterator[Finding]:
    """Yield what running commands in this (new) home showed."""
    try:
        runtime = LocalRuntime(home=home)
    except ProctorError as error:
        yield Finding("keeper", ok=False, measured=f"{error.message} {error.hint}")
        return
    try:
        yield _start(runtime)
        yield _escape(runtime)
        for name in _SHELLS:
            yield _shell(runtime, name)
    except ProctorError as error:
        yield Finding("keeper", ok=False, measured=f"{error.message} {error.hint}")
    finally:
        runtime.close()


def _run(runtime: LocalRuntime, request: Request) -> tuple[Record, float]:
    began = time.perf_counter()
    record = drive(runtime.run(request))
    return record, time.perf_counter() - began


def _start(runtime: LocalRuntime) -> Finding:
    true = Request(argv=("true",), lifetime=Lifetime.CALL, timeout_s=_LIMIT_S)
    first, cold_s = _run(runtime, true)
    warm_s = min(_run(runtime, true)[1] for _ in range(_WARM_ROUNDS))
    works = first.status is Status.EXITED and first.exit_code == 0
    measured = f"`true`, proved gone, in {cold_s * 1000:.0f} ms with a new zygote, {warm_s * 1000:.1f} ms after that"
    return Finding("keeper", ok=works, measured=measured)


def _escape(runtime: LocalRuntime) -> Finding:
    request = Request(command=_ESCAPE, dialect="sh", login=False, lifetime=Lifetime.CALL, timeout_s=_LIMIT_S, grace_s=0.2)
    record, took_s = _run(runtime, request)
    left = carriers(record.id)
    caught = record.tree is not None and record.tree.proved and bool(record.lingering) and not left
    if not caught:
        return Finding("subreaper", ok=False, measured=f"an escaped grandchild was not caught: {record.status}, left: {left}")
    method = "" if record.tree is None else f"{record.tree.method}"
    measured = f"a grandchild with a session of its own was stopped in {took_s:.1f} s, proved by {method}; a look at /proc finds none"
    return Finding("subreaper", ok=True, measured=measured)


def _shell(runtime: LocalRuntime, name: str) -> Finding:
    try:
        plain, plain_s = _path_in(runtime, name, login=False)
        profiled, profiled_s = _path_in(runtime, name, login=True)
    except ProctorError as error:
        return Finding(name, ok=None if name != "sh" else False, measured=error.message)
    cost_s = profiled_s - plain_s
    default = dialects.default_dialect({}, dialects.platform(), _exists)
    words = [f"{name} runs{', the default' if name == default else ''}"]
    words.append("its login profile changes PATH" if plain != profiled else "its login profile leaves PATH alone")
    words.append(f"and costs {max(0.0, cost_s) * 1000:.0f} ms")
    if plain != profiled or cost_s > _SLOW_PROFILE_S:
        words.append("(--no-login does without it)")
    return Finding(name, ok=True, measured=" ".join([words[0] + ";", *words[1:]]))


def _path_in(runtime: LocalRuntime, name: str, *, login: bool) -> tuple[str, float]:
    request = Request(command='printf "%s" "$PATH"', dialect=name, login=login, lifetime=Lifetime.CALL, timeout_s=_LIMIT_S)
    rounds = [_run(runtime, request) for _ in range(2)]
    return rounds[0][0].output.stdout or "", min(took_s for _, took_s in rounds)


def _exists(path: str) -> bool:
    return os.access(path, os.X_OK)
