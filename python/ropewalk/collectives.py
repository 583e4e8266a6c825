"""Collectives on arrays, as fast as the memory allows.

    comm = ropewalk.Communicator()
    total = comm.allreduce(gradient)          # a new array on every rank
    comm.allreduce(gradient, out=gradient)    # in place
    pending = comm.start_allreduce(gradient)  # goes on while this rank computes
    total = pending.result()                  # or: total = await pending

Arrays are NumPy's, or anything that speaks the buffer protocol or DLPack on the CPU, as tensors of
PyTorch and JAX do. They are read and written in place; only arrays that are not row-major are
copied before they are sent. New arrays lie in communication memory, as those of ropewalk.empty do,
which the other ranks reach fastest.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from . import _core, reduction
from ._shared import ClosedTogether, OfRanks, Pending
from .arrays import Array
from .exceptions import ArgumentError, Error
from .exchange import _handle

if TYPE_CHECKING:
    from .exchange import CommunicatorLike

    ArrayLike = Any  # what numpy.asarray takes, and tensors that speak DLPack

_Result = TypeVar("_Result")


class PendingCollective(Pending[_Result]):
    """A collective under way, as start_allreduce() and the other start_ functions return it.

    The program must not use its arrays until it is complete. Collectives of a communicator run one
    after the other, in the order in which they were started. They need an MPI started with
    MPI_THREAD_MULTIPLE, as ropewalk and mpi4py start it.
    """

    def __init__(self, core: _core.PendingCollective) -> None:
        self._core: _core.PendingCollective = core

    def _result(self) -> _Result:
        result: _Result = self._core.result()
        return result

    def __repr__(self) -> str:
        return f"<ropewalk.PendingCollective, {'complete' if self.test() else 'under way'}>"


class Communicator(OfRanks, ClosedTogether):
    """Collectives among the ranks of an MPI communicator, on one node or several.

    `comm` is an mpi4py communicator, or None for the world; if MPI has not been started yet, None
    starts it. Collective. As in MPI, all ranks make the same calls in the same order, with as many
    elements of the same type. `threads`: for large reductions over several nodes, see
    ROPEWALK_REDUCTION_THREADS.

    Every call takes `out`, an array for the result; without it the result is a new array. For a
    call in place pass the same array twice. `op` is one of max, min, sum, prod, land, band,
    lor, bor, lxor, bxor; allreduce, reduce and reduce_scatter of floating-point and complex
    elements also take average, a sum divided by the number of ranks before it is rounded. A
    wrong argument of one rank is an ArgumentError on every rank. While a rank waits, its other
    Python threads run.

    The forms that begin with start_ return a PendingCollective at once.
    """

    def __init__(self, comm: CommunicatorLike = None, *, threads: int = 0) -> None:
        self._given = comm
        self._core: _core.Collectives = _core.collectives(_handle(comm), threads)

    @classmethod
    def _made(cls, core: _core.Collectives) -> Self:
        made = cls.__new__(cls)
        made._given = core.own_handle()
        made._core = core
        return made

    def mpi_handle(self) -> int | None:
        """The word that stands for its MPI communicator, for what else is made of it; None: the
        world."""
        return _handle(self._given)

    # ---- what it is

    @property
    def nodes(self) -> int:
        """How many nodes the ranks are on; 0 where MPI itself makes every call."""
        return self._core.nodes()

    @property
    def direct(self) -> bool:
        """True where ropewalk serves the calls; `reason` says why it does not."""
        return self._core.direct()

    @property
    def reason(self) -> str:
        return self._core.reason()

    @property
    def last_path(self) -> str:
        """How the bytes of the last call went: inlined, mapped, cma, staged, nodes, mpi, none."""
        return self._core.last_path()

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """A communicator of the ranks that give the same color (0 or more), ordered by key and then
        by rank; None for a rank whose color is None. Collective. Close it, or leave its `with`,
        before MPI ends."""
        core = _core.split_collectives(self.mpi_handle(), color, key, 0)
        return None if core is None else Communicator._made(core)

    def group(self, ranks: Sequence[int]) -> Communicator | None:
        """A communicator of these ranks of this one, in this order; None for the others. Collective
        over all ranks of this communicator, as mpi4py's Create is, and every rank gives the same
        list. Close it, or leave its `with`, before MPI ends."""
        listed = _group_ranks(self, ranks)
        mine = listed.index(self.rank) if self.rank in listed else None
        return self.split(None if mine is None else 0, mine or 0)

    def close(self) -> None:
        """Gives memory and threads back. Every rank must close it, in any order."""
        self._core.close()

    def __repr__(self) -> str:
        if self._core.closed():
            return "<ropewalk.Communicator, closed>"
        nodes = self.nodes
        how = f"{nodes} node{'s' if nodes > 1 else ''}" if self.direct else f"by MPI: {self.reason}"
        return f"<ropewalk.Communicator, rank {self.rank} of {self.size}, {how}>"

    # ---- collectives

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._core.barrier(False)

    def allreduce(self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum") -> Any:
        """Combines the arrays of all ranks, element by element; every rank gets the result."""
        return self._core.allreduce(array, out, op, False)

    def reduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum", root: int = 0
    ) -> Any:
        """The same; only the root gets the result, the others None."""
        return self._core.reduce(array, out, op, root, False)

    def scan(self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum") -> Any:
        """Combines the arrays of the ranks up to this one, its own included."""
        return self._core.scan(array, out, op, False)

    def exscan(self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum") -> Any:
        """Combines the arrays of the ranks before this one. On rank 0 the result is not defined."""
        return self._core.exscan(array, out, op, False)

    def reduce_scatter(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        op: str = "sum",
        counts: Sequence[int] | None = None,
    ) -> Any:
        """Combines the arrays of all ranks and deals the rows of the result out: rank r gets
        counts[r] rows of the first axis, or all ranks as many."""
        return self._core.reduce_scatter(array, out, op, counts, False)

    def broadcast(self, array: ArrayLike, root: int = 0) -> Any:
        """The root's array, into the arrays of the others. Returns the array."""
        return self._core.broadcast(array, root, False)

    def allgather(self, array: ArrayLike, out: ArrayLike | None = None) -> Any:
        """The arrays of all ranks, stacked along a new first axis."""
        return self._core.allgather(array, out, False)

    def gather(self, array: ArrayLike, out: ArrayLike | None = None, root: int = 0) -> Any:
        """The same; only the root gets the result, the others None."""
        return self._core.gather(array, out, root, False)

    def scatter(
        self, array: ArrayLike | None = None, out: ArrayLike | None = None, root: int = 0
    ) -> Any:
        """Row r of the root's array goes to rank r. Ranks other than the root pass `out`."""
        return self._core.scatter(array, out, root, False)

    def alltoall(self, array: ArrayLike, out: ArrayLike | None = None) -> Any:
        """Deals the rows of the first axis out to all ranks, as many to each, and gets as many from
        each: the rows of the result come in the order of the ranks."""
        return self._core.alltoall(array, out, False)

    # ---- with as many rows of the first axis as each rank likes

    def allgatherv(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
    ) -> Any:
        """The rows of all ranks, one after the other. counts[r] is the number of rank r's rows;
        without it the ranks tell each other first, which takes another call."""
        return self._core.allgatherv(array, out, _row_counts(self, array, counts), False)

    def gatherv(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
        root: int = 0,
    ) -> Any:
        """The same; only the root gets the result, the others None."""
        return self._core.gatherv(array, out, _row_counts(self, array, counts), root, False)

    def scatterv(
        self,
        array: ArrayLike | None = None,
        counts: Sequence[int] = (),
        out: ArrayLike | None = None,
        root: int = 0,
    ) -> Any:
        """counts[r] rows of the root's array go to rank r. Only the root's array and counts matter;
        ranks other than the root pass `out` with as many rows."""
        return self._core.scatterv(array, out, counts, root, False)

    def alltoallv(
        self,
        array: ArrayLike,
        send_counts: Sequence[int],
        receive_counts: Sequence[int] | None = None,
        out: ArrayLike | None = None,
    ) -> Any:
        """send_counts[r] rows go to rank r, receive_counts[r] rows come from it; without the latter
        the ranks tell each other first, which takes another call."""
        if receive_counts is None:
            receive_counts = self.alltoall(np.asarray(send_counts)).tolist()
        return self._core.alltoallv(array, out, send_counts, receive_counts, False)

    # ---- started

    def start_barrier(self) -> PendingCollective[None]:
        return PendingCollective(self._core.barrier(True))

    def start_allreduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum"
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.allreduce(array, out, op, True))

    def start_reduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum", root: int = 0
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.reduce(array, out, op, root, True))

    def start_scan(
        self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum"
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.scan(array, out, op, True))

    def start_exscan(
        self, array: ArrayLike, out: ArrayLike | None = None, op: str = "sum"
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.exscan(array, out, op, True))

    def start_reduce_scatter(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        op: str = "sum",
        counts: Sequence[int] | None = None,
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.reduce_scatter(array, out, op, counts, True))

    def start_broadcast(self, array: ArrayLike, root: int = 0) -> PendingCollective[Any]:
        return PendingCollective(self._core.broadcast(array, root, True))

    def start_allgather(
        self, array: ArrayLike, out: ArrayLike | None = None
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.allgather(array, out, True))

    def start_gather(
        self, array: ArrayLike, out: ArrayLike | None = None, root: int = 0
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.gather(array, out, root, True))

    def start_scatter(
        self, array: ArrayLike | None = None, out: ArrayLike | None = None, root: int = 0
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.scatter(array, out, root, True))

    def start_alltoall(
        self, array: ArrayLike, out: ArrayLike | None = None
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.alltoall(array, out, True))


