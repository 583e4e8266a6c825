"""This module adds up sparse tensors, whose ranks have different elements."""

from __future__ import annotations

import zlib
from typing import Any

import torch
import torch.distributed as dist

from ..exceptions import ArgumentError, UnsupportedError
from . import tensors as of
from .base import Base, make
from .tensors import Tensor

_SUMS = (dist.ReduceOp.RedOpType.SUM, dist.ReduceOp.RedOpType.AVG)


def is_sparse(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.sparse_coo


def add_up(group: Base, tensor: Tensor, op: dist.ReduceOp, waits: bool) -> dist.Work:
    """Puts the sum or the average of all ranks' tensors into `tensor`. Every rank gathers the
    elements of all and adds them up. A call that does not wait starts that, but waits until all
    ranks have told how many elements they have."""
    if op.op not in _SUMS:
        raise UnsupportedError(f"op: {op.op} of a sparse tensor, expected SUM or AVG")
    if of.is_average(op):
        of.codes(tensor.dtype, op)  # refuses integers
    own = tensor.coalesce()
    counts = _counts(group, own)
    most = max(counts)
    indices, values = own.indices().t(), own.values()
    gathered = [_rows(group, each, most) for each in (indices, values)]

    def put() -> None:
        all_indices, all_values = (
            torch.cat([rows[:count] for rows, count in zip(each, counts, strict=True)])
            for each in gathered
        )
        total = torch.sparse_coo_tensor(all_indices.t(), all_values, own.shape).coalesce()
        if of.is_average(op):
            of.divide(total.values(), len(counts))
        with torch.no_grad():
            tensor.copy_(total)

    calls = [_gathering(group, each) for each in gathered]
    return make(waits, calls, [tensor], gathered, put)


def _counts(group: Base, own: Tensor) -> list[int]:
    """Returns how many elements each rank has, and refuses tensors that differ in what must be the
    same."""
    kind = f"{tuple(own.shape)} {own.sparse_dim()} {own.dtype}"
    told = of.new(2 * group._group_size, torch.int64)
    mine = told[2 * group._my_rank :][:2]
    mine.copy_(torch.tensor([own.values().shape[0], zlib.crc32(kind.encode())]))
    group._ranks.allgather(mine.data_ptr(), told.data_ptr(), mine.nbytes, None)
    if len(set(told[1::2].tolist())) > 1:
        raise ArgumentError(
            f"tensor: sparse with the shape {tuple(own.shape)} and elements of {own.dtype} on rank "
            f"{group._my_rank}, expected the same shape and type on all ranks"
        )
    return [int(count) for count in told[::2]]


def _rows(group: Base, own: Tensor, most: int) -> Tensor:
    """Returns memory for as many rows of each rank as the one with most has. This rank's are in
    their place."""
    extents = (group._group_size, most, *own.shape[1:])
    made = of.new(torch.Size(extents).numel(), own.dtype).view(extents)
    made[group._my_rank, : own.shape[0]].copy_(own)
    return made


def _gathering(group: Base, rows: Tensor) -> tuple[Any, ...]:
    own = rows[group._my_rank]
    return group._ranks.allgather, own.data_ptr(), rows.data_ptr(), own.nbytes
