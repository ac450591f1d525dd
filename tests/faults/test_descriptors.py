"""What a command holds of proctor's: nothing. Whoever holds the lock would be taken for the keeper, long after it is dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proctor import SyncProctor

LIST = "import os; print(sorted({int(n) for n in os.listdir('/proc/self/fd')} - {max(map(int, os.listdir('/proc/self/fd')))}))"


@pytest.mark.requirement("I2-inheritance")
@pytest.mark.parametrize(
    "options",
    [{}, {"stdin": b"given"}, {"stdin": "pipe"}, {"streams": "merged"}, {"user": "root"}],
    ids=["plain", "bytes", "pipe", "merged", "by fork and exec"],
)
def test_a_command_has_the_descriptors_0_to_2_and_no_other(options: dict[str, Any], host: SyncProctor) -> None:
    for command in (["python3", "-c", LIST], f'exec python3 -c "{LIST}"'):
        record = host.run(command, login=False, **options)  # another user's profile is that user's affair
        assert record.output.text == "[0, 1, 2]\n", record


def test_a_text_that_is_too_long_for_an_argument_comes_by_one_more_descriptor_only(host: SyncProctor) -> None:
    record = host.run(f'python3 -c "{LIST}"\n# {"x" * 200_000}')
    assert record.output.text == "[0, 1, 2, 3]\n", record
