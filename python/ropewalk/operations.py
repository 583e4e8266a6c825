"""The operations of reductions, by the names that NumPy and mpi4py have for them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Operation = Any  # a string, a ufunc of NumPy, or one of the operations of MPI in mpi4py

_UFUNCS: dict[Any, str] = {
    np.maximum: "max",
    np.minimum: "min",
    np.add: "sum",
    np.multiply: "prod",
    np.logical_and: "land",
    np.bitwise_and: "band",
    np.logical_or: "lor",
    np.bitwise_or: "bor",
    np.logical_xor: "lxor",
    np.bitwise_xor: "bxor",
}
# By the identity of mpi4py's objects, which last as long as the module.
_of_mpi: dict[int, str] = {}
_NAMES_IN_MPI = {name.upper(): name for name in (*_UFUNCS.values(), "replace", "no_op")}


def operation_name(given: Operation) -> Operation:
    """Returns the name of an operation: "sum" for numpy.add and for mpi4py's MPI.SUM. What is none
    of these is returned as it is."""
    if isinstance(given, np.ufunc):
        return _UFUNCS.get(given, given)
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(given, mpi.Op):
        return given
    if not _of_mpi:
        _of_mpi.update((id(getattr(mpi, one)), name) for one, name in _NAMES_IN_MPI.items())
    return _of_mpi.get(id(given), given)
