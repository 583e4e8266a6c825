"""This module serves those functional collectives that torch does not make by the methods of a
group in Python: `all_gather_into_tensor_out` and `batch_p2p_ops`.

torch's own kernels ask the group for the backend of a device, which must be written in C++. Kernels
for the CPU take their place here, which leave the groups of other backends to torch's own. A torch
without torch.library.get_kernel keeps what it has: these two are then refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _register_work, _resolve_process_group

from .base import Base
from .tensors import Tensor

_OPS = torch.ops._c10d_functional


def _group(named: Any) -> dist.ProcessGroup:
    """Returns the group that has the name, or that an operator was called with."""
    if isinstance(named, str):
        return _resolve_process_group(named)
    return named if isinstance(named, dist.ProcessGroup) else dist.ProcessGroup.unbox(named)


def _all_gather_into_tensor_out(given: Tensor, size: int, group: Any, *, out: Tensor) -> Tensor:
    _register_work(out, _group(group).all_gather_single(out, given))
    return out


def _batch_p2p_ops(
    kinds: list[str], peers: list[int], tags: list[int], tensors: list[Tensor], group: Any
) -> list[Tensor]:
    """Starts the messages one by one: all of them are under way before any is waited for."""
    start = {"isend": _OPS.isend, "irecv": _OPS.irecv}
    each = zip(kinds, tensors, peers, tags, strict=True)
    return [start[kind](tensor, peer, tag, group) for kind, tensor, peer, tag in each]


def _serve(library: torch.library.Library, name: str, at: int, ours: Callable[..., Any]) -> None:
    """Has calls whose group, the argument number `at`, is of ropewalk made by `ours`."""
    try:
        others = torch.library.get_kernel(f"_c10d_functional::{name}", "CPU")
    except (AttributeError, RuntimeError):  # this torch has no such function, or no such operator
        return

    def kernel(keys: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(_group(arguments[at]), Base):
            return ours(*arguments, **named)
        return others.call_boxed(keys, *arguments, **named)

    library.impl(name, kernel, "CPU", with_keyset=True)


def serve() -> torch.library.Library:
    """Returns a library of these kernels, which are used as long as it is there."""
    library = torch.library.Library("_c10d_functional", "IMPL")
    _serve(library, "all_gather_into_tensor_out", 2, _all_gather_into_tensor_out)
    _serve(library, "batch_p2p_ops", 4, _batch_p2p_ops)
    return library


LIBRARY = serve()
