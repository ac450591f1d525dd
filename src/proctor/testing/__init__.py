"""What tests of proctor, and of programs that use it, can lean on: a witness for processes, and a process backend that is all pretence."""

from .fake_backend import FakeBackend, FakeProcess
from .marker import Marked, Marker

__all__ = ["FakeBackend", "FakeProcess", "Marked", "Marker"]
