"""The watch over what tests leave behind, shown by tests that do leave something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
LEAVING = Path(__file__).with_name("leaving.py")


@pytest.mark.requirement("I2-leak-watch")
def test_a_test_that_leaves_something_fails_with_its_name_and_harms_no_other(tmp_path: Path) -> None:
    report = run_pytest_on_what_leaves(tmp_path)
    words = {case.attrib["name"]: error for case in report.iter("testcase") if (error := case.findtext("error"))}
    pids = {case.attrib["name"]: left.attrib["value"] for case in report.iter("testcase") for left in case.iter("property")}
    expected = {
        **{name: f"process {pid} was left behind: " for name, pid in pids.items()},
        "test_a_descriptor": "was left open: /dev/null",
        "test_a_file_of_the_user": "/user/.left",
        "test_a_temporary_file": "a file was left outside the test's folder: ",
    }
    tests = {case.attrib["name"] for case in report.iter("testcase")}
    assert len(pids) == 4
    assert words.keys() == expected.keys() == tests - {"test_nothing_is_left", "test_nothing_is_left_after_all_that"}
    assert {name for name in expected if expected[name] not in words[name]} == set()
    assert {pid for pid in pids.values() if b"time.sleep(600)" in command_of(pid)} == set()


def run_pytest_on_what_leaves(folder: Path) -> ET.Element:
    options = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-o",
        "junit_family=xunit1",
        f"--basetemp={folder / 'inner'}",
        f"--junit-xml={folder / 'report'}",
    ]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run([sys.executable, "-m", "pytest", *options, str(LEAVING)], check=False, capture_output=True, cwd=ROOT, env=environ)
    return ET.parse(folder / "report").getroot()  # noqa: S314 - pytest wrote it a moment ago


def command_of(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""
