"""The only place where the parts meet: requests become executions here, and executions become records."""

from .asking import Options, request_of
from .asynchronous import Execution, Proctor
from .base import Request
from .environment import Environment
from .following import Following
from .live import Live
from .local import LocalRuntime
from .steps import Abandoned, Steps, Wait, run_async, run_blocking
from .synchronous import SyncExecution, SyncProctor

__all__ = [
    "Abandoned",
    "Environment",
    "Execution",
    "Following",
    "Live",
    "LocalRuntime",
    "Options",
    "Proctor",
    "Request",
    "Steps",
    "SyncExecution",
    "SyncProctor",
    "Wait",
    "request_of",
    "run_async",
    "run_blocking",
]
