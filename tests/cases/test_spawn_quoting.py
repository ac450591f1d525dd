"""Faults of the kind "what was executed is not what was asked for", and "what went wrong is told as something else"."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import ErrorCode, Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proctor import SyncProctor

AT_ONCE_S = 3.0  # 0.1 s without load


def plain(text: str) -> tuple[str, int]:
    """Return what bash itself prints for a text, and its exit code."""
    done = subprocess.run(["/bin/bash", "-c", text], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout, done.returncode


@pytest.mark.requirement("O-SQ-01")
def test_the_text_given_is_the_text_executed_variables_and_pipes_included(host: SyncProctor, work: Path) -> None:
    record = host.run('D=$PWD/keep; mkdir -p $D; touch $D/it; echo ${D}/* | cat; V=hi && echo "[$V]" | cat; echo "pid=$$" | cat')
    lines = (record.output.stdout or "").splitlines()
    assert lines[:2] == [f"{work}/keep/it", "[hi]"]
    assert lines[2].removeprefix("pid=").isdigit()


@pytest.mark.requirement("O-SQ-02", "O-SQ-03")
@pytest.mark.parametrize(
    "text",
    [
        """printf '%s|' 'a != b' "x !" '!=' 'y!'; python3 -c 'print(1 != 2)'""",
        "cat <<EOF\nline\nEOF",
        "python3 - <<'PY'\nprint(1)\nPY",
        "cat <<-EOF\n\tindented\n\tEOF",
        "echo a # comment",
        "echo b \\",
        "echo 'c\n d'  \n\n",
        "echo \"$(cat <<'X'\n`no` $HOME\nX\n)\"",
        "printf '%s\\n' '$VAR' \"a'b\" 'a\"b' \\\\ '*' '~' '{x,y}' '<>|&;'",
        "echo 'tab\there' é 你 🎉",
        "# only a comment",
        "if true; then echo; fi; case x in x) echo x;; esac",
        "echo <(true) > /dev/null; echo $0 $#",
        "exit 3 # )",
        "echo unterminated 'quote",
    ],
)
def test_the_output_is_what_plain_bash_prints_for_the_same_text(text: str, host: SyncProctor) -> None:
    expected, code = plain(text)
    record = host.run(text, login=False)
    assert (record.output.stdout, record.exit_code) == (expected, code)


@pytest.mark.requirement("O-SQ-03")
def test_a_last_command_in_the_background_does_not_hold_up_the_result_and_its_output_is_there(host: SyncProctor) -> None:
    began = time.monotonic()
    record = host.run("(sleep 0.1; echo c) &")
    assert time.monotonic() - began < AT_ONCE_S
    assert (record.status, record.exit_code, record.output.stdout) == (Status.EXITED, 0, "c\n")


@pytest.mark.requirement("O-SQ-04")
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_text_longer_than_one_argument_may_be_runs(shell: str, host: SyncProctor) -> None:
    record = host.run(": '" + "A" * 200_000 + "'; echo tail-ok; read x || echo eof; ls /proc/self/fd | wc -l", shell=shell)
    assert record.output.stdout is not None
    assert record.output.stdout.splitlines()[:2] == ["tail-ok", "eof"]
    assert record.exit_code == 0


@pytest.mark.requirement("O-SQ-04")
@pytest.mark.parametrize("size", [131_071 - 1024, 131_071 - 1023, 131_070, 131_071, 131_072, 131_073])
def test_no_length_around_the_limit_makes_a_difference(size: int, host: SyncProctor) -> None:
    start, end = ": '", "'; echo tail-ok"
    record = host.run(start + "A" * (size - len(start) - len(end)) + end, login=False)
    assert (record.output.stdout, record.error) == ("tail-ok\n", None)


@pytest.mark.requirement("O-SQ-04")
def test_five_megabytes_of_here_document_arrive_whole(host: SyncProctor) -> None:
    record = host.run("wc -c <<'EOF'\n" + "x" * 4_999_999 + "\nEOF\n")
    assert record.output.stdout == "5000000\n"


@pytest.mark.requirement("O-SQ-04")
def test_an_argument_or_variable_over_the_limit_is_named_with_the_limit(host: SyncProctor) -> None:
    record = host.run(["true"], env={"BIG": "x" * 200_000})
    assert record.status is Status.FAILED
    assert record.error is not None
    assert record.error.code == ErrorCode.ARGUMENT_TOO_LONG
    assert "BIG" in record.error.message
    assert "131072" in record.error.message
    record = host.run(["true", "y" * 140_000])
    assert record.error is not None
    assert record.error.code == ErrorCode.ARGUMENT_TOO_LONG
    assert "Argument 1" in record.error.message
    record = host.run(["true", *(["z" * 100_000] * 30)])
    assert record.error is not None
    assert record.error.code == ErrorCode.ARGUMENT_TOO_LONG
    assert "together" in record.error.message


@pytest.mark.requirement("O-SQ-05")
def test_what_is_missing_is_named_as_what_it_is(host: SyncProctor, work: Path) -> None:
    (work / "plain.txt").write_text("no program")
    (work / "notadir").write_text("")
    (work / "loop").symlink_to("loop")
    bad_script = work / "bad.sh"
    bad_script.write_text("#!/no/such/interpreter\n")
    bad_script.chmod(0o755)
    expected = {
        ("cwd", "/no/such/dir"): ErrorCode.CWD_NOT_FOUND,
        ("cwd", "/etc/hostname"): ErrorCode.CWD_NOT_A_DIRECTORY,
        ("cwd", str(work / "loop")): ErrorCode.CWD_NOT_A_DIRECTORY,
        ("argv", "/no/such/prog"): ErrorCode.PROGRAM_NOT_FOUND,
        ("argv", "no-such-program-anywhere"): ErrorCode.PROGRAM_NOT_FOUND,
        ("argv", str(work / "notadir" / "prog")): ErrorCode.PROGRAM_NOT_FOUND,
        ("argv", str(bad_script)): ErrorCode.PROGRAM_NOT_FOUND,
        ("argv", str(work / "plain.txt")): ErrorCode.PROGRAM_NOT_EXECUTABLE,
        ("argv", "/tmp"): ErrorCode.PROGRAM_NOT_EXECUTABLE,
    }
    for (what, path), code in expected.items():
        record = host.run("touch ran; echo hi", cwd=path) if what == "cwd" else host.run([path])
        assert record.status is Status.FAILED, path
        assert record.error is not None
        assert (record.error.code, path in record.error.message) == (code, True), path
        assert record.error.hint
        assert record.pid is None
    assert not (work / "ran").exists()


CLOSED_FOLDER = """
os.mkdir("closed", 0o000)
with proctor.open_sync(home=home) as p:
    record = p.run("echo hi", cwd=os.path.abspath("closed"))
    print(record.status, record.error.code, os.path.abspath("closed") in record.error.message)
