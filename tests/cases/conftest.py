"""In every case the witness looks at the end: what a case leaves behind fails it, whatever it asserted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.conftest import Script

if TYPE_CHECKING:
    from proctor.testing import Marker

__all__ = ["Script"]


@pytest.fixture(autouse=True)
def _witnessed(marker: Marker) -> None:
    """Have the witness in every case."""
    del marker
