from __future__ import annotations

import pytest

from proctor.output import wording


@pytest.mark.requirement("I2-wording")
def test_the_sentences_are_these_to_the_letter() -> None:
    assert [
        wording.exit_code(0),
        wording.exit_code(7),
        wording.signal("SIGKILL"),
        wording.timed_out(3.0),
        wording.timed_out(0.5),
        wording.stopped_by("person", "wrong branch"),
        wording.stopped_by("session", ""),
        wording.still_running("01k"),
        wording.left_running(42, "sleep  300\n\x09&"),
        wording.bytes_omitted(1000, "proctor logs 01k --since 2000"),
        wording.bytes_omitted(1000, "proctor logs 01k --since 2000", lost=400),
        wording.bytes_omitted(1000, "proctor logs 01k --since 2000", lost=1000),
        wording.output_ended(10_000_000),
        wording.output_ended(64_000),
        wording.output_ended(10),
        wording.no_isolation("user namespaces are off"),
        wording.sandbox_unavailable("bwrap: no permission"),
        wording.bare_cd("/w", "sub"),
        wording.bare_cd("C:\\w", "sub", written="cd /d sub && COMMAND"),
    ] == [
        "",
        "[exit code 7]",
        "[signal SIGKILL]",
        "[timed out after 3 s]",
        "[timed out after 0.5 s]",
        "[stopped by person: wrong branch]",
        "[stopped by session]",
        "[still running: 01k]",
        "[left running: 42 sleep 300 &]",
        "[1000 bytes omitted, read them with proctor logs 01k --since 2000]",
        "[1000 bytes omitted, 400 of them no longer kept, read the rest with proctor logs 01k --since 2000]",
        "[1000 bytes omitted, they are no longer kept]",
        "[output ended at 10 MB, command stopped]",
        "[output ended at 64 KB, command stopped]",
        "[output ended at 10 bytes, command stopped]",
        "[this run had no OS isolation: user namespaces are off]",
        "The command did not run. Do not change the command; the sandbox could not start: bwrap: no permission",
        'cd lasts for this call only; the next call starts in /w again. Pass cwd="sub", or write cd sub && COMMAND',
        'cd lasts for this call only; the next call starts in C:\\w again. Pass cwd="sub", or write cd /d sub && COMMAND',
    ]


def test_a_long_command_is_cut_and_says_so() -> None:
    line = wording.left_running(1, "x" * 500)
    assert len(line) < 250
    assert line.endswith("…]")
