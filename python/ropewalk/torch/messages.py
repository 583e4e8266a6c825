"""This module has send, recv and recv_anysource of a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch.distributed as dist

from ..exceptions import ArgumentError
from . import tensors as of
from .base import Base
from .tensors import Tensor
from .work import MessageWork

_ANY_SOURCE = -1
_LARGEST_TAG = 32767  # This is largest_tag of ropewalk/channel.hpp.


def _check_tag(tag: int) -> None:
    if not 0 <= tag <= _LARGEST_TAG:
        raise ArgumentError(f"tag: {tag}, expected 0 to {_LARGEST_TAG}")


class Messages(Base):
    def send(self, tensors: Sequence[Tensor], rank: int, tag: int) -> dist.Work:
        _check_tag(tag)
        tensor = of.one(tensors, "tensors")
        given = of.dense(tensor, "tensor")
        started = self._ranks.send(given.data_ptr(), given.nbytes, rank, tag, given)
        return MessageWork(started, tensor, self._patience, f"a message to rank {rank}")

    def recv(self, tensors: Sequence[Tensor], rank: int, tag: int) -> dist.Work:
        return self._receive(of.one(tensors, "tensors"), rank, tag, f"rank {rank}")

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int) -> dist.Work:
        return self._receive(of.one(tensors, "tensors"), _ANY_SOURCE, tag, "any rank")

    def _receive(self, tensor: Tensor, rank: int, tag: int, source: str) -> dist.Work:
        _check_tag(tag)
        result = of.dense(tensor, "tensor")
        after: Callable[[], None] | None = None
        if result is not tensor:

            def after() -> None:
                tensor.copy_(result)

        started = self._ranks.receive(result.data_ptr(), result.nbytes, rank, tag, result)
        return MessageWork(started, tensor, self._patience, f"a message from {source}", after)