# ---- what the compiled part asks for -------------------------------------------------------------


def _group_ranks(comm: Communicator, ranks: Sequence[int]) -> list[int]:
    """The ranks of a group, compared on all ranks; an error of one is an error of every one."""
    try:
        listed = _checked_ranks(ranks, comm.size)
    except ArgumentError:
        with contextlib.suppress(Error):
            comm.broadcast(np.empty(0), root=-1)  # the others' next call fails
        raise
    told = np.full((comm.size,), -1, np.int64)
    told[: len(listed)] = listed
    every = comm.allgather(told)
    if not (every == every[0]).all():
        raise ArgumentError("ranks: they differ between ranks, expected one list on every rank")
    return listed


def _checked_ranks(ranks: Sequence[int], size: int) -> list[int]:
    try:
        listed = [operator.index(rank) for rank in ranks]
    except TypeError:
        raise ArgumentError(f"ranks: {ranks!r}, expected a list of ranks") from None
    wrong = [rank for rank in listed if not 0 <= rank < size]
    if wrong:
        raise ArgumentError(f"ranks: {wrong[0]}, expected ranks from 0 to {size - 1}")
    if len(set(listed)) < len(listed) or not listed:
        raise ArgumentError(f"ranks: {listed}, expected at least one rank, and none of them twice")
    return listed


