"""This module turns tensors into what the collectives take: dense memory of the CPU, and numbers
for types and operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
import torch.distributed as dist

from .. import _core
from ..exceptions import ArgumentError, MemoryError, UnsupportedError

Tensor: TypeAlias = "torch.Tensor"

# Each type has its number in ElementType (ropewalk/types.hpp). Other types are moved, not reduced.
_TYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.int16: 2,
    torch.uint16: 3,
    torch.int32: 4,
    torch.uint32: 5,
    torch.int64: 6,
    torch.uint64: 7,
    torch.float16: 8,
    torch.bfloat16: 9,
    torch.float32: 10,
    torch.float64: 11,
    torch.complex64: 13,
    torch.complex128: 14,
    torch.bool: 16,
}
# These are the numbers of ReductionOp.
_MAX, _MIN, _SUM, _PROD, _LAND, _BAND, _LOR, _BOR, _LXOR, _BXOR = range(10)
_KINDS = dist.ReduceOp.RedOpType
_OPERATIONS = {
    _KINDS.SUM: _SUM,
    _KINDS.PRODUCT: _PROD,
    _KINDS.MIN: _MIN,
    _KINDS.MAX: _MAX,
    _KINDS.BAND: _BAND,
    _KINDS.BOR: _BOR,
    _KINDS.BXOR: _BXOR,
}
# A bool stays true or false, so bools are reduced by these logical operations instead.
_OF_BOOL = {
    _SUM: _LOR,
    _MAX: _LOR,
    _BOR: _LOR,
    _PROD: _LAND,
    _MIN: _LAND,
    _BAND: _LAND,
    _BXOR: _LXOR,
}
_STRIDED = torch.strided
_BITWISE = (_BAND, _BOR, _BXOR)


def _allowed(dtype: torch.dtype, operation: int) -> bool:
    if dtype.is_complex:
        return operation in (_SUM, _PROD)
    return not (dtype.is_floating_point and operation in _BITWISE)


# This maps a type and the hash of a ReduceOp to the numbers of both. The hash of a ReduceOp is its
# kind, and takes a quarter of the time that its attribute `op` takes.
CODES = {
    (dtype, hash(dist.ReduceOp(kind))): (
        number,
        _OF_BOOL[operation] if dtype == torch.bool else operation,
    )
    for dtype, number in _TYPES.items()
    for kind, operation in _OPERATIONS.items()
    if _allowed(dtype, operation)
}
_SUM_HASH = hash(dist.ReduceOp(_KINDS.SUM))


def codes(dtype: torch.dtype, op: dist.ReduceOp) -> tuple[int, int]:
    """Returns the numbers of a type and an operation. AVG and PREMUL_SUM count as sums here."""
    kind = op.op
    if kind == _KINDS.AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise UnsupportedError(
            f"op: AVG of {dtype}, expected floating-point or complex elements; use SUM, and divide "
            "as the program needs it"
        )
    wanted = _SUM_HASH if kind in (_KINDS.AVG, _KINDS.PREMUL_SUM) else hash(op)
    found = CODES.get((dtype, wanted))
    if found is not None:
        return found
    raise UnsupportedError(f"op: {kind} of {dtype} cannot be reduced; convert the tensor first")


def factor(op: dist.ReduceOp) -> float | Tensor | None:
    """Returns the factor by which PREMUL_SUM multiplies each rank's tensor, or None for other
    operations."""
    if op.op != _KINDS.PREMUL_SUM:
        return None
    given: float | Tensor = op.__getstate__()[1]
    return given


def is_average(op: dist.ReduceOp) -> bool:
    return bool(op.op == _KINDS.AVG)


def divide(tensor: Tensor, size: int) -> None:
    """Divides in place, which is the last step of AVG."""
    tensor.detach().div_(size)


class NoElements(Exception):
    """A tensor has a type and a shape, but no elements, as those by which torch traces programs.
    No call has anything to do for it."""


def only(tensors: Sequence[Tensor] | Tensor, name: str) -> Tensor:
    """Returns the only tensor of a list. torch passes such lists to calls for one device."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ArgumentError(f"{name}: {len(tensors)} tensors, expected one")
    return tensors[0]


