"""What becomes of MPI, and of what is still under way, when the program ends."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import sys
import weakref
from typing import Protocol

from . import _core
from .exceptions import Error


class _Ending(Protocol):
    def end(self) -> None: ...


class Ended(Protocol):
    """An object whose compiled part is told of the end of the program."""

    @property
    def _core(self) -> _Ending: ...


# In the order in which they were made, which is the same on all ranks: to wait in another order
# could be to wait for each other.
_open: weakref.WeakValueDictionary[int, Ended] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def end_with_program(one: Ended) -> None:
    """Has the end of the program complete what is under way of this object, since a thread that is
    in MPI while MPI ends would bring the program down."""
    _open[next(_numbers)] = one


def _end_mpi() -> None:
    # After an uncaught exception other ranks may wait for this one, and to end MPI or close
    # endpoints would be to wait for them: the launcher ends them when it sees this rank gone. What
    # a child of fork has of its parent's is left alone by each object, and by end_mpi().
    if hasattr(sys, "last_value"):
        _core.abandon()
        return
    for one in list(_open.values()):
        with contextlib.suppress(Error):  # whoever waits for a result has been told
            one._core.end()
    _core.end_mpi()


atexit.register(_end_mpi)
