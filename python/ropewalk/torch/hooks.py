"""This communication hook of DistributedDataParallel sends gradients as bfloat16.

    model = DistributedDataParallel(...)
    model.register_comm_hook(Bfloat16(), average_as_bfloat16)

Half of the bytes are moved. What rounding takes from a gradient is kept and added to the next one
(error feedback), so that it arrives late instead of being lost.
"""

from typing import Any

import torch
import torch.distributed as dist

from .tensors import Tensor, new


class Bfloat16:
    """This is the state of the hook for one model. For each bucket of gradients it holds what
    travels, in memory that the other ranks reach fastest, and what rounding has kept back.

    `group` is the process group of the model; None stands for the default group.
    """

    def __init__(self, group: Any = None) -> None:
        self.group = group
        self._buckets: dict[int, tuple[Tensor, Tensor]] = {}

    def bucket(self, index: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Returns what travels of a bucket, and what was kept back. DDP makes other buckets after
        the first step of a training; what that step kept back is given up."""
        found = self._buckets.get(index)
        if found is None or found[1].shape != like.shape:
            found = (new(like.numel(), torch.bfloat16), torch.zeros_like(like))
            self._buckets[index] = found
        return found


# DDP compares the annotations with these classes, so they must not be strings.
def average_as_bfloat16(
    state: Bfloat16, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket of gradients over the ranks, and returns the average in their own type."""
    gradients = bucket.buffer()
    sent, kept = state.bucket(bucket.index(), gradients)
    kept.add_(gradients)
    sent.copy_(kept)
    kept.sub_(sent)
    # An infinity or a NaN is sent this once, so that a scaler of gradients sees it. If it were kept
    # back, too, every later gradient of that element would be NaN.
    kept.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    work = dist.all_reduce(sent, group=state.group, async_op=True)
    size = dist.get_world_size(state.group)

    def average(future: Any) -> Tensor:
        future.value()  # raises the error of the reduction, if there was one
        gradients.copy_(sent).div_(size)
        result: Tensor = gradients
        return result

    averaged: torch.futures.Future[torch.Tensor] = work.get_future().then(average)
    return averaged
