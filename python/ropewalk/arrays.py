"""NumPy arrays in the arena, which peers of the node can map, and what memory is really made of."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from . import _core
from .exceptions import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

Array = np.ndarray[Any, Any]
Shape = SupportsIndex | Sequence[SupportsIndex]
Order = Literal["C", "F"]
Kind = Literal["ddr", "hbm", "cxl"]  # of the memory of a NUMA node


def is_lazy(given: Any) -> bool:
    """Whether the memory of a tensor of PyTorch holds other numbers than the tensor: PyTorch
    conjugates or negates such a tensor when it reads it."""
    return any(getattr(given, name, bool)() for name in ("is_conj", "is_neg"))


def plain(shape: Shape, dtype: DTypeLike) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Extents and type of an array of plain data, or an ArgumentError."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise ArgumentError(f"dtype: {dtype} holds Python objects, expected plain data")
    given: Any = shape
    try:
        extents = tuple(map(operator.index, given if np.ndim(given) else (given,)))
    except (TypeError, ValueError):
        raise ArgumentError(f"shape: {shape!r}, expected whole numbers") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"shape: {shape}, expected extents of 0 or more")
    if math.prod(extents) * dtype.itemsize >= 1 << 63:  # Python's integers: no overflow
        raise ArgumentError(f"shape: {shape}, more than any memory holds")
    return extents, dtype


def empty(
    shape: Shape,
    dtype: DTypeLike = np.float64,
    order: Order = "C",
    *,
    node: SupportsIndex | None = None,
    kind: Kind | None = None,
) -> Array:
    """An array in the arena with undefined contents. The arguments are those of numpy.empty.

    With `node`, the number of a NUMA node, or `kind`, the kind of its memory, the array has pages
    of its own there, outside of the arena, and the kernel has confirmed where they lie.
    """
    extents, dtype = plain(shape, dtype)
    size = math.prod(extents) * dtype.itemsize
    if node is None and kind is None:
        memory = _core.allocate(size)
    else:
        memory = _core.allocate_placed(size, _number(node), kind)
    return np.ndarray(extents, dtype, buffer=memory, order=order)


def _number(node: SupportsIndex | None) -> int | None:
    if node is None:
        return None
    number = operator.index(node)
    if not 0 <= number < 1 << 31:
        raise ArgumentError(f"node: {number}, expected the number of a NUMA node")
    return number


def zeros(
    shape: Shape,
    dtype: DTypeLike = np.float64,
    order: Order = "C",
    *,
    node: SupportsIndex | None = None,
    kind: Kind | None = None,
) -> Array:
    """An array of zeros, otherwise as empty() makes it."""
    array = empty(shape, dtype, order, node=node, kind=kind)
    array.fill(np.zeros((), array.dtype)[()])
    return array


class _MemoryOf:
    """Bytes that another object owns. The arrays that show them keep the object alive."""

    def __init__(self, owner: object, address: int, size: int, is_writable: bool) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not is_writable),
            "shape": (size,),
            "typestr": "|u1",
        }


def array_of(
    owner: object,
    address: int,
    shape: tuple[int, ...],
    kind: np.dtype[Any],
    *,
    is_writable: bool,
) -> Array:
    """An array in memory of the owner. The interface tells of bytes alone: its words have none for
    bfloat16, which they call two bytes of anything, nor for types that are arrays themselves."""
    size = math.prod(shape) * kind.itemsize
    memory = np.asarray(_MemoryOf(owner, address, size, is_writable))
    return np.ndarray(shape, kind, buffer=memory)


@dataclass(frozen=True)
class Inspection:
    """What a range of memory is made of."""

    bytes: int
    resident_bytes: int
    pages: dict[int, int]  # page size -> bytes of the range on such pages
    node_bytes: tuple[int, ...]  # resident bytes by NUMA node; () where the kernel does not tell
    peers_can_map: bool  # lies in an arena
    alignment: int
    method: str  # "pagemap-scan" or "smaps"
    all_huge: bool  # every resident byte on pages of 2 MiB or more


def inspect(array: ArrayLike) -> Inspection:
    """Page sizes, NUMA nodes and alignment of an array's memory, ours or not. Strided arrays are
    looked at from their first byte to their last."""
    array = np.asarray(array)
    first, end = _byte_bounds(array)
    if first == end:
        raise ArgumentError("array: empty, expected at least one element")
    found = _core.inspect(first, end - first)
    size, resident, pages, nodes, mappable, alignment, method, all_huge = found
    return Inspection(
        size, resident, dict(pages), tuple(nodes), mappable, alignment, method, all_huge
    )


def _byte_bounds(array: Array) -> tuple[int, int]:
    first = last = array.__array_interface__["data"][0]
    if array.size == 0:
        return first, first
    for extent, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            first += (extent - 1) * stride
        else:
            last += (extent - 1) * stride
    return first, last + array.itemsize


@dataclass(frozen=True)
class ArenaStatistics:
    """The arena of this process, as it is now."""

    allocations: int
    cache_hits: int
    cache_misses: int
    live_bytes: int
    cached_bytes: int
    committed_bytes: int
    huge_bytes: int
    source: str  # where its pages come from
    downgrade: str  # why they are not better; "" if best


def arena_statistics() -> ArenaStatistics:
    return ArenaStatistics(*_core.arena_statistics())


def trim() -> None:
    """Gives freed blocks that the arena keeps for reuse back to the kernel."""
    _core.trim()
