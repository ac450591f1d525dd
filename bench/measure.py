"""Timing of competitors in turns, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Line", "Sample", "interleaved", "show"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Times of one competitor, in milliseconds."""

    name: str
    times_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)

    @property
    def p90_ms(self) -> float:
        return statistics.quantiles(self.times_ms, n=10)[-1] if len(self.times_ms) > 1 else self.times_ms[0]


@dataclass(frozen=True, slots=True)
class Line:
    """One promised figure: what was measured, and whether it is reached."""

    what: str
    measured: str
    target: str
    reached: bool


def interleaved(competitors: dict[str, Callable[[], object]], *, rounds: int, warm_up: int = 5) -> dict[str, Sample]:
    """Run every competitor once a round; the warm-up rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for number in range(warm_up + rounds):
        for name, act in competitors.items():
            begun = time.perf_counter()
            act()
            if number >= warm_up:
                times[name].append((time.perf_counter() - begun) * 1000)
    return {name: Sample(name, tuple(values)) for name, values in times.items()}


def show(title: str, samples: dict[str, Sample], base: str) -> None:
    """Print a table of medians and ratios against ``base``."""
    print(f"\n{title}")
    print(f"  {'':44} {'median ms':>10} {'p90 ms':>9} {'min ms':>9} {'x':>7}")
    for sample in samples.values():
        ratio = sample.median_ms / samples[base].median_ms
        print(f"  {sample.name:44} {sample.median_ms:10.2f} {sample.p90_ms:9.2f} {min(sample.times_ms):9.2f} {ratio:7.2f}")
