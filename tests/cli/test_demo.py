"""The demo itself: it passes, cleans up, and would notice if a promise were broken."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from proctor.cli.demo import _Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor.testing import Marker


@pytest.mark.requirement("I2-demo")
def test_the_demo_shows_its_claims_and_leaves_nothing(cli: Callable[..., Any], marker: Marker) -> None:
    done = cli("demo", limit_s=60)
    assert done.returncode == 0, done.stdout
    assert "NOT SO" not in done.stdout
    claims = [line for line in done.stdout.splitlines() if line.startswith("  ok  ")]
    assert len(claims) >= 16
    for part in ("dead by SIGKILL", "no byte is missing", "proved by children-reaped", "is free again"):
        assert any(part in claim for claim in claims)
    assert not marker.gone_within(3)


@pytest.mark.requirement("I2-demo")
def test_a_claim_that_does_not_hold_is_counted(capfd: pytest.CaptureFixture[str]) -> None:
    stage = _Stage(tempfile.mkdtemp())
    stage.claim("the moon is made of cheese", holds=False)
    stage.clear()
    assert (stage.held, stage.broken) == (0, 1)
    assert "NOT SO  the moon is made of cheese" in capfd.readouterr().out
