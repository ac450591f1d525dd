"""What tests of proctor, and of programs that use it, can lean on: a witness of processes, a pretended backend, forks for checks."""

from .apart import apart
from .fake_backend import FakeBackend, FakeProcess
from .marker import Marked, Marker

__all__ = ["FakeBackend", "FakeProcess", "Marked", "Marker", "apart"]
