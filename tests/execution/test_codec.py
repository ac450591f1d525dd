from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.execution import (
    Event,
    Launch,
    Limits,
    Spec,
    Status,
    changed,
    decode,
    decode_event,
    encode,
    encode_event,
    parse_time,
    render_time,
)

from .strategies import events, specs


@given(spec=specs)
def test_a_spec_survives_its_json(spec: Spec) -> None:
    assert decode(Spec, json.loads(json.dumps(encode(spec)))) == spec


@given(event=events)
def test_an_event_survives_its_json(event: Event) -> None:
    assert decode_event(json.loads(json.dumps(encode_event(event)))) == event


@pytest.mark.requirement("I2-golden-files")
@given(spec=specs, more=st.dictionaries(st.text(min_size=1).map("later_".__add__), st.integers()))
def test_keys_of_a_later_version_are_ignored(spec: Spec, more: dict[str, int]) -> None:
    assert decode(Spec, {**encode(spec), **more}) == spec


@given(event=events)
def test_missing_keys_take_their_defaults_and_required_ones_are_missed(event: Event) -> None:
    data = encode_event(event)
    del data["at"]
    with pytest.raises(TypeError):
        decode_event(data)
    assert decode(Limits, {}) == Limits()


def test_an_unknown_event_is_none() -> None:
    assert decode_event({"event": "teleported"}) is None
    assert decode_event({}) is None


def test_a_value_outside_its_closed_set_is_an_error() -> None:
    with pytest.raises(ValueError, match="perhaps"):
        Status("perhaps")
    with pytest.raises(ValueError, match="perhaps"):
        decode_event({"event": "not_started", "at": "2026-12-01T00:00:00Z", "ended_by": "perhaps"})


@given(moment=st.datetimes(timezones=st.timezones(), min_value=datetime(1970, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_a_time_of_any_zone_is_told_in_utc_and_read_back(moment: datetime) -> None:
    text = render_time(moment)
    assert text.endswith("Z")
    assert len(text) == len("2026-12-01T00:00:00.000000Z")
    assert parse_time(text) == moment.astimezone(UTC)


def test_a_time_is_written_as_it_has_always_been() -> None:
    moment = datetime(2026, 12, 1, 2, 30, tzinfo=timezone(timedelta(hours=2)))
    assert render_time(moment) == "2026-12-01T00:30:00.000000Z"


def test_a_changed_copy_leaves_its_original() -> None:
    limits = Limits(timeout_s=1.0)
    assert changed(limits, timeout_s=2.0) == Limits(timeout_s=2.0)
    assert limits == Limits(timeout_s=1.0)


def test_a_launch_survives_its_json() -> None:
    launch = Launch(argv=("a", "b"), env={"A": "1"}, cwd="/", umask=0o22, nice=0, rlimits=((7, 1024, 4096),))
    assert decode(Launch, json.loads(json.dumps(encode(launch)))) == launch
