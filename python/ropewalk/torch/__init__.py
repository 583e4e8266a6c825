"""This package gives PyTorch on CPUs the backend `ropewalk` of torch.distributed.

    import torch.distributed as dist
    dist.init_process_group("ropewalk")   # under torchrun; no MPI is needed on one node

An installed ropewalk registers the backend when torch is imported; `import ropewalk.torch` does so
as well. Tensors of ropewalk.torch.empty lie in communication memory, and so do all large ones under
ropewalk.torch.use_allocator: the other ranks read and write them where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

# torch is imported in functions only: where this package is imported before torch, torch calls
# register() in the middle of its own import, and so must find it here.
if TYPE_CHECKING:
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    from .allocator import Allocator
    from .group import ProcessGroup

__all__ = ["empty", "monitored_barrier", "register", "use_allocator"]


def register() -> None:
    """Tells torch.distributed of the backend. Importing this package calls it."""
    import torch.distributed as dist

    if dist.is_available() and "ropewalk" not in dist.Backend.backend_list:
        dist.Backend.register_backend("ropewalk", _make, extended_api=True, devices=["cpu"])


def _make(asked: Any, _options: Any) -> ProcessGroup:
    from .group import ProcessGroup  # imported here so that importing torch stays as fast as it is

    members = tuple(asked.global_ranks_in_group)  # empty for all ranks of the job
    return ProcessGroup(asked.store, asked.group_rank, asked.group_size, asked.timeout, members)


def empty(*shape: int | Sequence[int], dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns a tensor in communication memory. Its elements are not set, as with torch.empty.

    Collectives of large tensors of this kind copy nothing. The memory is given back with the last
    tensor that uses it.
    """
    import torch

    from .tensors import reached

    extents = torch.Size(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    kind = torch.get_default_dtype() if dtype is None else dtype
    return reached(math.prod(extents), kind).view(extents)


def monitored_barrier(
    group: dist.ProcessGroup | None = None,
    timeout: timedelta | float | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """Is torch.distributed.monitored_barrier, which takes no groups but Gloo's, for all groups.

    Waits until all ranks of the group have come. Where some have not come to its rank 0 within
    `timeout`, all others raise an error that names the first of them, or all of them with
    `wait_all_ranks`. The group can be used again afterwards. On ranks outside of the group it does
    nothing.
    """
    import torch.distributed as dist

    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return
    from .monitoring import Monitoring

    group = dist.group.WORLD if group is None else group
    if isinstance(group, Monitoring):
        group.monitored_barrier(timeout, wait_all_ranks)
    else:
        dist.monitored_barrier(group, timeout, wait_all_ranks)


def use_allocator(minimum: int | str = "128K") -> Allocator:
    """Places tensors of `minimum` bytes and more, whatever makes them, in communication memory.

    It holds from now on, for all threads, until `stop()` of the result is called, or the end of a
    `with` statement on it. Call it before the model is made. Tensors may outlive it.
    """
    from .allocator import Allocator

    return Allocator(minimum)


register()
