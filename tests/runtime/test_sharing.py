"""Several tasks at one execution: what one of them reads may be what another waits for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import ErrorCode, KeeperError, Status
from proctor.runtime import Abandoned, Wait, run_async

if TYPE_CHECKING:
    from proctor.runtime import Steps

LIMIT_S = 20.0


@pytest.mark.requirement("I2-library")
def test_a_task_that_waits_returns_when_another_stops(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p, await p.start(["sleep", "60"]) as execution:
            waiting = [asyncio.create_task(execution.wait()) for _ in range(3)]
            await asyncio.sleep(0)
            stopped = await execution.stop(reason="done")
            results = await asyncio.wait_for(asyncio.gather(*waiting), LIMIT_S)
            assert {result.status for result in (stopped, *results)} == {Status.CANCELLED}

    asyncio.run(main())


@pytest.mark.requirement("I2-library")
def test_a_wait_that_is_cancelled_leaves_the_other_waiting_one_alone(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p, await p.start(["cat"], stdin="pipe") as execution:
            one, other = asyncio.create_task(execution.wait()), asyncio.create_task(execution.wait())
            await asyncio.sleep(0)
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one
            assert await execution.write(b"still here\n", eof=True) == 11
            result = await asyncio.wait_for(other, LIMIT_S)
            assert (result.status, result.output.text) == (Status.EXITED, "still here\n")

    asyncio.run(main())


@pytest.mark.requirement("I2-library")
def test_events_can_be_followed_beside_a_wait_and_a_stop(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p, await p.start(["sleep", "60"]) as execution:

            async def follow() -> int:
                return len([event async for event in execution.events()])

            following, waiting = asyncio.create_task(follow()), asyncio.create_task(execution.wait())
            await asyncio.sleep(0)
            await asyncio.gather(execution.stop(), execution.stop())
            told, result = await asyncio.wait_for(asyncio.gather(following, waiting), LIMIT_S)
            assert told >= 4
            assert result.status is Status.CANCELLED

    asyncio.run(main())


@pytest.mark.requirement("I2-cancel")
def test_a_cancellation_goes_on_even_when_the_clean_up_fails() -> None:
    def work() -> Steps[None]:
        try:
            yield Wait()
        except Abandoned:
            yield Wait(until=0.0)
            raise KeeperError(ErrorCode.KEEPER_UNREACHABLE, "silent", "") from None

    async def main() -> None:
        task = asyncio.create_task(run_async(work()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
