"""Exchange of parts of arrays between all ranks: transposes of distributed arrays, and other
changes of how an array lies over the ranks.

    # This rank has the rows `mine` of a matrix and wants its columns `mine`.
    transpose = ropewalk.SubarrayExchange(
        (rows, n), [np.s_[:, part] for part in parts], (n, rows), [np.s_[part] for part in parts]
    )
    transpose.exchange(matrix)
    transpose.array    # the columns: what belongs here of all ranks' rows
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._shared import ClosedTogether, kept
from .arrays import plain
from .exceptions import ArgumentError
from .exchange import _address, _contiguous, _handle, _refusing_jointly

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .arrays import Array, Shape
    from .exchange import CommunicatorLike

    # What stands between the brackets of an array: slices, whole numbers and `...`; None: nothing.
    One = slice | int | EllipsisType
    Part = One | tuple[One, ...] | None
    Parts = Sequence[Part] | Mapping[int, Part]

_Words = tuple[int, list[int], list[int]]  # offset, extents, strides


class SubarrayExchange(ClosedTogether):
    """The exchange of parts of an array of `shape` into parts of another of `received_shape`, made
    once and called many times.

    `sent` has for each rank what of the array goes there, and `received` what of `array` comes from
    there: what stands between the brackets of a NumPy array, or None for nothing. They are a
    sequence with an entry for each rank, or a mapping of those that get anything. With `axes` a
    part travels as `array[part].transpose(axes)`, so that it has the shape of the part that
    receives it. Parts that are received must not overlap.

    `comm` is a communicator of ropewalk or mpi4py, or None for the world. Making and closing it are
    collective, and what is wrong on one rank is an ArgumentError on all. So is each exchange, but
    an array that does not fit is refused on its rank alone, and the others wait for it. Ranks of a
    node copy straight into each other's arrays, whatever the order of axes; what goes to
    another node is one message for each pair of ranks.
    """

    def __init__(
        self,
        shape: Shape,
        sent: Parts,
        received_shape: Shape,
        received: Parts,
        dtype: DTypeLike = np.float64,
        comm: CommunicatorLike = None,
        *,
        axes: Sequence[int] | None = None,
    ) -> None:
        handle = _handle(comm)
        nothing: list[_Words] = []
        with _refusing_jointly(
            lambda: _core.subarray_exchange(handle, 1, 0, nothing, 0, nothing, None)
        ):
            self._shape, self._dtype = plain(shape, dtype)
            self._received_shape, _ = plain(received_shape, dtype)
            if self._dtype.itemsize == 0:
                raise ArgumentError(f"dtype: {self._dtype}, expected elements of a byte or more")
            ranks = _core.ranks_of(handle)
            from_here = _all_words("sent", sent, ranks, self._shape, self._dtype, axes)
            into = _all_words("received", received, ranks, self._received_shape, self._dtype, None)
        item = self._dtype.itemsize
        sizes = (math.prod(of) * item for of in (self._shape, self._received_shape))
        sent_bytes, received_bytes = sizes
        self._core: _core.SubarrayExchange = _core.subarray_exchange(
            handle, item, sent_bytes, from_here, received_bytes, into, kept(comm)
        )

    @property
    def array(self) -> Array:
        """The array that receives. It is zero at first, may be changed between exchanges, and stays
        valid when the exchange is closed."""
        return self._core.memory().view(self._dtype).reshape(self._received_shape)

    @property
    def near_bytes(self) -> int:
        """The bytes that an exchange sends to other ranks of this node."""
        return self._core.near_bytes()

    @property
    def far_bytes(self) -> int:
        """The bytes that an exchange sends to ranks of other nodes."""
        return self._core.far_bytes()

    def exchange(self, array: Array) -> Array:
        """Sends the parts of `array`, which may be changed again when it returns. Returns the array
        that has received those of the others. `array` may be that of another exchange, but not of
        this one."""
        given = _contiguous(array, "array", writable=False)
        if given.shape != self._shape or given.dtype != self._dtype:
            raise ArgumentError(
                f"array: {given.dtype} of shape {given.shape}, expected {self._dtype} of shape "
                f"{self._shape}"
            )
        self._core.exchange(_address(given))
        return self.array

    def close(self) -> None:
        """Collective: gives communicators back. Memory is given back once no array of it is used
        any more."""
        self._core.close()

    def __repr__(self) -> str:
        if self._core.closed():
            return "<ropewalk.SubarrayExchange, closed>"
        return (
            f"<ropewalk.SubarrayExchange, {self._dtype} from {self._shape} to "
            f"{self._received_shape}, sends {self.near_bytes} bytes inside the node and "
            f"{self.far_bytes} to others>"
        )


def _all_words(
    name: str,
    parts: Parts,
    ranks: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    axes: Sequence[int] | None,
) -> list[_Words]:
    """The words of each rank's part."""
    if isinstance(parts, Mapping):
        whole = (int, np.integer)
        strange = [rank for rank in parts if not isinstance(rank, whole) or not 0 <= rank < ranks]
        if strange:
            raise ArgumentError(f"{name}: {strange[0]!r}, expected ranks from 0 to {ranks - 1}")
        parts = [parts.get(rank) for rank in range(ranks)]
    if not isinstance(parts, Sequence) or len(parts) != ranks:
        found = len(parts) if isinstance(parts, Sequence) else type(parts).__name__
        raise ArgumentError(
            f"{name}: {found}, expected a sequence of {ranks} parts, one for each rank, or a "
            "mapping of ranks to parts"
        )
    # An array that has the strides of the real one, and no memory behind them.
    where = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, _strides(shape, dtype))
    return [_words(f"{name}[{rank}]", where, part, axes) for rank, part in enumerate(parts)]


def _strides(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """The strides of a contiguous array in C's order."""
    return tuple(math.prod(shape[i + 1 :]) * dtype.itemsize for i in range(len(shape)))


def _words(name: str, where: Array, part: Part, axes: Sequence[int] | None) -> _Words:
    if part is None:
        return 0, [], []
    index = part if isinstance(part, tuple) else (part,)
    for one in index:
        if one is not ... and not isinstance(one, (slice, int, np.integer)):
            raise ArgumentError(
                f"{name}: {type(one).__name__}, expected slices, whole numbers, `...` or None"
            )
    try:
        # An index of whole numbers alone would read the element; `...` makes it a view.
        view = where[index if ... in index else (*index, ...)]
        view = view if axes is None else view.transpose(axes)
    except (IndexError, ValueError, TypeError) as error:
        raise ArgumentError(f"{name}: {error}; its array has shape {where.shape}") from None
    if min(view.strides, default=1) < 0:
        raise ArgumentError(f"{name}: a negative step, expected steps of 1 or more")
    if view.size == 0:
        return 0, [], []
    if view.ndim == 0:
        return _offset(where, view), [1], [view.itemsize]
    return _offset(where, view), list(view.shape), list(view.strides)


def _offset(where: Array, view: Array) -> int:
    begin: int = where.__array_interface__["data"][0]
    at: int = view.__array_interface__["data"][0]
    return at - begin
