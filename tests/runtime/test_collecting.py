from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

import proctor
from proctor.data import changed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("I2-gc")
def test_once_a_day_a_host_removes_what_is_old_when_its_work_is_done(home: str) -> None:
    with proctor.open_sync(home=home) as p:
        old, new = p.run(["true"]), p.run(["true"])
        p.runtime.save()
        assert old.ended_at is not None
        aged = changed(old, ended_at=old.ended_at.fromtimestamp(time.time() - 15 * 86_400, tz=old.ended_at.tzinfo))
        p.runtime.index.put(aged)
    runs = os.path.join(home, "runs")
    assert old.id not in os.listdir(runs)
    assert new.id in os.listdir(runs)
    with proctor.open_sync(home=home) as p:
        p.runtime.index.put(changed(aged, id=new.id))
    assert new.id in os.listdir(runs)  # not twice a day


@pytest.mark.requirement("I2-gc")
def test_a_host_that_cannot_collect_closes_all_the_same(home: str, tmp_path: Path) -> None:
    p = proctor.open_sync(home=home)
    p.runtime.index.close()
    p.close()
    assert tmp_path.exists()
