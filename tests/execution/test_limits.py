from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.execution import MAXIMUM_TIMEOUT_S, Limits, clamp

from .strategies import limits


def test_a_timeout_above_its_maximum_is_brought_down_and_the_record_says_from_what() -> None:
    clamped = clamp(Limits(timeout_s=100_000), maximum_timeout_s=MAXIMUM_TIMEOUT_S)
    assert clamped.timeout_s == MAXIMUM_TIMEOUT_S
    assert clamped.clamped == ("timeout_s: 100000 -> 86400",)


@given(given_limits=limits, maximum=st.floats(0, 1e6))
def test_nothing_is_clamped_silently_and_nothing_else_is_touched(given_limits: Limits, maximum: float) -> None:
    clamped = clamp(given_limits, maximum_timeout_s=maximum)
    if given_limits.timeout_s is None or given_limits.timeout_s <= maximum:
        assert clamped == given_limits
    else:
        assert clamped.timeout_s == maximum
        assert clamped.clamped[:-1] == given_limits.clamped
        assert clamped.idle_timeout_s == given_limits.idle_timeout_s


def test_no_limit_stays_no_limit() -> None:
    assert clamp(Limits(), maximum_timeout_s=1.0) == Limits()
