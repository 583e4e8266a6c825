"""Elements of a type that is known before: numbers become them, arrays are asked for theirs."""

from __future__ import annotations

import functools
import reprlib
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _given
from .exceptions import ArgumentError

if TYPE_CHECKING:
    from ._given import ArrayLike
    from .arrays import Array


def dtype_of(given: ArrayLike) -> np.dtype[Any] | None:
    """The type of an array's elements; None for what is no array, which the compiled part
    refuses."""
    if isinstance(given, np.ndarray):
        own: np.dtype[Any] = given.dtype
        return own
    if isinstance(given, (list, tuple)):
        return None
    try:
        kind = _core.describe_input(given)[2]
    except (TypeError, ValueError, RuntimeError):
        kind = -1
    try:
        found = _given._dtype_of(given, kind)
    except (TypeError, ValueError, RuntimeError):
        return None
    return None if found.hasobject else found


def as_elements(given: Any, dtype: np.dtype[Any], name: str) -> Array:
    """Numbers, or lists of them, as an array of that type. Floating-point numbers are rounded to
    it; an ArgumentError names the argument where any other number would become another one."""
    bounds = _bounds(dtype)
    if type(given) is int and bounds is not None and bounds[0] <= given <= bounds[1]:
        return np.array(given, dtype)
    try:
        return _converted(given, dtype)
    except (TypeError, ValueError, OverflowError):
        among = f" from {bounds[0]} to {bounds[1]}" if bounds else ""
        raise ArgumentError(
            f"{name}: {reprlib.repr(given)}, expected {dtype}{among}; convert it first"
        ) from None


def _converted(given: Any, dtype: np.dtype[Any]) -> Array:
    if dtype.kind not in "biufc":  # of dates, structures and bfloat16 NumPy knows what becomes one
        return np.asarray(given, dtype)
    found = np.asarray(given)
    if found.dtype.kind == "f" and dtype.kind in "iu" and not isinstance(given, np.ndarray):
        found = np.asarray(given, object)  # NumPy makes 1 and 2**63 floating-point numbers
    if found.dtype.kind in "iuO":
        return _of_integers(found, dtype)
    with np.errstate(over="ignore"):
        converted = found.astype(dtype, casting="same_kind" if found.size else "unsafe")
    if (np.isfinite(found) & ~np.isfinite(converted)).any():
        raise OverflowError("out of range")
    return converted


def _of_integers(found: Array, dtype: np.dtype[Any]) -> Array:
    """Integers go by their values, into whatever type has these."""
    whole = (int, np.integer)
    if found.dtype.kind == "O" and not all(isinstance(one, whole) for one in found.flat):
        raise TypeError("not all are integers")
    bounds = _bounds(dtype)
    if bounds is not None and found.size:
        if int(found.min()) < bounds[0] or int(found.max()) > bounds[1]:
            raise OverflowError("out of range")
        return found.astype(dtype)
    with np.errstate(over="ignore"):
        converted: Array = found.astype(dtype)
    if not np.isfinite(converted).all():
        raise OverflowError("out of range")
    return converted


@functools.cache
def _bounds(dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """The least and the largest integer of a type; None where it has other numbers, too."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
