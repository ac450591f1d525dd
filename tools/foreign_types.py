"""mypy --strict as on macOS and Windows, over sources and tests.

One machine never executes the other files, so the type checker is what reads them. Files that use one platform's system calls and have no
counterpart yet are listed here; a finding anywhere else fails, and so does a listed file without a finding: the list can only shrink.
"""

from __future__ import annotations

import subprocess
import sys

LINUX_ONLY = {
    "src/proctor/cli/doctor_kernel.py",
    "src/proctor/cli/signals.py",
    "src/proctor/keeper/assignment.py",
    "src/proctor/keeper/control.py",
    "src/proctor/keeper/hosting.py",
    "src/proctor/keeper/rehearsal.py",
    "src/proctor/keeper/sealing.py",
    "src/proctor/keeper/supervise.py",
    "src/proctor/process/linux.py",
    "src/proctor/process/procfs.py",
    "src/proctor/runtime/local.py",
    "src/proctor/testing/marker.py",
}
POSIX_ONLY = LINUX_ONLY | {
    "src/proctor/cli/asking.py",
    "src/proctor/cli/doctor_store.py",
    "src/proctor/cli/driving.py",
    "src/proctor/cli/outlet.py",
    "src/proctor/cli/run.py",
    "src/proctor/keeper/burial.py",
    "src/proctor/keeper/feed.py",
    "src/proctor/keeper/pump.py",
    "src/proctor/keeper/zygote.py",
    "src/proctor/process/checkpoint.py",
    "src/proctor/process/spawn.py",
    "src/proctor/runtime/bounds.py",
    "src/proctor/runtime/link.py",
    "src/proctor/runtime/prepare.py",
    "src/proctor/runtime/reattach.py",
    "src/proctor/runtime/steps.py",
    "src/proctor/store/folder.py",
    "src/proctor/testing/apart.py",
    "src/proctor/testing/fake_backend.py",
}
UNPORTED = {"darwin": LINUX_ONLY, "win32": POSIX_ONLY}
# Tests that drive real processes, by folder: what they use of POSIX is what they are about.
POSIX_TESTS = (
    "tests/cases/",
    "tests/cli/",
    "tests/conftest.py",
    "tests/contracts/",
    "tests/durability/",
    "tests/faults/",
    "tests/keeper/",
    "tests/largeoutput/",
    "tests/layout/leaving.py",
    "tests/leaks.py",
    "tests/process/",
    "tests/runtime/",
    "tests/soak/",
    "tests/store/",
)


def findings(platform: str) -> dict[str, list[str]]:
    """Return mypy's findings by file."""
    options = ["--platform", platform, "--cache-dir", f".mypy_cache/{platform}", "--no-error-summary"]
    done = subprocess.run([sys.executable, "-m", "mypy", *options, "src", "tests"], check=False, capture_output=True, text=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if ": error: " in line:
            found.setdefault(line.partition(":")[0], []).append(line)
    return found


def main() -> int:
    """Check both platforms; return the exit code."""
    complaints: list[str] = []
    seen: set[str] = set()
    for platform, unported in UNPORTED.items():
        found = findings(platform)
        seen |= found.keys()
        complaints += [line for name, lines in found.items() if name not in unported and not name.startswith(POSIX_TESTS) for line in lines]
        complaints += [
            f"{name}: has no finding as on {platform} any more; take it off the list" for name in sorted(unported - found.keys())
        ]
        print(f"{platform}: {len(unported)} files have no counterpart yet")
    portable = [place for place in POSIX_TESTS if not any(name.startswith(place) for name in seen)]
    complaints += [f"{place}: has no finding any more; take it off the list" for place in portable]
    print("".join(f"{line}\n" for line in complaints), end="")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