os.rmdir("closed")
"""


@pytest.mark.requirement("O-SQ-05")
def test_a_plain_user_learns_that_a_folder_may_not_be_entered(as_plain_user: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = as_plain_user(CLOSED_FOLDER)
    assert (done.stdout, done.returncode) == ("failed cwd_not_accessible True\n", 0), done.stderr


@pytest.mark.requirement("O-SQ-06")
@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced by a file"])
def test_a_host_whose_folder_is_gone_runs_in_the_nearest_one_left_and_says_so(
    fate: str, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = tmp_path / "a" / "wt"
    lost.mkdir(parents=True)
    monkeypatch.chdir(lost)
    monkeypatch.setenv("PWD", str(lost))  # as a shell sets it: a folder that is gone has no other name
    with proctor.open_sync(home=home) as host:
        if fate == "moved":
            lost.rename(tmp_path / "elsewhere")
        else:
            lost.rmdir()
        if fate == "replaced by a file":
            lost.write_text("")
        alive = host.run("echo alive; pwd")
        away = host.run("cd / && pwd")
    assert away.output.stdout == "/\n"
    if fate == "moved":
        assert alive.output.stdout == f"alive\n{tmp_path}/elsewhere\n"  # the folder lives, under another name
        return
    assert alive.output.stdout == f"alive\n{tmp_path}/a\n"
    assert any(notice.startswith("cwd_lost") and str(lost) in notice for notice in alive.notices)


@pytest.mark.requirement("O-SQ-06")
def test_a_named_session_goes_on_after_a_call_removed_its_folder(host: SyncProctor, tmp_path: Path) -> None:
    folder = tmp_path / "wt"
    assert host.run(f"mkdir -p {folder} && cd {folder}", session="s").exit_code == 0
    assert host.run(f"rm -rf {folder}", session="s").exit_code == 0
    assert host.run("echo alive", session="s").output.stdout == "alive\n"
    assert host.run("cd / && pwd", session="s").output.stdout == "/\n"
    lost = host.run("echo hi", session="s", cwd=folder)
    assert lost.error is not None
    assert str(folder) in lost.error.message


@pytest.mark.requirement("O-SQ-06")
def test_a_command_may_remove_its_own_folder_and_go_on(host: SyncProctor, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    record = host.run("rm -rf $PWD; sleep 0.2; echo still", cwd=folder)
    assert (record.output.stdout, record.exit_code) == ("still\n", 0)
    assert not folder.exists()


WITH_OPEN_STDIN = """
with proctor.open_sync(home=home) as p:
    for text in ("cat", "read -p 'Proceed? ' x; echo got:$x", "python3 -c 'input()'"):
        record = p.run(text, timeout=20)
        print(record.status, record.exit_code, round(record.duration_s, 1) < 1, repr(record.output.stdout))
    print(sys.stdin.readline().strip())
