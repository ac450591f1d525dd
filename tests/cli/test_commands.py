"""ps, show, logs, wait, stop, send, gc, doctor, completion: what their help says, by real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proctor.testing import Marker

pytestmark = pytest.mark.requirement("I2-commands")


def background(cli: Callable[..., Any], *words: str, flags: tuple[str, ...] = ()) -> str:
    done = cli("run", "--no-login", "--background", *flags, "--", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return str(done.stdout.strip())


def test_ps_is_a_table_for_people_and_a_list_for_programs(cli: Callable[..., Any]) -> None:
    empty = cli("ps")
    assert (empty.returncode, empty.stdout) == (0, "")
    first = background(cli, "sleep", "100", flags=("--session", "one"))
    second = background(cli, "sleep", "101")
    lines = cli("ps").stdout.splitlines()
    assert re.split(r"\s{2,}", lines[0]) == ["ID", "STATUS", "AGE", "LIFETIME", "SESSION", "PID", "COMMAND"]
    cells = [re.split(r"\s{2,}", line) for line in lines[1:]]
    assert [(line[0], line[1], line[3], line[4], line[6]) for line in cells] == [
        (first, "running", "detached", "one", "sleep 100"),
        (second, "running", "detached", "-", "sleep 101"),
    ]
    assert "\x1b" not in "".join(lines)
    assert [record["id"] for record in json.loads(cli("ps", "--json", "--session", "one").stdout)] == [first]
    assert cli("stop", "--all").returncode == 0
    assert json.loads(cli("ps", "--json").stdout) == []
    history = json.loads(cli("ps", "--all", "--json").stdout)
    assert [(record["id"], record["status"]) for record in history] == [(second, "cancelled"), (first, "cancelled")]


def test_ps_all_shows_no_more_than_its_limit_and_says_so(cli: Callable[..., Any]) -> None:
    for word in ("a", "b", "c"):
        cli("run", "--", "echo", word)
    shown = cli("ps", "--all", "--limit", "2")
    assert [line.split()[-1] for line in shown.stdout.splitlines()[1:]] == ["c", "b"]
    assert "only the newest 2" in shown.stderr


def test_show_tells_ending_proof_and_output(cli: Callable[..., Any]) -> None:
    cli("run", "--no-login", "--", "echo hello; exit 3")
    shown = cli("show", "-").stdout
    for part in ("exited 3 (ended by exit)", "children-reaped", "echo hello; exit 3", "\nhello"):
        assert part in shown
    record = json.loads(cli("show", "-", "--json").stdout)
    assert (record["exit_code"], record["output"]["text"]) == (3, "hello\n")


def test_show_has_the_output_so_far_of_a_running_command(cli: Callable[..., Any]) -> None:
    started = background(cli, "echo so far; sleep 100")
    assert cli("wait", started, "--for", "text=so far", "--timeout", "10").returncode == 0
    record = json.loads(cli("show", started, "--json").stdout)
    assert (record["status"], record["output"]["text"]) == ("running", "so far\n")
    cli("stop", started)


def test_logs_by_offset_lines_pattern_and_stream(cli: Callable[..., Any]) -> None:
    cli("run", "--no-login", "--", "echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three; echo four")
    assert cli("logs", "-").stdout == "one\ntwo\nthree\nfour\n"
    assert cli("logs", "-", "--since", "4").stdout == "two\nthree\nfour\n"
    assert cli("logs", "-", "--tail", "2").stdout == "three\nfour\n"
    assert cli("logs", "-", "--tail", "0").stdout == ""
    assert cli("logs", "-", "--tail", "99").stdout == "one\ntwo\nthree\nfour\n"
    assert cli("logs", "-", "--stream", "stderr").stdout == "two\n"
    assert cli("logs", "-", "--stream", "stdout", "--tail", "3").stdout == "one\nthree\nfour\n"
    assert cli("logs", "-", "--grep", "^t").stdout == "two\nthree\n"
    assert cli("logs", "-", "--grep", "five").returncode == 1
    assert cli("logs", "-", "--grep", "(").returncode == 2
    assert cli("logs", "-", "--since", "9999").stdout == ""


def test_logs_tells_the_exact_gap_below_what_is_kept(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_KEPT_HEAD_BYTES", "1000")
    monkeypatch.setenv("PROCTOR_KEPT_TAIL_BYTES", "100000")
    done = cli("run", "--json", "--", "head", "-c", "1000000", "/dev/zero")
    output = json.loads(done.stdout)["output"]
    assert output["bytes"] == 1_000_000
    read = cli("logs", "-")
    lost = 1_000_000 - len(read.stdout)
    assert read.stderr == f"[{lost} bytes omitted, they are no longer kept]\n"
    assert output["dropped_bytes"] == lost > 0


def test_logs_follows_to_the_end_and_an_interrupted_one_stops_nothing(
    cli: Callable[..., Any], begin: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    started = background(cli, f"echo begun; cat {gate}; echo done")
    follower, leaver = begin("logs", "-f", started), begin("logs", "-f", started)
    for one in (follower, leaver):
        assert one.stdout is not None
        assert one.stdout.readline() == "begun\n"
    leaver.send_signal(signal.SIGINT)
    assert leaver.wait(20) == 130
    gate.write_text("more\n")
    assert follower.communicate(timeout=20) == ("more\ndone\n", "")
    assert follower.returncode == 0
    assert json.loads(cli("show", started, "--json").stdout)["status"] == "exited"


def test_wait_for_the_end_of_all_or_of_any(cli: Callable[..., Any]) -> None:
    short, long = background(cli, "sleep 0.3; exit 5"), background(cli, "sleep", "100")
    first = cli("wait", "--any", long, short)
    assert (first.returncode, first.stdout) == (0, f"{short} exited 5\n")
    assert cli("wait", short).returncode == 0
    assert cli("wait", short, long, "--timeout", "0.2").returncode == 124
    cli("stop", long)
    assert cli("wait", short, long).returncode == 0


def test_wait_for_a_text_a_file_or_silence(cli: Callable[..., Any], work: Path) -> None:
    started = background(cli, "sleep 0.2; printf 'now rea'; sleep 0.1; printf 'dy>'; touch made; sleep 100")
    assert cli("wait", started, "--for", "text=now r.*y>", "--timeout", "10").returncode == 0
    assert cli("wait", started, "--for", "file=made", "--timeout", "10").returncode == 0
    assert (work / "made").exists()
    began = time.monotonic()
    assert cli("wait", started, "--for", "idle=0.5", "--timeout", "10").returncode == 0
    assert time.monotonic() - began >= 0.5
    assert cli("wait", started, "--for", "text=never", "--timeout", "0.2").returncode == 124
    cli("stop", started)
    gone = cli("wait", started, "--for", "text=never")
    assert (gone.returncode, "ended before text=never" in gone.stderr) == (1, True)
    assert cli("wait", started, "--for", "moon=full").returncode == 2


def test_wait_for_a_port_means_one_of_the_executions_own(cli: Callable[..., Any]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        started = background(cli, sys.executable, "-c", "import time; time.sleep(100)")
        port = other.getsockname()[1]
        assert cli("wait", started, "--for", f"port={port}", "--timeout", "0.3").returncode == 124
        cli("stop", started)
    listen = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname()[1], flush=True)"
    started = background(cli, f'setsid -w {sys.executable} -c "{listen}; time.sleep(100)"; true')
    assert cli("wait", started, "--for", r"text=\d+\n", "--timeout", "10").returncode == 0
    port = int(cli("logs", started).stdout)
    assert cli("wait", started, "--for", f"port={port}", "--timeout", "10").returncode == 0
    cli("stop", started)


def test_stop_proves_many_at_once_and_an_ended_one_is_no_error(cli: Callable[..., Any], marker: Marker) -> None:
    deaf = [background(cli, "trap '' TERM; while :; do sleep 1; done", flags=("--session", "deaf")) for _ in range(3)]
    began = time.monotonic()
    stopped = cli("stop", "--session", "deaf", "--grace", "0.6", "--reason", "a test")
    assert time.monotonic() - began < 3 * 0.6 + 1
    assert stopped.returncode == 0
    assert sorted(stopped.stdout.splitlines()) == [f"{one} cancelled, gone (proved: children-reaped, had to be killed)" for one in deaf]
    assert not marker.gone_within(2)
    assert cli("stop", *deaf).returncode == 0
    record = json.loads(cli("show", deaf[0], "--json").stdout)
    assert (record["stop"]["by"], record["stop"]["reason"]) == ("person", "a test")
    assert cli("stop", "--session", "deaf").returncode == 0
    assert cli("stop").returncode == 2


def test_stop_ends_what_a_dead_keeper_left_behind(cli: Callable[..., Any], marker: Marker) -> None:
    started = background(cli, "sleep 1000 & sleep 1001")
    record = json.loads(cli("show", started, "--json").stdout)
    for process in marker.living():  # the second net first, as a crash of everything would
        if not process.execution:
            os.kill(process.pid, signal.SIGKILL)
    (left,) = json.loads(cli("ps", "--json").stdout)
    assert (left["id"], left["status"]) == (started, "unresolved")
    assert record["pid"] in [member["pid"] for member in left["tree"]["survivors"]]
    done = cli("stop", started)
    assert (done.returncode, "not proved gone" in done.stdout) == (3, True)  # a search that finds nobody is no proof
    assert not marker.gone_within(2)
    assert json.loads(cli("show", started, "--json").stdout)["status"] == "lost"


def test_send_gives_text_and_the_end(cli: Callable[..., Any]) -> None:
    started = background(cli, "cat", "-", flags=("--stdin-open",))
    assert cli("send", started, "a line").returncode == 0
    assert cli("send", started, "no newline", "--no-newline").returncode == 0
    assert cli("send", started, "--eof").returncode == 0
    assert cli("wait", started, "--timeout", "10").stdout == f"{started} exited 0\n"
    assert cli("logs", started).stdout == "a line\nno newline"
    assert cli("send", started).returncode == 2


def test_gc_removes_what_is_old_and_nothing_that_runs(cli: Callable[..., Any], home: str) -> None:
    ended = json.loads(cli("run", "--json", "--", "echo", "x").stdout)["id"]
    running = background(cli, "sleep", "100")
    assert cli("gc").stdout == ""
    assert cli("gc", "--older", "0", "--dry-run").stdout == f"{ended}\n"
    assert os.path.isdir(os.path.join(home, "runs", ended))
    assert cli("gc", "--older", "0s").stdout == f"{ended}\n"
    assert not os.path.exists(os.path.join(home, "runs", ended))
    assert [record["id"] for record in json.loads(cli("ps", "--all", "--json").stdout)] == [running]
    assert cli("gc", "--older", "soon").returncode == 2
    cli("stop", running)


def test_doctor_measures_and_names_the_origin_of_each_setting(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_GRACE_S", "4")
    done = cli("doctor", "--json", limit_s=60)
    report = json.loads(done.stdout)
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert done.returncode == 0
    for name in ("home", "index", "disk", "/proc children", "pidfd", "memfd", "keeper", "subreaper", "sh"):
        assert findings[name]["ok"], findings[name]
    assert "children-reaped" in findings["subreaper"]["measured"]
    assert report["settings"]["grace_s"] == {"value": 4.0, "origin": "environment PROCTOR_GRACE_S"}
    assert report["settings"]["timeout_s"] == {"value": None, "origin": "built-in"}


def test_doctor_says_what_fails_and_exits_with_1(cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "file"))
    done = cli("doctor", limit_s=60)
    assert done.returncode == 1
    assert re.search(r"^FAILS +home .*not a folder", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_its_shell_accepts(shell: str, cli: Callable[..., Any]) -> None:
    script = cli("completion", shell).stdout
    assert all(word in script for word in ("run", "logs", "timeout", "idle-timeout", "grep"))
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True, timeout=10)


def test_completion_completes_commands_and_flags_in_bash(cli: Callable[..., Any]) -> None:
    script = cli("completion", "bash").stdout
    asks = 'COMP_WORDS=(proctor {}); COMP_CWORD={}; _proctor; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(
        ["bash", "-c", "\n".join([script, asks.format("st", 1), asks.format("run --idle", 2), asks.format("ps --s", 2)])],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    assert done.stdout.splitlines() == ["stop", "--idle-timeout", "--session"]
