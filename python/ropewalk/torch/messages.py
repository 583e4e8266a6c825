"""This module has send, recv and recv_anysource of a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import torch.distributed as dist

from ..exceptions import ArgumentError, Error
from . import tensors as of
from .base import COMPLETE, Base
from .exceptions import for_torch
from .profiling import entered, leave, profiling
from .tensors import Tensor
from .work import MessageWork

_ANY_SOURCE = -1
# The channel takes all that an int holds between ranks of one node, and over nodes what MPI has; it
# refuses the others itself.
_LARGEST_TAG = 2**31 - 1


def _check_tag(tag: int) -> None:
    if not 0 <= tag <= _LARGEST_TAG:
        raise ArgumentError(f"tag: {tag}, expected 0 to {_LARGEST_TAG}")


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _raising(name: str) -> Callable[[_Method], _Method]:
    """Wraps a method so that its errors are those that torch's programs expect, and so that a
    profiler shows it by that name. No other rank needs to hear of the errors."""

    def wrap(method: _Method) -> _Method:
        @wraps(method)
        def checked(self: Base, *arguments: Any, **named: Any) -> Any:
            record = entered(name, arguments) if profiling() else None
            try:
                return self._named(method(self, *arguments, **named))
            except of.NoElements:
                return COMPLETE
            except Error as error:
                raise for_torch(error, self._members) from None
            finally:
                if record is not None:
                    leave(record)

        return checked  # type: ignore[return-value]

    return wrap


class Messages(Base):
    @_raising("send")
    def send(self, tensors: Sequence[Tensor], rank: int, tag: int) -> dist.Work:
        _check_tag(tag)
        tensor = of.one(tensors, "tensors")
        given = of.compact(tensor)
        started = self._ranks.send(given.data_ptr(), given.nbytes, rank, tag, given)
        return MessageWork(started, tensor, self._patience, f"a message to rank {rank}")

    @_raising("recv")
    def recv(self, tensors: Sequence[Tensor], rank: int, tag: int) -> dist.Work:
        return self._receive(of.one(tensors, "tensors"), rank, tag, f"rank {rank}")

    @_raising("recv_any_source")
    def recv_anysource(self, tensors: Sequence[Tensor], tag: int) -> dist.Work:
        return self._receive(of.one(tensors, "tensors"), _ANY_SOURCE, tag, "any rank")

    def _receive(self, tensor: Tensor, rank: int, tag: int, source: str) -> dist.Work:
        _check_tag(tag)
        result = of.compact(tensor)
        after: Callable[[], None] | None = None
        if result is not tensor:

            def after() -> None:
                of.put(result, tensor)

        started = self._ranks.receive(result.data_ptr(), result.nbytes, rank, tag, result)
        return MessageWork(started, tensor, self._patience, f"a message from {source}", after)
