from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.execution import ID_LENGTH, is_id, is_id_prefix, make_id, milliseconds_of

moments = st.integers(0, (1 << 48) - 1)
entropy = st.binary(min_size=10, max_size=10)


@given(at=moments, random=entropy)
def test_an_id_holds_its_time_and_every_beginning_of_it_is_a_prefix(at: int, random: bytes) -> None:
    name = make_id(at, random)
    assert len(name) == ID_LENGTH
    assert is_id(name)
    assert name == name.lower()
    assert milliseconds_of(name) == at
    assert all(is_id_prefix(name[:length]) for length in range(1, ID_LENGTH + 1))


@given(pairs=st.lists(st.tuples(moments, entropy), min_size=2, max_size=8))
def test_ids_sort_by_time_and_then_by_their_random_part(pairs: list[tuple[int, bytes]]) -> None:
    assert sorted(make_id(at, random) for at, random in pairs) == [make_id(at, random) for at, random in sorted(pairs)]


def test_known_ids_are_what_they_have_always_been() -> None:
    assert make_id(0, bytes(10)) == "0" * 26
    assert make_id((1 << 48) - 1, b"\xff" * 10) == "7" + "z" * 25
    assert make_id(1_796_090_000_000, bytes(range(10))) == "01m8qmwwm0000g40r40m30e209"


@pytest.mark.parametrize("text", ["", "0" * 25, "0" * 27, "8" + "0" * 25, "I" + "0" * 25, "0" * 25 + "u", "0" * 25 + "A", "0" * 25 + "\n"])
def test_what_is_no_id_is_not_taken_for_one(text: str) -> None:
    assert not is_id(text)


@pytest.mark.parametrize("text", ["", "0" * 27, "o", "-", "0/", "%"])
def test_what_cannot_begin_an_id_is_no_prefix(text: str) -> None:
    assert not is_id_prefix(text)


@pytest.mark.parametrize(("at", "random"), [(-1, bytes(10)), (1 << 48, bytes(10)), (0, bytes(9)), (0, bytes(11))])
def test_a_time_or_entropy_that_does_not_fit_is_refused(at: int, random: bytes) -> None:
    with pytest.raises(ValueError, match="10 random bytes"):
        make_id(at, random)
