"""This module has what all calls of a process group share: the class that they are methods of, and
the function that makes a call on the caller's thread or has the group's thread make it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist

from .. import _core
from .formation import Formation
from .tensors import Tensor, new
from .work import COMPLETE, PendingWork

_CPU = torch.device("cpu")
_Method = TypeVar("_Method", bound=Callable[..., Any])


class Base(dist.ProcessGroup):
    """This class knows the rank, the size and the name of a group, and ends the group."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._formation = Formation(store, rank, size, timeout)
        self._ranks = self._formation.ranks
        self._my_rank = rank
        self._group_size = size
        self._patience = timeout.total_seconds()
        self._name = ""
        self._description = ""

    # ---- torch's trampoline looks for these methods by their C++ names

    def getBackendName(self) -> str:
        return "ropewalk"

    def getGroupName(self) -> str:
        return self._name

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupDesc(self) -> str:
        return self._description

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    # ---- torch's Python code asks for these

    def name(self) -> str:
        return "ropewalk"

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    # ---- torch's Python code asks for the backend of a device, and asks that of these

    # It has no calls that make one backend out of another, join calls, or say what one would take.
    supports_splitting = supports_shrinking = supports_time_estimate = False
    supports_coalescing = False

    @property
    def _device_types(self) -> list[torch.device]:
        return [_CPU]

    def _get_backend(self, device: torch.device | str) -> Self:
        if torch.device(device).type == "cpu":
            return self
        raise RuntimeError(  # as torch's own groups do, which those who ask expect
            f"device: {device}, expected the CPU; make a group of another backend for it"
        )

    def supports_tensor_alloc(self, device: torch.device | str) -> bool:
        return bool(torch.device(device).type == "cpu")

    def allocate_tensor(
        self, size: int, *, dtype: torch.dtype, device: torch.device | str = _CPU
    ) -> Tensor:
        """Returns a tensor of `size` elements in communication memory. FSDP asks for the tensors
        that it gathers into and reduces out of."""
        self._get_backend(device)
        return new(size, dtype)

    # ---- its end

    def shutdown(self) -> None:
        """Waits for the calls under way, then gives memory and threads back. Every rank calls
        it."""
        self._formation.close()

    def abort(self) -> None:
        """Does what shutdown() does, for a rank that gives up: the next call of the others raises
        an error."""
        self._formation.close(by_error=True)

    def __repr__(self) -> str:
        if self._ranks.closed():
            return "<ropewalk.torch process group, destroyed>"
        return f"<ropewalk.torch process group, rank {self._my_rank} of {self._group_size}>"


def make(
    waits: bool,
    calls: Sequence[tuple[Any, ...]],
    tensors: list[Tensor],
    kept: Any,
    after: Callable[[], None] | None = None,
) -> dist.Work:
    """Makes the calls if the caller waits, else starts them. Each call is a method of the ranks
    with its arguments. `kept` holds the memory of the calls until they are complete. `after`, where
    there is one, puts the results into `tensors`."""
    if not waits:
        started = [method(*arguments, kept) for method, *arguments in calls]
        return PendingWork(started, tensors, after)
    for method, *arguments in calls:
        method(*arguments, None)
    if after is not None:
        after()
    return COMPLETE


def refusing(method: _Method) -> _Method:
    """Wraps a method so that an error which only this rank finds, before it makes its call, becomes
    an error of the other ranks, too."""

    @wraps(method)
    def checked(self: Base, *arguments: Any, **named: Any) -> Any:
        calls = self._ranks.calls()
        try:
            return method(self, *arguments, **named)
        except Exception:
            if self._ranks.calls() == calls:
                self._ranks.refuse()
            raise

    return checked  # type: ignore[return-value]


__all__ = ["COMPLETE", "Base", "_core", "make", "refusing"]
