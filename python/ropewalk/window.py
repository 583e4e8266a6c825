"""Memory of each rank that the other ranks read and write without its help.

    with ropewalk.Window(1000) as window:      # float64
        if window.rank == 0:
            window.put(array, 1)               # to the beginning of the memory of rank 1
            window.signal(1)
        if window.rank == 1:
            window.wait_signal(1)              # what was put before is in window.array

Inside a node these are loads, stores and atomic operations on mapped memory, and need no message;
between nodes they are messages, which a thread of the other rank answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from . import _core
from ._shared import OfRanks
from .arrays import plain
from .elements import as_elements, dtype_of
from .exceptions import ArgumentError
from .exchange import _handle, _refusing_jointly

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ._given import ArrayLike
    from .arrays import Array, Shape
    from .exchange import CommunicatorLike
    from .operations import Operation


class Window(OfRanks):
    """One array on each rank of a communicator.

    Shapes may differ between ranks, `dtype` and `signals` may not. `comm` is a communicator of
    ropewalk or mpi4py, or None for the world; where nobody has started MPI, None starts it. Making
    it is collective, and so is close(). The elements are zero at first. An UnsupportedError on
    every rank where ranks of a node cannot map each other's memory, and on several nodes where MPI
    was started without MPI_THREAD_MULTIPLE.

    Offsets are in elements. When a put or get returns, its array may be used again; another rank
    may read what was put once it has seen a signal(), a fence() or a message after a flush().
    Elements that one rank writes while another reads or writes them are undefined, but for the
    atomic operations, which are atomic for each element, among each other. Who waits for a rank
    that has died gets a PeerDeadError.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: DTypeLike = np.float64,
        comm: CommunicatorLike = None,
        *,
        signals: int = 8,
    ) -> None:
        handle = _handle(comm)
        with _refusing_jointly(lambda: _core.window(handle, 0, 1, -1)):
            self._shape, self._dtype = plain(shape, dtype)
            if self._dtype.itemsize == 0:
                raise ArgumentError(f"dtype: {self._dtype}, expected elements of a byte or more")
            if not isinstance(signals, (int, np.integer)) or not 0 <= signals <= 1 << 16:
                raise ArgumentError(f"signals: {signals!r}, expected 0 to {1 << 16}")
        elements = int(np.prod(self._shape, dtype=object))
        itemsize = self._dtype.itemsize
        self._core: _core.Window = _core.window(handle, elements * itemsize, itemsize, int(signals))

    # ---- memory

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._dtype

    @property
    def array(self) -> Array:
        """The memory of this rank."""
        return self.of(self.rank).reshape(self._shape)

    def is_near(self, rank: int) -> bool:
        """Whether a rank is on this node."""
        return self._core.is_near(rank)

    def of(self, rank: int) -> Array:
        """The memory of a rank of this node, one axis, as it is mapped here. The array stays valid
        when the window is closed. An UnsupportedError for a rank of another node."""
        memory: Array = self._core.memory(rank)
        return memory.view(self._dtype)

    def put(self, array: ArrayLike, rank: int, offset: int = 0) -> None:
        """Writes the array to the elements from `offset` on."""
        self._core.put(self._elements(array, "array"), rank, offset)

    def get(self, out: ArrayLike, rank: int, offset: int = 0) -> None:
        """Reads the elements from `offset` on into `out`."""
        self._core.get(self._of_its_type(out, "out"), rank, offset)

    # ---- atomic operations, on elements of at most 8 bytes

    def accumulate(
        self, array: ArrayLike, rank: int, offset: int = 0, op: Operation = "sum"
    ) -> None:
        """The elements from `offset` on become (element op operand), each atomically."""
        self._core.accumulate(self._elements(array, "array"), rank, offset, op)

    def fetch_and_op(self, value: Any, rank: int, offset: int = 0, op: Operation = "sum") -> Any:
        """One element becomes (element op value). Returns what it was. `replace` is an exchange,
        `no_op` leaves the element as it is."""
        before = np.empty(1, self._dtype)
        self._core.fetch_and_op(self._element(value, "value"), before, rank, offset, op)
        return before[0]

    def fetch(self, rank: int, offset: int = 0) -> Any:
        """Returns one element, read atomically."""
        return self.fetch_and_op(np.zeros((), self._dtype), rank, offset, "no_op")

    def compare_and_swap(self, expected: Any, desired: Any, rank: int, offset: int = 0) -> Any:
        """One element becomes `desired` where its bytes are those of `expected`. Returns what it
        was."""
        before = np.empty(1, self._dtype)
        values = (self._element(expected, "expected"), self._element(desired, "desired"))
        self._core.compare_and_swap(*values, before, rank, offset)
        return before[0]

    # ---- who waits for whom

    def signal(self, rank: int, index: int = 0, by: int = 1) -> None:
        """Raises a counter of a rank, after all that this rank has put anywhere before."""
        self._core.signal(rank, index, by)

    def signals(self, index: int = 0) -> int:
        """How far a counter of this rank was raised."""
        return self._core.signals(index)

    def wait_signal(self, value: int, index: int = 0) -> None:
        """Returns when a counter of this rank is at least `value`."""
        self._core.wait_signal(value, index)

    def flush(self) -> None:
        """Returns when all that this rank has put and accumulated is there, on whatever node."""
        self._core.flush()

    def fence(self) -> None:
        """Collective: all ranks have come here, and what they have put before is there."""
        self._core.fence()

    # ---- its end

    def close(self) -> None:
        """Collective: a fence, after which no call of the window is possible. Memory is given back
        once no rank has an array of it any more."""
        if not self._core.closed():
            self._core.fence()
            self._core.close(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: object) -> None:
        try:
            if kind is None:  # after an error on this rank the others may not come
                self.close()
        finally:
            self._core.close(True)

    def __repr__(self) -> str:
        if self._core.closed():
            return "<ropewalk.Window, closed>"
        what = f"{' x '.join(map(str, self._shape)) or 'one'} {self._dtype}"
        return f"<ropewalk.Window, rank {self.rank} of {self.size}, {what}>"

    # ---- elements as they are given

    def _elements(self, given: ArrayLike, name: str) -> Any:
        """Numbers, and lists of them, become elements of the window's type; arrays have it."""
        if isinstance(given, (int, float, complex, np.generic, list, tuple)):
            return as_elements(given, self._dtype, name)
        return self._of_its_type(given, name)

    def _of_its_type(self, given: ArrayLike, name: str) -> ArrayLike:
        dtype = dtype_of(given)
        if dtype is None or dtype == self._dtype:
            return given
        remedy = f"convert it with array.astype('{self._dtype}')"
        if name == "out":
            remedy = f"read into numpy.empty(elements, '{self._dtype}') and convert that"
        raise ArgumentError(f"{name}: dtype {dtype}, expected {self._dtype}; {remedy}")

    def _element(self, value: Any, name: str) -> Array:
        converted = as_elements(value, self._dtype, name)
        if converted.size != 1:
            raise ArgumentError(f"{name}: {converted.size} elements, expected one {self._dtype}")
        return converted.reshape(1)