def _row_counts(
    comm: Communicator, array: ArrayLike, counts: Sequence[int] | None
) -> Sequence[int]:
    if counts is not None:
        return counts
    told: list[int] = comm.allgather(_row_number(array)).tolist()
    return told


def _row_number(array: ArrayLike) -> int:
    shape = tuple(array.shape) if hasattr(array, "shape") else np.shape(array)
    return int(shape[0]) if shape else 1


# Types are named by the numbers of ElementType (ropewalk/types.hpp), for reductions.
_TYPES = {**reduction._TYPES, "bool": 16}
_NAMES = {number: name for name, number in _TYPES.items()}

# What the compiled part takes: bytes, number of the type or -1, bytes of an element, shape.
_Taken = tuple[Array, int, int, tuple[int, ...]]


def _taken(array: Array) -> _Taken:
    """An array whose type the buffer protocol and DLPack have no word for: bfloat16 of ml_dtypes is
    reduced as what it is, structures, dates and numbers in foreign byte order are only moved."""
    kind = _TYPES.get(array.dtype.name, -1) if array.dtype.isnative else -1
    flat = array.reshape(-1).view(np.uint8)
    return flat, kind, array.dtype.itemsize, array.shape


def _sendable(given: ArrayLike) -> _Taken:
    """An array of NumPy that can be read as it is, or a copy of what cannot."""
    if getattr(given, "__dlpack_device__", None) is not None and not isinstance(given, np.ndarray):
        device = given.__dlpack_device__()[0]
        if int(device) != 1:
            raise ArgumentError("array: not in the memory of the CPU; copy it there first")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(f"array: {type(given).__name__}, expected an array ({error})") from None
    if array.dtype.hasobject or array.dtype.itemsize == 0:
        raise ArgumentError(
            f"array: dtype {array.dtype} of {type(given).__name__}, expected numbers or plain bytes"
        )
    return _taken(np.ascontiguousarray(array).reshape(array.shape))


