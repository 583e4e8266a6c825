"""Exchange of elements along lists of neighbors: ghosts of unstructured meshes, graphs, and the
vectors of sparse matrices.

    halo = ropewalk.IrregularHalo.by_rows(rows, ghosts)
    x = ropewalk.empty(rows + len(ghosts))   # rows of this rank, and the ghosts behind them
    halo.exchange(x)                         # the ghosts have the values of their owners
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from . import _core
from ._shared import ClosedTogether, kept
from .arrays import plain
from .exceptions import ArgumentError
from .exchange import _address, _contiguous, _handle, _refusing_jointly

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from .arrays import Array, Shape
    from .exchange import CommunicatorLike
    from .operations import Operation


class IrregularHalo(ClosedTogether):
    """The exchange of chosen elements of an array among ranks, made once and called many times.

    `neighbors[rank]` is (send, receive): the indices of the elements that go to that rank, and of
    those that come from there, in the order that rank sends them. Where two ranks exchange
    anything, each lists the other. Indices are along the first axis of an array of `shape`, whose
    further axes belong to an element. `comm` is a communicator of ropewalk or mpi4py, or None for
    the world. Making and closing it are collective; what is wrong on one rank is an ArgumentError
    on all. In an exchange an array that does not fit is refused on its rank alone, and its
    neighbors wait for it.

    Ranks of a node write elements straight into each other's memory; what goes to other nodes is
    one message for each neighbor.
    """

    def __init__(
        self,
        neighbors: Mapping[int, tuple[ArrayLike, ArrayLike]],
        shape: Shape,
        dtype: DTypeLike = np.float64,
        comm: CommunicatorLike = None,
    ) -> None:
        handle = _handle(comm)
        nothing = np.empty(0, np.int64)
        with _refusing_jointly(
            lambda: _core.irregular_halo(handle, [(-1, nothing, nothing)], 0, 1, None)
        ):
            self._take(shape, dtype)
            if not isinstance(neighbors, Mapping):
                raise ArgumentError(
                    f"neighbors: {type(neighbors).__name__}, expected a mapping of ranks to "
                    "(send, receive)"
                )
            words = [_words(rank, lists) for rank, lists in neighbors.items()]
        elements, size = self._shape[0], self._element_bytes()
        self._core: _core.IrregularHalo = _core.irregular_halo(
            handle, words, elements, size, kept(comm)
        )

    @classmethod
    def by_rows(
        cls,
        rows: int,
        ghosts: ArrayLike,
        dtype: DTypeLike = np.float64,
        comm: CommunicatorLike = None,
        *,
        element: Shape = (),
    ) -> Self:
        """Every rank owns `rows` consecutive global numbers, in the order of ranks, and needs the
        elements with the global numbers `ghosts`, whose owners are found here. Arrays have the rows
        first and the ghosts behind them, in the order given; `element` is the shape of one."""
        halo = cls.__new__(cls)
        handle = _handle(comm)
        nothing = np.empty(0, np.int64)
        with _refusing_jointly(lambda: _core.irregular_halo_by_rows(handle, -1, nothing, 1, None)):
            if not isinstance(rows, (int, np.integer)) or rows < 0:
                raise ArgumentError(f"rows: {rows!r}, expected 0 or more")
            needed = _indices(ghosts, "ghosts")
            inner, _ = plain(element, dtype)
            halo._take((int(rows) + len(needed), *inner), dtype)
        size = halo._element_bytes()
        halo._core = _core.irregular_halo_by_rows(handle, int(rows), needed, size, kept(comm))
        return halo

    def _take(self, shape: Shape, dtype: DTypeLike) -> None:
        self._shape, self._dtype = plain(shape, dtype)
        if not self._shape or self._element_bytes() == 0:
            raise ArgumentError(f"shape: {self._shape}, expected elements along a first axis")

    def _element_bytes(self) -> int:
        return math.prod(self._shape[1:]) * self._dtype.itemsize

    @property
    def near_bytes(self) -> int:
        """The bytes that an exchange sends to ranks of this node."""
        return self._core.near_bytes()

    @property
    def far_bytes(self) -> int:
        """The bytes that an exchange sends to ranks of other nodes."""
        return self._core.far_bytes()

    def exchange(self, array: Array) -> None:
        """start() and wait()."""
        self.start(array)
        self.wait()

    def start(self, array: Array) -> None:
        """Sends the elements, which may be changed again when it returns. Those that are received
        belong to the exchange until wait() has returned, or test() has returned True."""
        self._core.start(self._checked(array), array)

    def test(self) -> bool:
        """True when all has come."""
        return self._core.test()

    def wait(self) -> None:
        """Returns when all has come."""
        self._core.wait()

    def combine(self, array: Array, op: Operation = "sum") -> None:
        """The other way round: values of received elements go back to their owners, where sent
        elements become (element op value), in the order of the neighbors. Of `op` there are those
        of ropewalk.Communicator, but for `average`."""
        self._core.combine(self._checked(array), array, op)

    def close(self) -> None:
        """Collective: gives memory and communicators back."""
        self._core.close()

    def __repr__(self) -> str:
        if self._core.closed():
            return "<ropewalk.IrregularHalo, closed>"
        return (
            f"<ropewalk.IrregularHalo, {self._shape[0]} elements, sends {self.near_bytes} bytes "
            f"inside the node and {self.far_bytes} to others>"
        )

    def _checked(self, given: Any) -> int:
        """The address of an array that fits."""
        array = _contiguous(given, "array", writable=True)
        if array.shape != self._shape or array.dtype != self._dtype:
            raise ArgumentError(
                f"array: {array.dtype} of shape {array.shape}, expected {self._dtype} of shape "
                f"{self._shape}"
            )
        return _address(array)


def _indices(given: ArrayLike, name: str) -> Array:
    array = np.asarray(given)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ArgumentError(f"{name}: {array.dtype} of {array.ndim} axes, expected whole numbers")
    return np.ascontiguousarray(array, np.int64)


def _words(rank: object, lists: Any) -> tuple[int, Array, Array]:
    if not isinstance(rank, (int, np.integer)):
        raise ArgumentError(f"neighbors: {rank!r}, expected the number of a rank")
    try:
        send, receive = lists
    except (TypeError, ValueError):
        raise ArgumentError(f"neighbors[{rank}]: expected (send, receive)") from None
    return (
        int(rank),
        _indices(send, f"neighbors[{rank}], send"),
        _indices(receive, f"neighbors[{rank}], receive"),
    )
