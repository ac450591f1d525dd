"""The two faces of the library, each with a real command: the same words, the same meaning."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor import ErrorCode, ExecutionError, RequestError, Status
from proctor.execution import Ended, KeeperStarted, RootEnded, Started

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("I2-library")
def test_a_command_runs_to_its_result(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p:
            result = await p.run("echo out; echo err >&2; exit 3", login=False, timeout=20)
            assert (result.status, result.exit_code, result.signal) == (Status.EXITED, 3, None)
            assert (result.output.stdout, result.output.stderr) == ("out\n", "err\n")
            assert result.tree is not None
            assert result.tree.proved
            assert (await p.show(result.id)).output.stdout == "out\n"

    asyncio.run(main())


@pytest.mark.requirement("I2-library")
def test_a_started_command_is_read_written_to_waited_for_and_its_events_told(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p, await p.start(["cat"], stdin="pipe") as execution:
            assert execution.record.status is Status.RUNNING
            assert await execution.write(b"one\n") == 4
            chunk = await execution.read_since(0)
            while not chunk.data:
                await asyncio.sleep(0.01)
                chunk = await execution.read_since(0)
            assert chunk.data == b"one\n"
            assert await execution.write(b"two\n", eof=True) == 4
            result = await execution.wait(timeout=20)
            assert result.output.text == "one\ntwo\n"
            assert (await execution.read_since(chunk.next_offset)).data == b"two\n"
            kinds = [type(event) async for event in execution.events()]
            assert kinds == [KeeperStarted, Started, RootEnded, Ended]

    asyncio.run(main())


@pytest.mark.requirement("I2-library")
def test_a_wait_that_is_too_short_stops_nothing(home: str) -> None:
    async def main() -> None:
        async with proctor.open(home=home) as p, await p.start(["sleep", "60"]) as execution:
            with pytest.raises(ExecutionError) as over:
                await execution.wait(timeout=0.05)
            assert over.value.code is ErrorCode.WAIT_TIMEOUT
            assert [record.id for record in await p.unfinished()] == [execution.id]
            await execution.signal(signal.SIGUSR1)
            assert (await execution.wait(timeout=20)).signal == "USR1"
            with pytest.raises(ExecutionError) as ended:
                await execution.signal(signal.SIGUSR1)
            assert ended.value.code is ErrorCode.NOT_RUNNING

    asyncio.run(main())


@pytest.mark.requirement("I2-library", "I2-sync-library")
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("", {}),
        ([], {}),
        ("x\0y", {}),
        ("true", {"timeout": -1}),
        ("true", {"timeout": float("nan")}),
        ("true", {"lifetime": "forever"}),
        ("true", {"lifetime": "session"}),
        ("true", {"session": "../x"}),
        ("true", {"user": "no-such-user-here"}),
        ("true", {"colour": "red"}),
        ("true", {"streams": "both"}),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_exists(
    command: str | list[str], options: dict[str, object], host: proctor.SyncProctor
) -> None:
    with pytest.raises(RequestError) as refused:
        host.run(command, **options)  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.hint
    assert host.unfinished() == []


@pytest.mark.requirement("I2-sync-library")
def test_scripts_have_the_same_words(host: proctor.SyncProctor) -> None:
    result = host.run(["printf", "%s|", "a b", "$HOME"])
    assert (result.exit_code, result.output.stdout) == (0, "a b|$HOME|")
    with host.start("read line; echo got:$line", stdin="pipe", login=False) as execution:
        execution.write(b"x\n", eof=True)
        assert execution.wait(timeout=20).output.text == "got:x\n"
        assert [type(event) for event in execution.events()][-1] is Ended
    with host.attach(execution.id) as again:
        assert again.record.status is Status.EXITED
        assert again.read_since(0).data == b"got:x\n"


@pytest.mark.requirement("I2-sync-library")
def test_merged_streams_keep_the_exact_order(host: proctor.SyncProctor) -> None:
    result = host.run("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done", streams="merged", login=False)
    assert result.output.text == "".join(f"o{i}\ne{i}\n" for i in range(1, 6))
    assert result.output.stdout is None


@pytest.mark.requirement("I2-library")
def test_an_id_may_be_shortened_and_a_dash_is_the_last(host: proctor.SyncProctor) -> None:
    result = host.run(["true"])
    host.runtime.save()
    assert host.show(result.id[:20]).id == host.show("-").id == result.id
    for name in ("zzzz", "not an id", "0" * 26):
        with pytest.raises(ExecutionError) as unknown:
            host.show(name)
        assert unknown.value.code is ErrorCode.UNKNOWN_EXECUTION


@pytest.mark.requirement("I2-library", "I2-split-streams", "I2-offsets")
def test_each_stream_can_be_read_by_offsets_of_the_whole(host: proctor.SyncProctor) -> None:
    with host.start("echo a; echo b >&2; echo c", login=False) as execution:
        execution.wait(timeout=20)
        assert execution.read_since(0, stream=1).data == b"a\nc\n"
        assert execution.read_since(0, stream=2).data == b"b\n"


@pytest.mark.requirement("I2-environment", "I2-library")
def test_values_of_the_environment_are_never_written_down(host: proctor.SyncProctor, tmp_path: Path) -> None:
    result = host.run('test -n "$PLAIN"', env={"PLAIN": "a-value-that-nobody-may-find"}, login=False)
    assert result.exit_code == 0
    assert "PLAIN" in result.env_names
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 3
    assert not [path for path in kept if b"a-value-that-nobody-may-find" in path.read_bytes()]
