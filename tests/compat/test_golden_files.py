"""What an earlier version wrote must load for ever: one folder of samples for each released version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.execution import (
    Ended,
    EndedBy,
    Spec,
    Status,
    decode,
    decode_event,
    encode,
    read_journal,
    record_from_json,
    record_to_json,
    replay,
)

pytestmark = pytest.mark.requirement("I2-golden-files")

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if path.name.startswith("v"))


def spec_of(folder: Path) -> Spec:
    return decode(Spec, json.loads((folder / "spec.json").read_bytes()))


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_a_spec_loads_and_keeps_every_key(folder: Path) -> None:
    written = json.loads((folder / "spec.json").read_bytes())
    again = json.loads(json.dumps(encode(spec_of(folder))))
    assert {key: again[key] for key in written} == written


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_a_journal_replays_to_the_record_of_its_time(folder: Path) -> None:
    content = read_journal((folder / "journal.jsonl").read_bytes())
    assert not content.damaged
    record = replay(spec_of(folder), content.events)
    written = json.loads((folder / "record.json").read_bytes())
    told = json.loads(json.dumps(record_to_json(record)))
    assert {key: told[key] for key in written} == written
    assert record_from_json(written) == record


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("name", "status", "cause"),
    [("not_started", Status.FAILED, EndedBy.START_ERROR), ("lost", Status.LOST, EndedBy.KEEPER_LOST)],
)
def test_other_endings_load_too(folder: Path, name: str, status: Status, cause: EndedBy) -> None:
    record = replay(spec_of(folder), read_journal((folder / f"{name}.jsonl").read_bytes()).events)
    assert (record.status, record.ended_by) == (status, cause)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_keys_and_events_of_a_newer_version_are_passed_over(folder: Path) -> None:
    written = json.loads((folder / "record.json").read_bytes())
    assert record_from_json({**written, "a_newer_key": 1, "limits": {**written["limits"], "newer": 2}}) == record_from_json(written)
    last = read_journal((folder / "journal.jsonl").read_bytes()).events[-1]
    assert isinstance(last, Ended)
    assert decode_event({"event": "ended", **json.loads(json.dumps(encode(last))), "newer": True}) == last
    assert decode_event({"event": "of_a_newer_version", "x": 1}) is None
