"""The ranks of a process group come together here: by MPI where it runs, else by torch's store."""

from __future__ import annotations

import hashlib
import math
import sys
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from .. import _core
from ..exceptions import PeerDeadError, UnsupportedError

if TYPE_CHECKING:
    from mpi4py import MPI

_LONGEST_SECONDS = 2**31 - 1  # what an int holds


class Keys:
    """This store waits for a key no longer than the group's time-out. Some of torch's stores wait
    for longer, whatever time-out they were made with."""

    def __init__(self, store: dist.Store, timeout: timedelta) -> None:
        self._store = store
        self._timeout = timeout
        self.set = store.set
        self.delete_key = store.delete_key

    def get(self, key: str) -> bytes:
        self._store.wait([key], self._timeout)
        found: bytes = self._store.get(key)
        return found


class Formation:
    """A formation owns the ranks of a group and the MPI communicator that was made for them, if
    any. Its `store` has the keys of this group alone. Making one is collective."""

    # The store has taken the place of MPI in this process, which has one or the other to its end.
    _by_store = False

    def __init__(
        self,
        store: dist.Store,
        rank: int,
        size: int,
        timeout: timedelta,
        members: Sequence[int] = (),
    ) -> None:
        # A program may make the group again after it has destroyed it, with keys of the same names;
        # torch also gives those of one group to a later one of other ranks. Those of one set of
        # ranks make the same groups, and so count alike.
        name = f"ropewalk/{_short_name(members)}"
        count = store.add(f"{name}/{rank}", 1)
        self.store = dist.PrefixStore(f"{name}/{count}", store)
        keys = Keys(self.store, timeout)
        seconds = min(max(1, math.ceil(timeout.total_seconds())), _LONGEST_SECONDS)
        mpi = None if Formation._by_store else _mpi_of_ranks(size)
        self._mpi = _mpi_communicator(mpi, keys, rank, size)
        handle = None if self._mpi is None else self._mpi.handle
        try:
            self.ranks = _core.rank_group(keys, rank, size, handle, seconds)
        except Exception:
            self._free()
            raise
        Formation._by_store = self._mpi is None
        if size > 1 and not self.ranks.direct() and self._mpi is None:
            reason = self.ranks.reason()
            self.close(by_error=True)
            raise UnsupportedError(
                f"process group: its ranks cannot share memory: {reason}; start them under an MPI, "
                "and import mpi4py before the group is made, or use Gloo"
            )

    def close(self, by_error: bool = False) -> None:
        self.ranks.close(by_error)
        self._free()

    def _free(self) -> None:
        if self._mpi is not None and not _finalized():
            self._mpi.Free()
            self._mpi = None


def _short_name(members: Sequence[int]) -> str:
    """Tells sets of ranks apart. Keys of a store of files or of a server may not be long."""
    numbers = ",".join(str(member) for member in members)
    return hashlib.sha256(numbers.encode()).hexdigest()[:16]


def _running_mpi() -> Any:
    """Returns mpi4py's module where the program has imported it and MPI runs, else None."""
    module = sys.modules.get("mpi4py.MPI")
    if module is None or not module.Is_initialized() or module.Is_finalized():
        return None
    return module


def _finalized() -> bool:
    return _running_mpi() is None


def _mpi_of_ranks(size: int) -> Any:
    """Returns mpi4py's module where MPI has the ranks of the program. A process that no MPI has
    started is alone in the MPI that it imports, however many ranks torch knows."""
    mpi = _running_mpi()
    if mpi is None:
        return None
    ranks = dist.get_world_size() if dist.is_initialized() else size
    return None if mpi.COMM_WORLD.Get_size() == 1 and ranks > 1 else mpi


def _told(keys: Keys, rank: int) -> str:
    try:
        return keys.get(f"mpi/{rank}").decode()
    except RuntimeError as error:
        raise PeerDeadError(
            f"rank {rank} has not come to the making of the process group; start as many ranks as "
            f"it has, or allow more time ({error})"
        ) from None


def _warn_of_threads(mpi: Any) -> None:
    if mpi.Query_thread() < mpi.THREAD_MULTIPLE:
        warnings.warn(
            "ropewalk: MPI was initialised below MPI_THREAD_MULTIPLE, so that calls with "
            "async_op=True will be refused; leave mpi4py.rc.thread_level at 'multiple'",
            stacklevel=2,
        )


def _mpi_communicator(mpi: Any, keys: Keys, rank: int, size: int) -> MPI.Intracomm | None:
    """Returns a communicator of the ranks of the group, in their order, or None where MPI does not
    have them all."""
    own = "none" if mpi is None else str(mpi.COMM_WORLD.Get_rank())
    keys.set(f"mpi/{rank}", own)
    told = [_told(keys, each) for each in range(size)]
    if "none" in told or len(set(told)) < size:
        return None
    _warn_of_threads(mpi)
    world = mpi.COMM_WORLD
    group = world.Get_group().Incl([int(each) for each in told])
    made: MPI.Intracomm = world.Create_group(group)
    group.Free()
    return made
