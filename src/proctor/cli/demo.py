"""``proctor demo``: the main job on real processes, each claim checked while it is made; one that does not hold gives exit code 1.

Tests run to a proved ending; a development server that ignores SIGTERM, in a session of its own, outlives the SIGKILL of the host that
started it, is found again with nothing of its output missing, and is stopped with a proof that an independent look confirms.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import __version__
from . import demo_witness as witness
from .demo_project import FILES, create
from .exits import SUCCESS
from .printing import colour, out

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["execute"]

STEP_LIMIT_S = 30.0
_UNHEARD = ("/while", "/nobody", "/listened")
_FAILED = 1
_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_COMMAND_LINE = [sys.executable, "-m", "proctor"]


class DemoError(Exception):
    """A step could not be carried out, so that the ones behind it make no sense."""


def execute(_arguments: Namespace) -> int:
    """Show it; return 0 when every claim held."""
    began = time.monotonic()
    folder = os.path.realpath(tempfile.mkdtemp(prefix="proctor-demo-"))
    stage = _Stage(folder)
    try:
        stage.play()
    except (DemoError, OSError, subprocess.TimeoutExpired) as error:
        stage.claim(f"the demo went through: {error}", holds=False)
    finally:
        stage.clear()
    total = stage.held + stage.broken
    took_s = time.monotonic() - began
    if stage.broken:
        out(colour(f"\n{stage.broken} of {total} claims did not hold ({took_s:.1f} s).", "red"))
        return _FAILED
    out(f"\nAll {total} claims held ({took_s:.1f} s). The folder is removed; nothing of this is left on the machine.")
    return SUCCESS


@dataclass(slots=True)
class _Server:
    """The development server, as it is known from outside."""

    id: str
    port: int
    processes: dict[int, str | None] = field(default_factory=dict)
    read_bytes: int = 0


class _Stage:
    """The temporary folder, the child processes of the demo, and what was claimed."""

    def __init__(self, folder: str) -> None:
        self.held = 0
        self.broken = 0
        self._folder = folder
        self._project = os.path.join(folder, "project")
        self._environ = {**os.environ, "PROCTOR_HOME": os.path.join(folder, "home"), "PYTHONUNBUFFERED": "1"}
        self._environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_PACKAGE_PARENT, os.environ.get("PYTHONPATH")]))
        self._host: subprocess.Popen[str] | None = None

    def play(self) -> None:
        """Go through the acts."""
        out(f"proctor {__version__} demo, in {self._folder}")
        self._title("A small project, and its tests")
        create(self._project)
        out(f"  {', '.join(FILES)}")
        self._run_tests()
        self._title("A development server: a grandchild, in a session of its own, deaf to SIGTERM")
        server = self._start_server()
        self._title("The host that started it is killed")
        self._kill_host(server)
        self._title("A new host finds it, with the output that was missed")
        self._find_again(server)
        self._title("Stop, and the proof")
        self._stop(server)

    def claim(self, text: str, *, holds: bool) -> None:
        """Print a claim and whether it holds."""
        self.held += holds
        self.broken += not holds
        out(f"  {colour('ok', 'green') if holds else colour('NOT SO', 'red')}  {text}")

    def clear(self) -> None:
        """End what was started and remove the folder."""
        if self._host is not None:
            self._host.kill()
            self._host.communicate()
        if os.path.isdir(self._environ["PROCTOR_HOME"]):
            self._call("stop", "--all", "--grace", "0")
        shutil.rmtree(self._folder, ignore_errors=True)
        if os.path.lexists(self._folder):
            self.claim(f"{self._folder} is removed", holds=False)

    # -- acts ---------------------------------------------------------------------------------------------------------------------------

    def _run_tests(self) -> None:
        command = [os.path.basename(sys.executable), "-m", "unittest", "--verbose"]
        self._show_command("run", "--json", "--", *command)
        record = self._record("run", "--json", "--", sys.executable, *command[1:])
        self._quote(record["output"]["stderr"] or "")
        self.claim("the tests passed: exit code 0", holds=record["status"] == "exited" and record["exit_code"] == 0)
        self.claim("all three of them ran", holds="Ran 3 tests" in record["output"]["stderr"])
        self.claim(f"no process of it is left: {_proof(record)}", holds=record["tree"]["proved"] and not witness.carriers(record["id"]))

    def _start_server(self) -> _Server:
        port = witness.free_port()
        command = [sys.executable, "-m", "proctor.cli.demo_host", self._project, sys.executable, "dev.py", str(port)]
        self._host = subprocess.Popen(command, env=self._environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        execution_id = self._heard()
        server = _Server(execution_id, port)
        out(f"  host {self._host.pid} started {execution_id}: dev.py {port}")
        waited = self._call("wait", execution_id, "--for", f"port={port}", "--timeout", "10", shown=True)
        self.claim("its own tree listens on the port, by its keeper's word", holds=waited.returncode == 0)
        page = witness.fetch(port, "/first").strip()
        self.claim(f"it serves a page: {page!r}", holds=page == "apples: 3")
        server.processes = {pid: witness.start_of(pid) for pid in witness.carriers(execution_id)}
        self.claim(f"dev.py and server.py are two processes: {_pids(server)}", holds=len(server.processes) == 2)  # noqa: PLR2004
        return server

    def _kill_host(self, server: _Server) -> None:
        if self._host is None or self._host.stdin is None:
            raise DemoError("the host is not there")
        self._host.stdin.write("read\n")
        self._host.stdin.flush()
        server.read_bytes = int(self._heard())
        self._host.kill()
        code = self._host.wait(STEP_LIMIT_S)
        self._host.communicate()
        self.claim(f"host {self._host.pid} had read {server.read_bytes} bytes and is dead by SIGKILL", holds=code == -9)  # noqa: PLR2004
        alive = all(witness.process_exists(pid, start) for pid, start in server.processes.items())
        self.claim("the server runs on", holds=alive)
        pages = [witness.fetch(server.port, path).strip() for path in _UNHEARD]
        self.claim("it served three more pages, with no host to read its output", holds=pages == ["apples: 3"] * 3)

    def _find_again(self, server: _Server) -> None:
        listed = self._call("ps", shown=True)
        self._quote(listed.stdout)
        records: list[dict[str, Any]] = json.loads(self._call("ps", "--json").stdout)
        self.claim(
            "it is listed as running, and nothing else is",
            holds=[(record["id"], record["status"], record["stale"]) for record in records] == [(server.id, "running", False)],
        )
        missed = self._call("logs", server.id, "--since", str(server.read_bytes), shown=True).stdout
        self._quote(missed)
        expected = "".join([f"listening on port {server.port}\n", *(f"served {path}\n" for path in ("/first", *_UNHEARD))])
        self.claim("that is exactly the output since the host's last read", holds=missed == expected[server.read_bytes :] != "")
        whole = self._call("logs", server.id).stdout
        self.claim("with what it had read: no byte is missing, and none is there twice", holds=whole == expected)

    def _stop(self, server: _Server) -> None:
        self._quote(self._call("stop", server.id, "--grace", "1", "--reason", "end of the demo", shown=True).stdout)
        record = self._record("show", server.id, "--json")
        tree = record["tree"]
        self.claim(f"asked first, then forced: {', '.join(tree['signals'])} in {tree['took_ms']:.0f} ms", holds=tree["escalated"])
        known = tree["proved"] and record["ended_by"] == "stop"
        self.claim(f"the ending is known and proved: {record['status']}, {_proof(record)}", holds=known)
        left = [pid for pid, start in server.processes.items() if witness.process_exists(pid, start)]
        self.claim("an independent look at /proc finds none of its processes", holds=not left and not witness.carriers(server.id))
        self.claim(f"port {server.port} is free again", holds=witness.port_is_free(server.port))

    # -- means --------------------------------------------------------------------------------------------------------------------------

    def _heard(self) -> str:
        line = "" if self._host is None or self._host.stdout is None else self._host.stdout.readline().strip()
        if not line:
            raise DemoError("the host process ended before it said anything")
        return line

    def _call(self, *words: str, shown: bool = False) -> subprocess.CompletedProcess[str]:
        if shown:
            self._show_command(*words)
        return subprocess.run(
            [*_COMMAND_LINE, *words],
            cwd=self._project if os.path.isdir(self._project) else self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=STEP_LIMIT_S,
            check=False,
        )

    def _record(self, *words: str) -> dict[str, Any]:
        done = self._call(*words)
        try:
            record: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise DemoError(f"proctor {words[0]} gave no record: {done.stderr.strip()}") from None
        if "error" in record and "id" not in record:
            raise DemoError(f"proctor {words[0]}: {record['error']['message']}")
        return record

    @staticmethod
    def _title(text: str) -> None:
        out(f"\n{text}")

    @staticmethod
    def _show_command(*words: str) -> None:
        out(colour(f"  $ proctor {' '.join(words)}", "grey"))

    @staticmethod
    def _quote(text: str) -> None:
        for line in text.rstrip("\n").split("\n"):
            out(f"  | {line}".rstrip())


def _proof(record: dict[str, Any]) -> str:
    tree = record["tree"]
    return f"proved by {tree['method']}" if tree["proved"] else "not proved"


def _pids(server: _Server) -> str:
    return ", ".join(str(pid) for pid in sorted(server.processes))
