"""Every case has the witness at its side: what it leaves behind fails it, whatever it asserted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from proctor.testing import Marker


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(marker: Marker) -> None:
    del marker
