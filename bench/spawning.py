"""One short command, from request to proved ending, against the bare ways to start a process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile

import proctor

from .measure import Line, interleaved, show

TRUE = "/bin/true"
SHELL = ["/bin/bash", "-c", "true"]


def measure(rounds: int = 200) -> list[Line]:
    with tempfile.TemporaryDirectory() as home, proctor.open_sync(home=home) as p:
        loop = asyncio.new_event_loop()
        pa = proctor.open(home=home)
        loop.run_until_complete(pa.__aenter__())
        samples = interleaved(
            {
                "os.posix_spawn + waitpid": _posix_spawn,
                "subprocess.run": lambda: subprocess.run([TRUE], check=True),
                "subprocess.run, output captured": lambda: subprocess.run([TRUE], check=True, capture_output=True),
                "asyncio create_subprocess_exec": lambda: loop.run_until_complete(_asyncio_exec([TRUE])),
                "proctor run(['true']), scripts": lambda: p.run([TRUE]),
                "proctor run(['true']), asyncio": lambda: loop.run_until_complete(pa.run([TRUE])),
            },
            rounds=rounds,
        )
        show("run(['true']), request to proved ending", samples, "os.posix_spawn + waitpid")
        shell = interleaved(
            {
                "asyncio create_subprocess_exec, piped": lambda: loop.run_until_complete(_asyncio_exec(SHELL)),
                "proctor run('true', login=False), asyncio": lambda: loop.run_until_complete(pa.run("true", login=False)),
                "proctor run('true', login=False), scripts": lambda: p.run("true", login=False),
            },
            rounds=rounds,
        )
        show("run('true') through bash -c", shell, "asyncio create_subprocess_exec, piped")
        pa.close()
        loop.close()
    ratio = samples["proctor run(['true']), scripts"].median_ms / samples["os.posix_spawn + waitpid"].median_ms
    more = shell["proctor run('true', login=False), asyncio"].median_ms - shell["asyncio create_subprocess_exec, piped"].median_ms
    return [
        Line("library run(['true']), proved", f"{ratio:.2f} x posix_spawn + wait", "<= 3.5 x", ratio <= 3.5),
        Line("shell text against asyncio's create_subprocess_exec", f"{more:+.2f} ms", "<= + 3 ms", more <= 3),
    ]


def _posix_spawn() -> None:
    os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)


async def _asyncio_exec(argv: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    await process.communicate()
