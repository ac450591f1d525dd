from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from proctor.output import Spool, spool

from .keeping import SMALL_SEGMENT, Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session", autouse=True)
def _small_segments() -> Iterator[None]:
    """Let tails of a few hundred bytes rotate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "MINIMUM_SEGMENT_BYTES", SMALL_SEGMENT)
        yield


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Callable[..., Kept]]:
    """Make a spool in a folder of its own."""
    descriptors: list[int] = []
    spools: list[Spool] = []

    def make(*, head: int = 100, tail: int = 640, split: bool = True, clock: Callable[[], float] = lambda: 0.0) -> Kept:
        folder = tmp_path / f"run{len(descriptors)}"
        folder.mkdir(mode=0o700)
        descriptors.append(os.open(folder, os.O_RDONLY))
        spools.append(Spool(descriptors[-1], head_bytes=head, tail_bytes=tail, split=split, clock=clock))
        return Kept(folder, spools[-1], descriptors[-1])

    yield make
    for one in spools:
        one.close()
    for descriptor in descriptors:
        os.close(descriptor)