def only_list(lists: Sequence[Sequence[Tensor]] | Sequence[Tensor]) -> Sequence[Tensor]:
    """Returns the only list of a list. The short forms of calls pass it by itself."""
    first = lists[0] if len(lists) > 0 else []
    return lists if isinstance(first, torch.Tensor) else first


def one(tensors: Sequence[Tensor] | Tensor, name: str) -> Tensor:
    """Returns the tensor that has the elements of the only one of a list."""
    return held(only(tensors, name), name)


def held(tensor: Tensor, name: str) -> Tensor:
    """Returns the tensor whose memory has the elements, which is the given one unless that is a
    wrapper around it. Refuses what is not in the memory of the CPU."""
    if not isinstance(tensor, torch.Tensor):
        raise ArgumentError(f"{name}: {type(tensor).__name__}, expected a tensor")
    if tensor.layout != torch.strided:
        raise UnsupportedError(f"{name}: layout {tensor.layout}, expected dense; use to_dense()")
    if tensor.data_ptr() == 0 and tensor.numel() > 0:
        return _inside(tensor, name)
    if not tensor.is_cpu:
        raise ArgumentError(f"{name}: on {tensor.device}, expected the CPU; use NCCL for GPUs")
    return tensor


def _inside(tensor: Tensor, name: str) -> Tensor:
    """Returns the result of a functional collective, which torch wraps, when it is there."""
    # These are imported only here because few programs use them.
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.distributed._functional_collectives import AsyncCollectiveTensor

    if isinstance(tensor, AsyncCollectiveTensor):
        return held(tensor.trigger_wait(), name)
    if tensor.is_meta or isinstance(tensor, FakeTensor):
        raise NoElements
    raise ArgumentError(
        f"{name}: {type(tensor).__name__} without memory of its own, expected a tensor that has "
        "its elements"
    )


def put(values: Tensor, tensor: Tensor) -> None:
    """Copies values into a tensor. autograd does not record that, as it records no collective."""
    tensor.detach().copy_(values)


def plain(tensor: Tensor) -> bool:
    """Returns whether the memory holds the elements themselves, row by row without gaps. That of a
    lazily conjugated or negated tensor does not."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def place(tensor: Tensor) -> int:
    """Returns the address of the tensor's memory where a call can use that as it is, else 0. It is
    0, too, where there are no elements, or where the tensor is a wrapper of the one that has
    them."""
    if tensor.is_cpu and tensor.layout == _STRIDED and plain(tensor):
        address: int = tensor.data_ptr()
        return address
    return 0


def dense(tensor: Tensor, name: str) -> Tensor:
    """Returns the tensor itself where its elements lie row by row without gaps, else a copy."""
    return compact(held(tensor, name))


def compact(tensor: Tensor) -> Tensor:
    """Does what dense() does, for a tensor that is known to have its elements."""
    if plain(tensor):
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def reached(count: int, dtype: torch.dtype) -> Tensor:
    """Returns `count` elements in communication memory, which the other ranks reach fastest."""
    if count == 0:
        return torch.empty(0, dtype=dtype)
    return torch.from_numpy(_core.allocate(count * dtype.itemsize)).view(dtype)


def new(count: int, dtype: torch.dtype) -> Tensor:
    """Returns `count` elements in communication memory, or elsewhere where that is full."""
    try:
        return reached(count, dtype)
    except MemoryError:
        return torch.empty(count, dtype=dtype)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Returns one tensor that holds copies of all the given ones, one behind the other."""
    joined = new(sum(each.numel() for each in tensors), tensors[0].dtype)
    begin = 0
    for each in tensors:
        joined[begin : begin + each.numel()].copy_(each.detach().reshape(-1))
        begin += each.numel()
    return joined


def deal(joined: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copies the parts of a joined tensor into the given ones, which reverses flat()."""
    begin = 0
    for each in tensors:
        put(joined[begin : begin + each.numel()].view(each.shape), each)
        begin += each.numel()


def lie_together(tensors: Sequence[Tensor]) -> bool:
    """Returns whether the tensors lie one behind the other, so that they need no copy."""
    end = tensors[0].data_ptr()
    for each in tensors:
        if not plain(each) or each.data_ptr() != end:
            return False
        end += each.numel() * each.element_size()
    return True


def overlap(one: Tensor, other: Tensor) -> bool:
    first, second = one.data_ptr(), other.data_ptr()
    return bool(first < second + other.nbytes and second < first + one.nbytes)
