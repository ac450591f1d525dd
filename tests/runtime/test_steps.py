"""One piece of work, two drivers: both wait for the same things, and giving up is cleaned up after, once, before it goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from proctor.runtime import Abandoned, Wait, run_async, run_blocking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from proctor.runtime import Steps

    Driver = Callable[[Steps[str]], str]


def _driven_by_asyncio(steps: Steps[str]) -> str:
    return asyncio.run(run_async(steps))


@pytest.fixture(params=[run_blocking, _driven_by_asyncio], ids=["blocking", "asyncio"])
def drive(request: pytest.FixtureRequest) -> Driver:
    driver: Driver = request.param
    return driver


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_what_can_be_read_and_written_is_waited_for(drive: Driver, pipe: tuple[int, int]) -> None:
    reading, writing = pipe

    def work() -> Steps[str]:
        yield Wait(writing=writing)
        threading.Timer(0.05, os.write, (writing, b"x")).start()
        yield Wait(reading=reading)
        return os.read(reading, 1).decode()

    assert drive(work()) == "x"


def test_a_moment_ends_a_wait_and_one_that_has_passed_ends_it_at_once(drive: Driver, pipe: tuple[int, int]) -> None:
    def work() -> Steps[str]:
        began = time.monotonic()
        yield Wait(reading=pipe[0], until=began + 0.1)
        assert 0.1 <= time.monotonic() - began < 1
        yield Wait(until=began)
        assert time.monotonic() - began < 1
        return "done"

    assert drive(work()) == "done"


def test_what_the_work_raises_is_raised(drive: Driver) -> None:
    def work() -> Steps[str]:
        yield Wait(until=0.0)
        raise LookupError("of the work")

    with pytest.raises(LookupError, match="of the work"):
        drive(work())


class Cleaning:
    """Work that waits for ever, and cleans up in two steps when it is given up."""

    def __init__(self, reading: int) -> None:
        self.reading = reading
        self.steps: list[str] = []

    def work(self) -> Steps[str]:
        try:
            self.steps.append("waiting")
            yield Wait(reading=self.reading)
        except Abandoned:
            self.steps.append("given up")
            yield Wait(until=time.monotonic() + 0.1)
            self.steps.append("asked")
            yield Wait(until=time.monotonic() + 0.1)
            self.steps.append("clean")
            raise
        return "never"


@pytest.mark.requirement("I2-cancel")
@pytest.mark.parametrize("times", [1, 3])
def test_a_cancellation_goes_on_once_the_work_is_clean_however_often_it_comes(times: int, pipe: tuple[int, int]) -> None:
    cleaning = Cleaning(pipe[0])

    async def main() -> None:
        task = asyncio.ensure_future(run_async(cleaning.work()))
        await asyncio.sleep(0.02)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.02)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert cleaning.steps == ["waiting", "given up", "asked", "clean"]


@pytest.mark.requirement("I2-cancel")
def test_an_interruption_while_the_work_waits_goes_on_once_the_work_is_clean(pipe: tuple[int, int]) -> None:
    cleaning = Cleaning(pipe[0])
    threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run_blocking(cleaning.work())
    assert cleaning.steps == ["waiting", "given up", "asked", "clean"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Interrupted(Cleaning):
    """The same, interrupted in the middle of what it does, again and again."""

    def work(self) -> Steps[str]:
        cleaned = super().work()
        for wait in cleaned:
            signal.raise_signal(signal.SIGINT)
            self.steps.append("busy")  # Python would have raised KeyboardInterrupt before this
            try:
                yield wait
            except Abandoned as given_up:
                wait = cleaned.throw(given_up)  # noqa: PLW2901 - what the clean-up waits for first
                signal.raise_signal(signal.SIGINT)
                self.steps.append("busy")
                yield wait
        return "never"


@pytest.mark.requirement("I2-cancel")
def test_interruptions_in_the_middle_of_the_work_are_kept_until_it_waits(pipe: tuple[int, int]) -> None:
    interrupted = Interrupted(pipe[0])
    with pytest.raises(KeyboardInterrupt):
        run_blocking(interrupted.work())
    assert interrupted.steps == ["waiting", "busy", "given up", "busy", "asked", "busy", "clean"]


@pytest.mark.requirement("I2-cancel")
def test_an_interruption_that_comes_too_late_is_raised_behind_the_work() -> None:
    done: list[str] = []

    def work() -> Steps[str]:
        yield Wait(until=0.0)
        signal.raise_signal(signal.SIGINT)
        done.append("done")
        return "result"

    with pytest.raises(KeyboardInterrupt):
        run_blocking(work())
    assert done == ["done"]


@pytest.mark.requirement("I2-cancel")
def test_a_program_that_handles_interruptions_itself_is_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))

    def work() -> Steps[str]:
        yield Wait(until=0.0)
        signal.raise_signal(signal.SIGINT)
        return "result"

    try:
        assert run_blocking(work()) == "result"
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


@pytest.mark.requirement("I2-cancel")
def test_work_that_comes_to_its_end_in_spite_of_being_given_up_is_cancelled_all_the_same(pipe: tuple[int, int]) -> None:
    def work() -> Steps[str]:
        try:
            yield Wait(reading=pipe[0])
        except Abandoned:
            return "result"
        return "never"

    async def main() -> None:
        task = asyncio.ensure_future(run_async(work()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_many_pieces_of_work_wait_on_one_loop(pipe: tuple[int, int]) -> None:
    def work() -> Steps[str]:
        yield Wait(until=time.monotonic() + 0.1)
        return "done"

    async def main() -> list[str]:
        return await asyncio.gather(*(run_async(work()) for _ in range(50)))

    began = time.monotonic()
    assert asyncio.run(main()) == ["done"] * 50
    assert time.monotonic() - began < 2
    del pipe
