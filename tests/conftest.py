"""What tests with real processes share: a home, a host, and a witness of what is left behind, whatever the test asserted.

Every test is watched, whether it asks for the witness or not: what it leaves behind fails it. The user's own home and temporary folder are
out of reach for the whole session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from tests.leaks import SESSION_VARIABLE, Leaks, end, living_with

import proctor
from proctor.testing import Marker
from proctor.testing.marker import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65_534
FOREIGN = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "PROCTOR_HOME", "PROCTOR_EXECUTION_ID")
_SESSION = uuid.uuid4().hex

# How long an example takes depends on what else the machine does; a hang is caught by the timeout of the test.
hypothesis.settings.register_profile("proctor", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("proctor")


@pytest.fixture(scope="session", autouse=True)
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the folder that stands for everything outside a test's own: the user's home, and where temporary files go."""
    tmp_path_factory.getbasetemp()  # it is settled where the tests' own folders are, before TMPDIR changes
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="proctor-outside-") as folder:
        os.chmod(folder, 0o755)  # noqa: S103 - other users pass through it to folders that were opened for them
        for name in ("user", "tmp"):
            os.mkdir(os.path.join(folder, name))
        for name in FOREIGN:
            patch.delenv(name, raising=False)
        patch.setenv("HOME", os.path.join(folder, "user"))
        patch.setenv("TMPDIR", os.path.join(folder, "tmp"))
        patch.setattr(tempfile, "tempdir", None)
        patch.setenv(SESSION_VARIABLE, _SESSION)
        yield folder
        left = living_with(f"{SESSION_VARIABLE}={_SESSION}")
        for process in left:
            end(process)
        assert not left, f"left behind by the session: {left}"


@pytest.fixture(autouse=True)
def leaks(outside: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaks]:
    """Fail a test that leaves a process, a descriptor or a file behind."""
    marker = Marker()
    watched = Leaks(marker, outside, homes=str(tmp_path_factory.getbasetemp()))
    marker.apply(os.environ)
    yield watched
    found = watched.found()
    os.environ.pop(VARIABLE, None)
    assert not found, "\n".join(found)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs another system."""
    foreign = "posix" if os.name == "nt" else "windows"
    for item in items:
        if item.get_closest_marker(foreign):
            item.add_marker(pytest.mark.skip(reason=f"needs {foreign}"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a proctor home of this test's own, and a user's home without a profile that would slow each login shell."""
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    return str(tmp_path / "home")


@pytest.fixture
def marker(home: str, leaks: Leaks) -> Marker:
    """Give the witness; when the test is over nothing that carries its mark may be left, proctor's own processes included."""
    del home
    return leaks.marker


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter an empty working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def host(home: str, marker: Marker) -> Iterator[proctor.SyncProctor]:
    """Open the blocking face on this test's home."""
    del marker  # it must outlive the host
    with proctor.open_sync(home=home) as opened:
        yield opened


@dataclass(frozen=True, slots=True)
class Script:
    """A Python program in a process of its own that tells its steps on standard output, one line each."""

    process: subprocess.Popen[str]

    def line(self) -> str:
        """Return the next line it says, without the newline; empty at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        """Kill it as the kernel would: no handler, no clean-up."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def script(home: str, marker: Marker) -> Iterator[Callable[..., Script]]:
    """Start host programs that can be killed; ``proctor`` and ``home`` are there for them, arguments in ``sys.argv``."""
    del marker
    started: list[Script] = []

    def start(text: str, *arguments: str) -> Script:
        prelude = "import os, sys, proctor\nhome = sys.argv[1]\n"
        command = [sys.executable, "-u", "-c", prelude + text, home, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        started.append(Script(process))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.fixture
def cli(home: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line as a user does."""
    del home

    def run(*arguments: str, limit_s: float = 30.0, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [sys.executable, "-m", "proctor", *arguments], capture_output=True, text=True, timeout=limit_s, check=False, **options
        )

    return run


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that every user may reach and fill: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-open-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def as_plain_user(open_folder: Path, marker: Marker) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a host program as a user without any privilege; ``home`` and ``proctor`` are there for it. Needs root."""
    if os.getuid() != 0:
        pytest.skip("taking another user's identity needs root")
    package = os.path.dirname(os.path.dirname(os.path.abspath(proctor.__file__)))
    identity: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    environ = {"PATH": os.defpath, "HOME": str(open_folder), "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
    marker.apply(environ)
    interpreter = _interpreter_for(identity, environ)

    def run(text: str, *arguments: str, limit_s: float = 30.0) -> subprocess.CompletedProcess[str]:
        prelude = "import os, sys, proctor\nhome = sys.argv[1]\n"
        command = [interpreter, "-c", prelude + text, str(open_folder / "home"), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, check=False, cwd=open_folder, env=environ, **identity
        )

    return run


def _interpreter_for(identity: dict[str, Any], environ: dict[str, str]) -> str:
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = [program, "-c", "import proctor.runtime, sys; sys.exit(sys.version_info < (3, 11))"]
        with suppress(OSError):
            if subprocess.run(probe, capture_output=True, check=False, cwd="/", env=environ, **identity).returncode == 0:
                return program
    pytest.skip("no Python that a plain user may run, or the package is in a folder closed to others")
