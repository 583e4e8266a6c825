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
from ..exceptions import Error
from .compiling import leave_alone
from .exceptions import for_torch
from .formation import Formation
from .profiling import entered, leave, profiling
from .tensors import NoElements, Tensor, new
from .work import COMPLETE, BackgroundWork, PendingWork

_CPU = torch.device("cpu")
_Method = TypeVar("_Method", bound=Callable[..., Any])


class Base(dist.ProcessGroup):
    """This class knows the rank, the size and the name of a group, and ends the group."""

    def __init__(
        self,
        store: dist.Store,
        rank: int,
        size: int,
        timeout: timedelta,
        members: Sequence[int] = (),
    ) -> None:
        super().__init__(rank, size)
        leave_alone()
        # The ranks in the job of the ranks of the group, where they are others.
        self._members = () if tuple(members) == tuple(range(size)) else tuple(members)
        try:
            self._formation = Formation(store, rank, size, timeout, members)
        except Error as error:
            raise for_torch(error, self._members) from None
        self._store = store
        self._ranks = self._formation.ranks
        self._my_rank = rank
        self._group_size = size
        self._patience = timeout.total_seconds()
        self._name = ""
        self._description = ""

    def _named(self, work: Any) -> Any:
        """Returns what a method returns; an error of the work names ranks of the job, too."""
        if self._members and isinstance(work, BackgroundWork):
            work.members = self._members
        return work

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

    def get_group_store(self) -> dist.Store:
        return self._store

    def _get_sequence_number_for_group(self) -> int:
        """Returns how many collectives this rank has called, which differs between ranks where one
        has left out a call."""
        return self._ranks.calls()

    def _set_sequence_number_for_group(self) -> None:
        """Has nothing to do: each group counts from its beginning."""

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
        an error. Waits for the calls under way, too, at most for the time-out of the group."""
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


class Form:
    """Says what a caller may give instead of options: after so many arguments of a method come the
    values of fields of the options, which are named here with their fields."""

    def __init__(self, kind: type, count: int, fields: dict[str, str]) -> None:
        self.kind = kind
        self._count = count
        self._fields = fields

    def with_options(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments of a call with options in the place of such values."""
        first, rest = arguments[: self._count], arguments[self._count :]
        values = dict(zip(self._fields, rest, strict=False))
        values.update((name, named[name]) for name in self._fields if name in named)
        if not values or (rest and isinstance(rest[0], self.kind)):
            return arguments, named
        options = self.kind()
        for name, value in values.items():
            if value is not None:
                setattr(options, self._fields[name], value)
        others = {name: value for name, value in named.items() if name not in values}
        return (*first, options), others


def serving(name: str, form: Form | None = None) -> Callable[[_Method], _Method]:
    """Wraps a method so that an error which only this rank finds, before it makes its call, becomes
    an error of the other ranks, too; so that a caller may give what `form` says; and so that it
    appears in a profiler by its name, if it has one. It is one wrapper for all of that, for each
    costs as much as a tenth of a small collective."""

    def wrap(method: _Method) -> _Method:
        @wraps(method)
        def checked(self: Base, *arguments: Any, **named: Any) -> Any:
            record = entered(name, arguments) if name and profiling() else None
            calls = self._ranks.calls()
            try:
                if form is not None and (not arguments or type(arguments[-1]) is not form.kind):
                    arguments, named = form.with_options(arguments, named)
                return self._named(method(self, *arguments, **named))
            except NoElements:
                return COMPLETE
            except Exception as error:
                if self._ranks.calls() == calls:
                    self._ranks.refuse()
                raise for_torch(error, self._members) from None
            finally:
                if record is not None:
                    leave(record)

        return checked  # type: ignore[return-value]

    return wrap


refusing = serving("")  # for a method that another one calls
__all__ = ["COMPLETE", "Base", "Form", "_core", "make", "refusing", "serving"]
