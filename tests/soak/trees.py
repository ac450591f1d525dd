"""The nasty trees, each bounded in processes and time: ``python trees.py NAME SIZE``. It says ``up`` on standard output once it stands.

They are what killing by group or by one look at /proc leaves something of (the kinds and the numbers are those of the measurements that
the stop was designed by). The root never ends by itself, except where that is the point.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LIFE_S = 120.0  # whatever goes wrong, nothing of a tree is older than this
GENERATIONS = 20_000


def live() -> None:
    """Do nothing until the end of its days."""
    select.select((), (), (), LIFE_S)
    os._exit(0)


def child(work: object = live) -> int:
    """Fork a child that does its work and never comes back."""
    pid = os.fork()
    if pid == 0:
        try:
            work()  # type: ignore[operator]
        finally:
            os._exit(0)
    return pid


def up() -> None:
    """Say that the tree stands."""
    os.write(1, b"up\n")


def daemon(_: int) -> None:
    """Fork twice, in a session of its own, deaf to what is polite, with the output held open."""

    def become() -> None:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        child()

    os.waitpid(child(become), 0)


def session(_: int) -> None:
    """Have a child in a session of its own."""
    child(lambda: (os.setsid(), live()))


def stopped(_: int) -> None:
    """Have a child that is stopped, in a group of its own."""
    pid = child(lambda: (os.setpgid(0, 0), os.kill(os.getpid(), signal.SIGSTOP), live()))
    os.waitpid(pid, os.WUNTRACED)


def group(_: int) -> None:
    """Have children in groups of their own."""
    for _number in range(3):
        child(lambda: (os.setpgid(0, 0), live()))


def orphans(_: int) -> None:
    """Leave everything to others: the root ends at once."""
    for _number in range(3):
        child(lambda: (os.setsid(), child(), live()))


def hopper(_: int) -> None:
    """Be somebody else all the time: each generation forks the next one and ends."""

    def hop() -> None:
        os.setsid()
        for _number in range(GENERATIONS):
            if os.fork():
                os._exit(0)

    child(hop)


def breeder(size: int) -> None:
    """Fork in a session of its own, without a pause, up to a number; a third of them is enough to stand: the rest comes during the stop."""
    reading, writing = os.pipe()

    def breed() -> None:
        os.setsid()
        for number in range(size):
            with suppress(BlockingIOError):
                child()
            if number == size // 3:
                os.write(writing, b".")
        live()

    child(breed)
    os.read(reading, 1)


def crowd(size: int) -> None:
    """Have many children, all of them there."""
    for _number in range(size):
        child()


def chain(size: int) -> None:
    """Have a child that has a child that has a child."""
    reading, writing = os.pipe()

    def link(left: int) -> None:
        if left == 0:
            os.write(writing, b"end")
        else:
            child(lambda: link(left - 1))
        live()

    child(lambda: link(size))
    os.read(reading, 3)


def threads(size: int) -> None:
    """Have many threads, and children of some of them: they are listed per thread only."""
    started = threading.Barrier(size + 1)

    def work(number: int) -> None:
        if number % 40 == 0:
            child()
        started.wait()
        live()

    for number in range(size):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    started.wait()


SIZES: dict[Callable[[int], None], int] = {breeder: 1500, crowd: 1000, chain: 150, threads: 400}
KINDS = (daemon, session, stopped, group, hopper, breeder, crowd, chain, threads)


def everything(size: int) -> None:
    """All of them together, a quarter of the size each where there is one."""
    reading, writing = os.pipe()
    for kind in KINDS:
        child(lambda kind=kind: (kind(max(1, SIZES.get(kind, 0) * size // 400)), os.write(writing, b"."), live()))
    for _kind in KINDS:
        os.read(reading, 1)


def main(name: str, percent: int) -> None:
    """Grow the tree at this share of its full size."""
    kinds: dict[str, Callable[[int], None]] = {each.__name__: each for each in (*KINDS, orphans, everything)}
    kind = kinds[name]
    kind(percent if kind is everything else SIZES.get(kind, 0) * percent // 100)
    up()
    if kind is not orphans:
        live()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
