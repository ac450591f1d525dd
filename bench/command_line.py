"""Start-up of the command line, as whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from .measure import Line, interleaved, show


def measure(rounds: int = 30) -> list[Line]:
    proctor = os.path.join(os.path.dirname(sys.executable), "proctor")
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PROCTOR_HOME": home}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def call(*argv: str) -> None:
            subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL)

        samples = interleaved(
            {
                "python3 -S -c pass": lambda: call(sys.executable, "-S", "-c", "pass"),
                "python3 -c pass (with site)": lambda: call(sys.executable, "-c", "pass"),
                "proctor --version": lambda: call(proctor, "--version"),
                "proctor run --shell none -- true": lambda: call(proctor, "run", "--shell", "none", "--", "true"),
            },
            rounds=rounds,
        )
    show("the command line, whole processes", samples, "python3 -S -c pass")
    base = samples["python3 -S -c pass"].median_ms
    version = samples["proctor --version"].median_ms / base
    run = samples["proctor run --shell none -- true"].median_ms / base
    return [
        Line("CLI --version", f"{version:.2f} x python3 -S -c pass", "<= 2 x", version <= 2),
        Line("CLI run --shell none -- true", f"{run:.2f} x python3 -S -c pass", "<= 7 x", run <= 7),
    ]
