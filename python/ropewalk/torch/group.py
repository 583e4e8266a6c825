"""The process group of the backend `ropewalk`.

torch calls its methods from Python, and from C++ (DDP, functional collectives) through a trampoline
for Python subclasses of ProcessGroup. `asyncOp` of the options says whether the caller goes on:
then a thread of the group makes the call, else the caller's. Both are in the order of the calls.
"""

from __future__ import annotations

from .messages import Messages
from .movements import Movements
from .reductions import Reductions


class ProcessGroup(Reductions, Movements, Messages):
    """All that torch.distributed asks of a backend for the CPU."""
