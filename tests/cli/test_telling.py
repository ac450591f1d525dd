"""What is said about records, and when: exit code 3, survivors, colours, the progress line."""

from __future__ import annotations

import os
import pty
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.test_exits import GONE, record

from proctor.cli import printing
from proctor.cli.aftermath import lines_after
from proctor.cli.describing import lifetime_of, status_of
from proctor.cli.stopping import _told
from proctor.execution import EndedBy, Lifetime, LifetimePair, Limits, Member, OnLinger, ProofMethod, Status, Tree

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

SURVIVOR = Member(pid=77, command="sleep 1000", reason="uninterruptible")
LEFT = Tree(proved=False, method=ProofMethod.NONE, survivors=(SURVIVOR,))


@pytest.mark.requirement("I2-unkillable")
def test_stop_of_what_does_not_die_is_3_and_names_the_survivor(capfd: pytest.CaptureFixture[str]) -> None:
    assert _told(record(Status.UNRESOLVED, tree=LEFT)) == 3
    assert capfd.readouterr().out.splitlines()[1] == "  [left running: 77 sleep 1000] (uninterruptible)"
    assert _told(record(Status.CANCELLED, ended_by=EndedBy.STOP)) == 0


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (record(Status.EXITED, ended_by=EndedBy.EXIT, exit_code=0, notices=("workspace_is_home: x",)), []),
        (record(Status.EXITED, ended_by=EndedBy.EXIT, exit_code=4), []),
        (record(Status.EXITED, ended_by=EndedBy.SIGNAL, signal="SEGV"), ["[signal SIGSEGV]"]),
        (record(Status.TIMED_OUT, ended_by=EndedBy.IDLE_TIMEOUT, limits=Limits(idle_timeout_s=2)), ["[timed out after 2 s]"]),
        (
            record(Status.UNRESOLVED, tree=LEFT),
            [
                f"proctor: the ending is unresolved: see `proctor show {'0' * 26}`.",
                "[left running: 77 sleep 1000]",
                f"[still running: {'0' * 26}]",
            ],
        ),
        (record(Status.EXITED, exit_code=0, notices=("[this run had no OS isolation: x]",)), ["[this run had no OS isolation: x]"]),
    ],
)
def test_after_a_run_only_what_a_person_must_know_is_said(given: Any, lines: list[str]) -> None:
    assert lines_after(given) == lines


def test_what_was_dropped_before_it_could_be_shown_is_said() -> None:
    assert lines_after(record(Status.EXITED, exit_code=0), gap_bytes=5) == ["[5 bytes omitted, they are no longer kept]"]


def test_lists_tell_how_sure_a_status_is_and_which_lifetime_is_in_force() -> None:
    pair = LifetimePair(requested=Lifetime.CALL, effective=Lifetime.DETACHED)
    assert status_of(record(Status.RUNNING, stale=True)) == "running stale"
    assert status_of(record(Status.RUNNING, elsewhere="host-b")) == "running elsewhere: host-b"
    assert status_of(record(Status.UNRESOLVED, tree=LEFT)) == "unresolved (1 left)"
    assert lifetime_of(record(Status.LINGERING, lifetime=pair, tree=GONE)) == "call->detached"


def test_colours_are_for_terminals_and_not_where_they_are_unwanted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    assert printing.colour("x", "red") == "x"
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert printing.colour("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert printing.colour("x", "red") == "x"


def test_a_person_sees_what_a_long_stop_waits_for(begin: Callable[..., subprocess.Popen[str]]) -> None:
    ours, theirs = pty.openpty()
    run = begin("run", "--no-login", "--grace", "2.5", "--", 'trap "" TERM; echo up; while :; do sleep 0.1; done', stderr=theirs)
    assert run.stdout is not None
    assert run.stdout.readline() == "up\n"
    run.send_signal(signal.SIGTERM)
    assert run.wait(20) == 143
    seen = os.read(ours, 65_536)
    os.close(ours)
    os.close(theirs)
    assert b"proctor: stopping" in seen
    assert seen.rpartition(b"(")[2].partition(b")")[2].startswith(b"\r\x1b[K")


@pytest.mark.requirement("I2-unkillable")
def test_a_stop_without_a_proof_is_no_success_and_one_of_something_ended_is(capfd: pytest.CaptureFixture[str]) -> None:
    lost = record(Status.LOST, ended_by=EndedBy.KEEPER_LOST, tree=Tree(proved=False, method=ProofMethod.NONE))
    assert (_told(lost, acted=True), _told(lost)) == (3, 0)
    assert "not proved gone" in capfd.readouterr().out


def test_leftovers_that_were_to_be_kept_are_not_said_to_have_been_stopped() -> None:
    kept = record(Status.EXITED, ended_by=EndedBy.EXIT, exit_code=0, on_linger=OnLinger.KEEP, lingering=(SURVIVOR,))
    stopped = record(Status.EXITED, ended_by=EndedBy.EXIT, exit_code=0, lingering=(SURVIVOR,))
    assert lines_after(kept) == []
    assert "stopped what the command left" in lines_after(stopped)[0]
