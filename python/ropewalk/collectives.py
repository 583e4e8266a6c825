"""Collectives on arrays, as fast as the memory allows.

    comm = ropewalk.Communicator()
    total = comm.allreduce(gradient)          # a new array on every rank
    comm.allreduce(gradient, out=gradient)    # in place
    pending = comm.start_allreduce(gradient)  # goes on while this rank computes
    total = pending.result()                  # or: total = await pending

Arrays are NumPy's, or anything that speaks the buffer protocol or DLPack on the CPU, as tensors of
PyTorch and JAX do. They are read and written in place; only arrays that are not row-major are
copied before they are sent. New arrays of 16 KiB and more lie in communication memory, as those of
ropewalk.empty do, which the other ranks reach fastest; smaller ones are NumPy's own.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from . import _core
from ._ending import end_with_program
from ._shared import ClosedTogether, OfRanks, Pending
from .exceptions import ArgumentError, Error
from .exchange import _LARGEST_INT, _handle, _refusing_jointly, _whole

if TYPE_CHECKING:
    from ._given import ArrayLike
    from .exchange import CommunicatorLike
    from .operations import Operation

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

    def done(self) -> bool:
        """True when it is complete, or has failed."""
        try:
            return self._core.test()
        except Error:
            return True

    def future(self) -> Future[_Result]:
        """Returns a future that gets what it gets, for callbacks, concurrent.futures.wait and
        as_completed. A thread waits for it; as with the threads of concurrent.futures, Python does
        not end before it."""
        made: Future[_Result] = Future()
        made.set_running_or_notify_cancel()  # cannot be cancelled: the other ranks take part
        threading.Thread(target=self._complete, args=(made,), name="ropewalk-future").start()
        return made

    def _complete(self, future: Future[_Result]) -> None:
        try:
            result = self.result()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def __repr__(self) -> str:
        return f"<ropewalk.PendingCollective, {'complete' if self.done() else 'under way'}>"


class Communicator(OfRanks, ClosedTogether):
    """Collectives among the ranks of an MPI communicator, on one node or several.

    `comm` is an mpi4py communicator, or None for the world; if MPI has not been started yet, None
    starts it. Collective. As in MPI, all ranks make the same calls in the same order, with as many
    elements of the same type. `threads`: for large reductions over several nodes, see
    ROPEWALK_REDUCTION_THREADS.

    Every call takes `out`, an array for the result; without it the result is a new array. For a
    call in place pass the same array twice, or to allgather and gather this rank's own block of
    `out`; other arrays that share memory are refused. `op` is one of max, min, sum, prod, land,
    band, lor, bor, lxor, bxor, or what stands for it in NumPy (numpy.add) and mpi4py (MPI.SUM);
    allreduce, reduce and reduce_scatter of floating-point and complex elements also take average,
    a sum divided by the number of ranks before it is rounded. A
    wrong argument of one rank is an ArgumentError on every rank that waits for it; the root of a
    small broadcast may have returned already. While a rank waits, its other Python threads run.

    The forms that begin with start_ return a PendingCollective at once.
    """

    def __init__(self, comm: CommunicatorLike = None, *, threads: int = 0) -> None:
        self._handle = _handle(comm)
        with _refusing_jointly(lambda: _core.grid(self._handle, [], [])):
            threads = _whole("threads", threads, _LARGEST_INT)
        self._core: _core.Collectives = _core.collectives(self._handle, threads)
        # Is kept, and cleared after the compiled part, which uses it: attributes go in the order in
        # which they were set.
        self._given = comm
        end_with_program(self)

    @classmethod
    def _made(cls, core: _core.Collectives) -> Self:
        made = cls.__new__(cls)
        made._handle = core.own_handle()
        made._core = core
        made._given = None
        end_with_program(made)
        return made

    def mpi_handle(self) -> int | None:
        """The word that stands for its MPI communicator, for what else is made of it; None: the
        world. An ArgumentError when it is closed, or that communicator is."""
        if self._core.closed():
            raise ArgumentError("communicator: closed, expected an open one")
        return self._handle if self._given is None else _handle(self._given)

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
        by rank; None for a rank whose color is None, or mpi4py's MPI.UNDEFINED. Collective. Close
        it, or leave its `with`, before MPI ends."""
        if _is_undefined(color):
            color = None
        refused = _split_refusal(color, key)
        if refused:
            color, key = _NO_COLOR, 0  # an error of every rank
        try:
            core = self._core.split(self.mpi_handle(), color, key, 0)
        except Error:
            if refused:
                raise refused from None
            raise
        return None if core is None else Communicator._made(core)

    def group(self, ranks: Sequence[int]) -> Communicator | None:
        """A communicator of these ranks of this one, in this order; None for the others. Collective
        over all ranks of this communicator, as mpi4py's Create is, and every rank gives the same
        list. Close it, or leave its `with`, before MPI ends."""
        listed = _group_ranks(self, ranks)
        mine = listed.index(self.rank) if self.rank in listed else None
        return self.split(None if mine is None else 0, mine or 0)

    def close(self) -> None:
        """Gives memory and threads back. Every rank must close it, in any order. Completes what was
        started. An ArgumentError while another thread is in a call."""
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

    def allreduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum"
    ) -> Any:
        """Combines the arrays of all ranks, element by element; every rank gets the result."""
        return self._core.allreduce(array, out, op, False)

    def reduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum", root: int = 0
    ) -> Any:
        """The same; only the root gets the result, the others None."""
        return self._core.reduce(array, out, op, root, False)

    def scan(self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum") -> Any:
        """Combines the arrays of the ranks up to this one, its own included."""
        return self._core.scan(array, out, op, False)

    def exscan(self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum") -> Any:
        """Combines the arrays of the ranks before this one. On rank 0 the result is not defined."""
        return self._core.exscan(array, out, op, False)

    def reduce_scatter(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        op: Operation = "sum",
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
        """The rows of all ranks, one after the other. counts[r] is the number of rank r's rows. All
        ranks give counts, or none does; without them the ranks tell each other first, which takes
        another call."""
        return self._core.allgatherv(array, out, counts, False)

    def gatherv(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
        root: int = 0,
    ) -> Any:
        """The same; only the root gets the result, the others None. Only the root's counts matter,
        and it needs none: the ranks tell each other in every call, which takes as long as an
        allgather of one number."""
        return self._core.gatherv(array, out, counts, root, False)

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
            receive_counts = _receive_counts(self, send_counts)
        return self._core.alltoallv(array, out, send_counts, receive_counts, False)

    # ---- started

    def start_barrier(self) -> PendingCollective[None]:
        return PendingCollective(self._core.barrier(True))

    def start_allreduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum"
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.allreduce(array, out, op, True))

    def start_reduce(
        self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum", root: int = 0
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.reduce(array, out, op, root, True))

    def start_scan(
        self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum"
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.scan(array, out, op, True))

    def start_exscan(
        self, array: ArrayLike, out: ArrayLike | None = None, op: Operation = "sum"
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.exscan(array, out, op, True))

    def start_reduce_scatter(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        op: Operation = "sum",
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

    def start_allgatherv(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
    ) -> PendingCollective[Any]:
        """Without counts this waits until every rank has told its own, and only then goes on by
        itself."""
        return PendingCollective(self._core.allgatherv(array, out, counts, True))

    def start_gatherv(
        self,
        array: ArrayLike,
        out: ArrayLike | None = None,
        counts: Sequence[int] | None = None,
        root: int = 0,
    ) -> PendingCollective[Any]:
        """Without counts the root waits until every rank has told its own; others do not wait."""
        return PendingCollective(self._core.gatherv(array, out, counts, root, True))

    def start_scatterv(
        self,
        array: ArrayLike | None = None,
        counts: Sequence[int] = (),
        out: ArrayLike | None = None,
        root: int = 0,
    ) -> PendingCollective[Any]:
        return PendingCollective(self._core.scatterv(array, out, counts, root, True))

    def start_alltoallv(
        self,
        array: ArrayLike,
        send_counts: Sequence[int],
        receive_counts: Sequence[int] | None = None,
        out: ArrayLike | None = None,
    ) -> PendingCollective[Any]:
        """Without receive_counts this waits until every rank has told what it sends, and only then
        goes on by itself."""
        if receive_counts is None:
            receive_counts = _receive_counts(self, send_counts)
        return PendingCollective(
            self._core.alltoallv(array, out, send_counts, receive_counts, True)
        )


# ---- checks -------------------------------------------------------------------------------------


def _group_ranks(comm: Communicator, ranks: Sequence[int]) -> list[int]:
    """The ranks of a group, compared on all ranks; an error of one is an error of every one."""
    try:
        listed = _checked_ranks(ranks, comm.size)
    except ArgumentError:
        _tell_refusal(comm)
        raise
    told = np.full((comm.size,), -1, np.int64)
    told[: len(listed)] = listed
    every = comm.allgather(told)
    if not (every == every[0]).all():
        raise ArgumentError("ranks: they differ between ranks, expected one list on every rank")
    return listed


def _tell_refusal(comm: Communicator) -> None:
    """Takes part with a call that cannot be, so that the others do not wait for this rank."""
    with contextlib.suppress(Error):
        comm.broadcast(np.empty(0), root=-1)


# MPI's own numbers below 0, as MPI_UNDEFINED, are none that a program may give.
_NO_COLOR = -5


def _is_undefined(color: int | None) -> bool:
    """Whether it is what MPI calls MPI_UNDEFINED, a number that each MPI has its own of."""
    module = sys.modules.get("mpi4py.MPI")
    return isinstance(color, int) and module is not None and color == module.UNDEFINED


def _split_refusal(color: int | None, key: int) -> ArgumentError | None:
    """What is wrong with the arguments of split(), where they are no numbers that MPI takes."""
    for name, given in (("color", 0 if color is None else color), ("key", key)):
        try:
            if -(1 << 31) <= operator.index(given) < 1 << 31:
                continue
        except TypeError:
            pass
        return ArgumentError(f"{name}: {given!r}, expected a whole number of 32 bits")
    return None


def _receive_counts(comm: Communicator, send_counts: Sequence[int]) -> list[int]:
    """What the ranks tell each other of the rows that they send."""
    try:
        mine = np.array([operator.index(count) for count in send_counts], np.int64)
    except (TypeError, OverflowError):
        mine = np.empty(0, np.int64)
    if len(mine) != comm.size or (mine < 0).any():
        _tell_refusal(comm)
        raise ArgumentError(
            f"send_counts: {send_counts!r}, expected one whole number of 0 or more for each of the "
            f"{comm.size} ranks"
        )
    told: list[int] = comm.alltoall(mine).tolist()
    return told


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
