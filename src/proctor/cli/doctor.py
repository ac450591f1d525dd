"""``proctor doctor``: what works on this machine, each line by a measurement made just now; nothing comes from a table of platforms.

The measurements of running commands use a home of their own in a temporary folder, so that they leave no record behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import ProctorError
from . import doctor_kernel, doctor_runs, doctor_store
from .configuring import settings_here
from .exits import SUCCESS
from .findings import Finding
from .printing import colour, object_out, out, rows

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from ..config import Resolved

__all__ = ["execute"]

_NOT_OK = 1
_MISSING = (
    ("sandbox", "not in this version: commands run with the access of their user (danger-full-access), network on"),
    ("policy", "not in this version: commands are not judged"),
    ("terminals", "not in this version: --tty is refused"),
    ("memory and process limits", "not in this version: no cgroup is made"),
)


def execute(arguments: Namespace) -> int:
    """Measure and tell; return 1 when something that proctor needs does not work."""
    findings = list(_measured())
    settings: Resolved | None = None
    try:
        settings = settings_here()
        findings.extend(Finding("configuration", ok=None, measured=notice) for notice in settings.notices)
    except ProctorError as error:
        findings.append(Finding("configuration", ok=False, measured=f"{error.message} {error.hint}"))
    findings.extend(Finding(name, ok=None, measured=text) for name, text in _MISSING)
    if arguments.json:
        object_out({"version": __version__, "findings": [_as_json(finding) for finding in findings], "settings": _settings(settings)})
    else:
        _print(findings, settings)
    return _NOT_OK if any(finding.ok is False for finding in findings) else SUCCESS


def _measured() -> Iterator[Finding]:
    yield from doctor_store.findings(os.environ)
    yield from doctor_kernel.findings()
    folder = tempfile.mkdtemp(prefix="proctor-doctor-")
    try:
        yield from doctor_runs.findings(os.path.join(folder, "home"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _print(findings: list[Finding], settings: Resolved | None) -> None:
    marks = {True: colour("ok", "green") + "    ", False: colour("FAILS", "red") + " ", None: "      "}
    width = max(len(finding.name) for finding in findings)
    out(f"proctor {__version__}")
    for finding in findings:
        out(f"{marks[finding.ok]} {finding.name.ljust(width)}  {finding.measured}")
    if settings is not None:
        out("")
        values = _settings(settings)
        out(rows(("SETTING", "VALUE", "FROM"), [(key, _text(key, entry["value"]), entry["origin"]) for key, entry in values.items()]))


def _settings(resolved: Resolved | None) -> dict[str, dict[str, Any]]:
    if resolved is None:
        return {}
    return {key: {"value": getattr(resolved.settings, key), "origin": origin} for key, origin in resolved.origins.items()}


def _text(key: str, value: Any) -> str:
    if value is None:
        return {"dialect": "the platform's", "login": "unless PATH was chosen"}.get(key, "none")
    return ", ".join(value) or "-" if isinstance(value, tuple) else str(value)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {"name": finding.name, "ok": finding.ok, "measured": finding.measured}
