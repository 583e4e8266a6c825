"""A communication hook of DistributedDataParallel: gradients travel as bfloat16.

    model = DistributedDataParallel(...)
    model.register_comm_hook(Bfloat16(), average_as_bfloat16)

Half of the bytes are moved. What rounding takes from a gradient is kept and added to the next one
(error feedback), so that it is not lost but late.
"""

from typing import Any

import torch
import torch.distributed as dist

from .tensors import Tensor, new


class Bfloat16:
    """The state of the hook for one model: for each bucket of gradients what travels, in memory
    that the other ranks reach fastest, and what rounding has kept back.

    `group`: the process group of the model; None: the default group.
    """

    def __init__(self, group: Any = None) -> None:
        self.group = group
        self._buckets: dict[int, tuple[Tensor, Tensor]] = {}

    def bucket(self, index: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """(what travels, what was kept back) of a bucket. After the first step of a training DDP
        makes other buckets: what was kept back then is given up."""
        found = self._buckets.get(index)
        if found is None or found[1].shape != like.shape:
            found = (new(like.numel(), torch.bfloat16), torch.zeros_like(like))
            self._buckets[index] = found
        return found


# DDP compares the annotations with these classes, so they are not texts.
def average_as_bfloat16(
    state: Bfloat16, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """The hook itself: the average over the ranks, in the type of the gradients."""
    gradients = bucket.buffer()
    sent, kept = state.bucket(bucket.index(), gradients)
    kept.add_(gradients)
    sent.copy_(kept)
    kept.sub_(sent)
    work = dist.all_reduce(sent, group=state.group, async_op=True)
    size = dist.get_world_size(state.group)

    def average(future: Any) -> Tensor:
        future.value()  # raises what has gone wrong
        gradients.copy_(sent).div_(size)
        result: Tensor = gradients
        return result

    averaged: torch.futures.Future[torch.Tensor] = work.get_future().then(average)
    return averaged
