"""Every error code of this part, produced by a real command line: its exit code, its stable name, and a hint that says what to do."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from proctor import SyncProctor

ONE_LINE = re.compile(r"proctor: .+[.…)] \[[a-z_]+\]")
AS_COMMAND_LINE = "os.environ['PROCTOR_HOME'] = home\nfrom proctor.cli import main\nsys.exit(main(sys.argv[2:]))"

pytestmark = pytest.mark.requirement("I2-error-codes")


def check(done: subprocess.CompletedProcess[str], code: str, exit_code: int, *parts: str) -> None:
    line = done.stderr.strip().split("\n")[-1]
    assert ONE_LINE.fullmatch(line), done.stderr
    assert line.endswith(f" [{code}]")
    assert done.returncode == exit_code
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in line


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--session", "no spaces"], ("'no spaces'", "letters")),
        (["--lifetime", "session"], ("--session",)),
        (["--background", "--lifetime", "call"], ("--lifetime",)),
        (["--stdin", "/nonexistent/proctor-tests/x"], ("/nonexistent/proctor-tests/x", "Name a file")),
        (["--workspace", "/nonexistent/proctor-tests/x"], ("/nonexistent/proctor-tests/x", "existing folder")),
        (["--shell", "bash"], ("without a shell", "Quote")),
        (["--timeout", "0"], ("timeout_s",)),
        (["--user", "nobody-of-that-name"], ("nobody-of-that-name",)),
    ],
)
def test_invalid_request_names_the_part(flags: list[str], parts: tuple[str, ...], cli: Callable[..., Any]) -> None:
    check(cli("run", *flags, "--", "true", "x"), "invalid_request", 2, *parts)


def test_invalid_request_for_no_command_and_for_an_empty_one(cli: Callable[..., Any]) -> None:
    check(cli("run"), "invalid_request", 2, "proctor run -- ")
    check(cli("run", "--", ""), "invalid_request", 2, "empty")


def test_usage_errors_are_2_and_name_the_flag(cli: Callable[..., Any]) -> None:
    for words in (["run", "--no-such-flag", "--", "true"], ["nosuchcommand"], [], ["ps", "extra"]):
        done = cli(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage: proctor" in done.stderr


def test_program_not_found(cli: Callable[..., Any]) -> None:
    check(cli("run", "--", "no-such-program", "x"), "program_not_found", 127, "no-such-program", "PATH")


def test_program_not_executable(cli: Callable[..., Any], work: Path) -> None:
    (work / "notes.txt").write_text("no program")
    check(cli("run", "--", "./notes.txt", "x"), "program_not_executable", 126, "notes.txt")


def test_cwd_not_found_and_not_a_directory_are_told_apart_from_a_missing_program(cli: Callable[..., Any], work: Path) -> None:
    (work / "file").write_text("")
    check(cli("run", "--cwd", "missing", "--", "true", "x"), "cwd_not_found", 125, "missing")
    check(cli("run", "--cwd", "file", "--", "true", "x"), "cwd_not_a_directory", 125, "file")


def test_cwd_not_accessible(as_plain_user: Callable[..., Any], open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    check(as_plain_user(AS_COMMAND_LINE, "run", "--cwd", str(closed), "--", "true", "x"), "cwd_not_accessible", 125, str(closed))


def test_argument_too_long(cli: Callable[..., Any], tmp_path: Path) -> None:
    listing = tmp_path / "variables"
    listing.write_text("LONG=" + "x" * 200_000 + "\n")
    check(cli("run", "--env-file", str(listing), "--", "true", "x"), "argument_too_long", 125, "131072")


def test_spawn_failed(as_plain_user: Callable[..., Any]) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
    check(as_plain_user(limit + AS_COMMAND_LINE, "run", "--", "true", "x"), "spawn_failed", 125, "Free processes")


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_sandbox_unavailable_did_not_run(mode: str, cli: Callable[..., Any], work: Path) -> None:
    done = cli("run", "--sandbox", mode, "--", "touch", "ran")
    check(done, "sandbox_unavailable", 126, "The command did not run. Do not change the command", "--allow-unsandboxed")
    assert not (work / "ran").exists()


@pytest.mark.parametrize("flags", [["--tty"], ["--network", "off"], ["--policy", "rules.toml"], ["--explain"], ["--shell", "pwsh"]])
def test_unsupported_here_starts_nothing(flags: list[str], cli: Callable[..., Any], work: Path) -> None:
    words = ["touch ran"] if "--shell" in flags else ["touch", "ran"]
    check(cli("run", *flags, "--", *words), "unsupported_here", 125)
    assert not (work / "ran").exists()


@pytest.mark.parametrize("command", [["show"], ["logs"], ["logs", "-f"], ["wait"], ["stop"], ["send", "--eof"]])
def test_unknown_execution(command: list[str], cli: Callable[..., Any]) -> None:
    check(cli(*command, "-"), "unknown_execution", 4)
    check(cli(*command, "zzz"), "unknown_execution", 4, "zzz", "proctor ps --all")
    check(cli(*command, "01" + "0" * 24), "unknown_execution", 4)


def test_an_ambiguous_beginning_lists_what_it_could_be(cli: Callable[..., Any]) -> None:
    ids = [cli("run", "--background", "--", "true", "x").stdout.strip() for _ in range(2)]
    check(cli("show", ids[0][:2]), "unknown_execution", 4, *ids)
    assert cli("show", ids[1][:-1]).returncode == 0


def test_unknown_session(cli: Callable[..., Any]) -> None:
    check(cli("stop", "--session", "nowhere"), "unknown_session", 4, "nowhere")


def test_not_running(cli: Callable[..., Any]) -> None:
    cli("run", "--", "true", "x")
    check(cli("send", "-", "text"), "not_running", 125, "has ended")


def test_wait_timeout_stops_nothing(cli: Callable[..., Any]) -> None:
    started = cli("run", "--background", "--", "sleep", "100").stdout.strip()
    check(cli("wait", started, "--timeout", "0.2"), "wait_timeout", 124, "nothing was stopped")
    assert '"status": "running"' in cli("show", started, "--json").stdout
    cli("stop", started)


def test_stdin_closed(cli: Callable[..., Any]) -> None:
    started = cli("run", "--background", "--", "sleep", "100").stdout.strip()
    check(cli("send", started, "text"), "stdin_closed", 125)
    cli("stop", started)


def test_stdin_full(cli: Callable[..., Any], host: SyncProctor) -> None:
    with host.start(["sleep", "100"], stdin="pipe", lifetime="detached") as started:
        started.write(bytes((1 << 20) + 65_536))  # the pipe, and all that is held behind it
        check(cli("send", started.id, "text"), "stdin_full", 125)
        started.stop()


def test_output_missing(cli: Callable[..., Any], home: str) -> None:
    started = cli("run", "--json", "--", "echo", "x")
    folder = os.path.join(home, "runs", started.stdout.split('"id": "')[1][:26])
    os.unlink(os.path.join(folder, "output"))
    check(cli("logs", "-"), "output_missing", 125)


def test_output_missing_when_the_whole_run_folder_was_removed(cli: Callable[..., Any], home: str) -> None:
    cli("run", "--", "echo", "x")
    (name,) = [name for name in os.listdir(os.path.join(home, "runs")) if not name.startswith(".")]
    os.rename(os.path.join(home, "runs", name), os.path.join(home, "elsewhere"))
    check(cli("logs", name), "output_missing", 125, name, "proctor show")


def test_output_unreadable(cli: Callable[..., Any], home: str) -> None:
    cli("run", "--", "echo", "x")
    (name,) = [name for name in os.listdir(os.path.join(home, "runs")) if not name.startswith(".")]
    output = os.path.join(home, "runs", name, "output")
    os.unlink(output)
    os.symlink("/etc/hostname", output)  # what is not a file of the run folder is never read
    check(cli("logs", name), "output_unreadable", 125)


def test_store_unavailable(cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "file"))
    check(cli("ps"), "store_unavailable", 125, "not a folder", "PROCTOR_HOME")
    check(cli("run", "--", "true", "x"), "store_unavailable", 125, "PROCTOR_HOME")


def test_store_newer(cli: Callable[..., Any], home: str) -> None:
    cli("run", "--", "true", "x")
    with closing(sqlite3.connect(os.path.join(home, "proctor.db"))) as database:
        database.execute("PRAGMA user_version = 99")
        database.commit()
    check(cli("run", "--background", "--", "true", "x"), "store_newer", 125, "newer", "Upgrade")
    check(cli("gc", "--older", "0"), "store_newer", 125, "newer", "Upgrade")
    check(cli("run", "--", "sh", "-c", "exit 3"), "store_newer", 3, "The run folder has the record")
    assert "store_newer" in cli("ps", "--all").stderr


def test_store_corrupt(cli: Callable[..., Any], home: str) -> None:
    started = cli("run", "--background", "--", "sleep", "100").stdout.strip()
    spec = os.path.join(home, "runs", started, "spec.json")
    with open(spec, "rb+") as file:
        whole = file.read()
        file.seek(0)
        file.write(b"\0" * len(whole))
    check(cli("show", started), "store_corrupt", 125, "spec.json")
    with open(spec, "wb") as file:
        file.write(whole)
    assert cli("stop", started).returncode == 0


def test_keeper_unreachable(cli: Callable[..., Any], host: SyncProctor) -> None:
    with host.start(["sleep", "100"], stdin="pipe", lifetime="detached") as started:
        keeper = started.record.keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGSTOP)
        try:
            check(cli("send", started.id, "text"), "keeper_unreachable", 125, "Try again")
            assert '"stale": true' in cli("show", started.id, "--json").stdout
            assert " running stale " in cli("ps").stdout
        finally:
            os.kill(keeper, signal.SIGCONT)
        started.stop()


def test_an_error_of_any_command_is_an_object_where_json_was_asked_for(cli: Callable[..., Any]) -> None:
    done = cli("show", "--json", "zzz")
    assert done.returncode == 4
    assert '"code": "unknown_execution"' in done.stdout


def test_the_home_is_private(cli: Callable[..., Any], home: str) -> None:
    cli("run", "--", "true", "x")
    assert stat.S_IMODE(os.stat(home).st_mode) == 0o700