"""


@pytest.mark.requirement("O-SQ-07")
def test_commands_find_their_input_at_its_end_and_take_nothing_of_the_hosts(script: Callable[..., object]) -> None:
    running = script(WITH_OPEN_STDIN)
    running.process.stdin.write("mine\n")  # type: ignore[attr-defined]
    running.process.stdin.flush()  # type: ignore[attr-defined]
    told = [running.line() for _ in range(4)]  # type: ignore[attr-defined]
    assert told == ["exited 0 True ''", "exited 0 True 'got:\\n'", "exited 1 True ''", "mine"]


UNDER_A_TERMINAL = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[1]])
told = b""
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    told += data
os.waitpid(pid, 0)
print(told.decode().replace("\\r\\n", "\\n"))
"""

WANTS_THE_TERMINAL = """
import os, sys, proctor
assert os.isatty(0) and os.open("/dev/tty", os.O_RDWR) >= 0
with proctor.open_sync(home=sys.argv[1]) as p:
    for text in ("exec 3</dev/tty && read -u3 x; echo rc=$?", "stty -a </dev/tty", "ps -o tty= -p $$"):
        record = p.run(text, timeout=20)
        print(record.status, record.exit_code, record.duration_s < 2, (record.output.text or "").strip())
"""


@pytest.mark.requirement("O-SQ-08")
def test_a_command_has_no_controlling_terminal_even_when_its_host_has_one(home: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_TERMINAL, home, WANTS_THE_TERMINAL], capture_output=True, text=True, timeout=30, check=False
    )
    lines = done.stdout.strip().splitlines()
    assert "exited" in lines[0], done.stdout + done.stderr
    assert "No such device or address" in done.stdout
    assert "rc=1" in done.stdout
    assert lines[-1] == "exited 0 True ?"


@pytest.mark.requirement("O-SQ-08")
def test_git_asks_nobody_for_a_password(host: SyncProctor, work: Path) -> None:
    server = """
import http.server, sys
class Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=x")
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
print(s.server_port, flush=True)
s.serve_forever()
"""
    (work / "server.py").write_text(server)
    with host.start("exec python3 server.py") as serving:
        port = _first_line(serving)
        direct = {"NO_PROXY": "*", "no_proxy": "*"}
        record = host.run(f"git -c credential.helper= ls-remote http://127.0.0.1:{port}/x.git", timeout=20, env=direct)
        serving.stop(grace=1)
    assert record.status is Status.EXITED
    assert record.exit_code not in {0, None}
    assert record.duration_s is not None
    assert record.duration_s < 5
    assert "could not read Username" in (record.output.text or "")


def _first_line(execution: proctor.SyncExecution) -> str:
    data = b""
    until = time.monotonic() + 10
    while not data.endswith(b"\n"):
        assert time.monotonic() < until
        data = execution.read_since(0).data
    return data.decode().strip()


@pytest.mark.requirement("O-SQ-09")
def test_exit_codes_and_signals_are_told_as_they_were(host: SyncProctor) -> None:
    expected: dict[str | tuple[str, ...], tuple[int | None, str | None]] = {
        "false | true": (0, None),
        "set -o pipefail; false | true": (1, None),
        ("sh", "-c", "kill -SEGV $$"): (None, "SEGV"),
        "sh -c 'kill -KILL $$'": (None, "KILL"),
        "sh -c 'kill -KILL $$'; exit $?": (137, None),
        "exit 256": (0, None),
        "exit 300": (44, None),
        "exit 255": (255, None),
        "kill -USR1 $$": (None, "USR1"),
        "kill -34 $$": (None, "RTMIN"),
        "kill -40 $$": (None, "40"),
    }
    for command, outcome in expected.items():
        record = host.run(command if isinstance(command, str) else list(command))
        assert (record.exit_code, record.signal) == outcome, command
        assert record.status is Status.EXITED
        assert record.ended_by == ("exit" if outcome[1] is None else "signal")
        with host.start(command if isinstance(command, str) else list(command)) as background:
            ended = background.wait()
        assert (ended.exit_code, ended.signal, ended.ended_by) == (*outcome, record.ended_by), command
        shown = host.show(ended.id)
        assert (shown.exit_code, shown.signal) == outcome
