"""This module defines the process group of the backend `ropewalk`.

torch calls its methods from Python, and from C++ (DDP, functional collectives) through a trampoline
for Python subclasses of ProcessGroup. Where `asyncOp` of the options is set, the caller goes on and
a thread of the group makes the call; otherwise the caller's own thread makes it. Calls of both
kinds are made in the order in which the program asks for them.
"""

from __future__ import annotations

from . import functional  # noqa: F401  (serves functional collectives that need more than a group)
from .messages import Messages
from .monitoring import Monitoring
from .movements import Movements
from .reductions import Reductions


class ProcessGroup(Reductions, Movements, Messages, Monitoring):
    """This class has all that torch.distributed asks of a backend for the CPU."""
