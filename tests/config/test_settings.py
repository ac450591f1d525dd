"""The table of defaults in DESIGN section 2a, column by column."""

from __future__ import annotations

import pytest

from proctor.config import Face, defaults
from proctor.execution import Lifetime, OnLinger, Streams

TABLE = {
    Face.LIBRARY_RUN: (Lifetime.CALL, OnLinger.STOP, None, None, Streams.SPLIT),
    Face.LIBRARY_START: (Lifetime.HOST, OnLinger.STOP, None, None, Streams.SPLIT),
    Face.CLI_RUN: (Lifetime.CALL, OnLinger.STOP, None, None, Streams.SPLIT),
    Face.CLI_BACKGROUND: (Lifetime.DETACHED, OnLinger.STOP, None, None, Streams.SPLIT),
    Face.TOOL_FOREGROUND: (Lifetime.CALL, OnLinger.KEEP, 600, 10_000_000, Streams.MERGED),
    Face.TOOL_BACKGROUND: (Lifetime.HOST, OnLinger.KEEP, None, 10_000_000, Streams.MERGED),
}


@pytest.mark.parametrize("face", Face)
def test_each_face_has_the_defaults_that_are_documented(face: Face) -> None:
    settings = defaults(face)
    assert (settings.lifetime, settings.on_linger, settings.timeout_s, settings.output_limit_bytes, settings.streams) == TABLE[face]
    assert (settings.kept_head_bytes, settings.kept_tail_bytes) == (8 << 20, 56 << 20)
    assert (settings.maximum_timeout_s, settings.gc_older_than_s, settings.gc_max_bytes) == (86_400, 14 * 86_400, 5_000_000_000)
    assert (settings.session_quota, settings.dialect, settings.login) == (8, None, None)


def test_a_background_task_in_a_named_session_belongs_to_the_session() -> None:
    assert defaults(Face.TOOL_BACKGROUND, named_session=True).lifetime is Lifetime.SESSION
    assert defaults(Face.CLI_BACKGROUND, named_session=True).lifetime is Lifetime.DETACHED