def _in_place(given: ArrayLike, name: str, used: str) -> Array:
    """An array of NumPy that can be used where it lies."""
    if not isinstance(given, np.ndarray):
        raise ArgumentError(
            f"{name}: {type(given).__name__}, expected an array in the memory of the CPU that can "
            f"be {used} where it lies, row-major"
        )
    if given.dtype.hasobject or given.dtype.itemsize == 0:
        raise ArgumentError(f"{name}: dtype {given.dtype}, expected numbers or plain bytes")
    if not given.flags.c_contiguous:
        raise ArgumentError(
            f"{name}: not contiguous (strides {given.strides}), expected row-major order; use "
            "numpy.ascontiguousarray or ropewalk.empty"
        )
    return given


def _on_device(given: object, name: str) -> tuple[int, int, tuple[int, ...]] | None:
    """Address, bytes of an element and shape of an array in memory of a CUDA device, by its
    __cuda_array_interface__ (version 3 of Numba's text); None for what has none."""
    try:
        interface = getattr(given, "__cuda_array_interface__", None)
    except (TypeError, RuntimeError) as error:  # as of a PyTorch tensor that needs a gradient
        raise ArgumentError(f"{name}: {error}; detach it first") from None
    if interface is None:
        return None
    item = np.dtype(interface["typestr"]).itemsize
    shape = tuple(interface["shape"])
    address, is_read_only = interface["data"]
    if is_read_only and name == "out":
        raise ArgumentError("out: read-only, expected an array that can be received into")
    row_major: list[int] = []
    step = item
    for extent in reversed(shape):
        row_major.insert(0, step)
        step *= extent
    strides = interface.get("strides")
    if strides is not None and step and tuple(strides) != tuple(row_major):
        raise ArgumentError(
            f"{name}: not contiguous (strides {strides}), expected row-major order; copy it first"
        )
    return address or 0, item, shape


def _receivable(given: ArrayLike) -> _Taken:
    """An array of NumPy that can be written where it lies."""
    array = _in_place(given, "out", "written")
    if not array.flags.writeable:
        raise ArgumentError("out: read-only, expected an array that can be received into")
    return _taken(array)


def _sendable_in_place(given: ArrayLike) -> _Taken:
    """An array of NumPy that is read again and again: a copy would be of its first elements."""
    return _taken(_in_place(given, "array", "read"))


def _shaped(memory: Array, given: ArrayLike, kind: int, shape: tuple[int, ...]) -> Array:
    """Bytes as an array of the type of what was sent; bfloat16 of others than NumPy as uint16."""
    if kind == _TYPES["bfloat16"] and not isinstance(given, np.ndarray):
        dtype = np.dtype(np.uint16)
    elif kind >= 0 and not isinstance(given, np.ndarray):
        dtype = np.dtype(_NAMES[kind])
    else:
        dtype = np.asarray(given).dtype
    return memory.view(dtype).reshape(shape)
