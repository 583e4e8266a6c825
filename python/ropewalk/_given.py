"""What the compiled part asks of arrays as the caller gives them, where it cannot take them as they
are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import reduction
from .arrays import Array, is_lazy
from .exceptions import ArgumentError

if TYPE_CHECKING:
    ArrayLike = Any  # what numpy.asarray takes, and tensors that speak DLPack

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


def _resolved(given: ArrayLike) -> ArrayLike:
    """A tensor of PyTorch whose memory holds its elements. That of a lazily conjugated or negated
    one holds others."""
    return given.resolve_conj().resolve_neg() if is_lazy(given) else given


def _sendable(given: ArrayLike) -> _Taken:
    """An array of NumPy that can be read as it is, or a copy of what cannot."""
    given = _resolved(given)
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


def _check_dtypes(array: ArrayLike, out: ArrayLike) -> None:
    """Compares types that are only moved: nobody converts a date to a number on the way."""
    sent, received = np.asarray(array).dtype, np.asarray(out).dtype
    if sent != received:
        raise ArgumentError(
            f"out: its type is not that of the array sent: dtype {received}, expected {sent}"
        )


def _not_reduced(given: ArrayLike) -> str:
    """Why an array cannot be reduced, and what can be."""
    dtype = np.asarray(given).dtype
    remedy = "expected integers, floating point, complex or bool"
    if dtype.names is not None:
        remedy = f"reduce its fields one by one, as array[{dtype.names[0]!r}]"
    elif not dtype.isnative:
        native = dtype.newbyteorder("=").name
        remedy = f"convert it to this machine's byte order, array.astype({native!r})"
    elif dtype.kind in "fc" and dtype.itemsize > 8:
        narrow = "float64" if dtype.kind == "f" else "complex128"
        remedy = f"convert it, array.astype({narrow!r})"
    return f"array: dtype {dtype}: its type cannot be reduced; {remedy}"


def _in_place(given: ArrayLike, name: str, used: str) -> Array:
    """An array of NumPy that can be used where it lies."""
    if _resolved(given) is not given:
        raise ArgumentError(
            f"{name}: a lazily conjugated or negated tensor, whose memory holds other numbers, "
            "expected one that can be used where it lies; use resolve_conj() and resolve_neg()"
        )
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


def _receivable(given: ArrayLike, name: str) -> _Taken:
    """An array of NumPy that can be written where it lies."""
    array = _in_place(given, name, "written")
    if not array.flags.writeable:
        raise ArgumentError(f"{name}: read-only, expected an array that can be received into")
    return _taken(array)


def _sendable_in_place(given: ArrayLike) -> _Taken:
    """An array of NumPy that is read again and again: a copy would be of its first elements."""
    return _taken(_in_place(given, "array", "read"))


def _dtype_of(given: ArrayLike, kind: int) -> np.dtype[Any]:
    """The type of a result of what was sent; bfloat16 of others than NumPy as that of ml_dtypes, or
    as uint16 where that is not installed."""
    if kind == _TYPES["bfloat16"] and not isinstance(given, np.ndarray):
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            return np.dtype(np.uint16)
        kept: np.dtype[Any] = np.dtype(bfloat16)
        return kept
    if kind >= 0 and not isinstance(given, np.ndarray):
        return np.dtype(_NAMES[kind])
    return np.asarray(given).dtype


def _shaped(memory: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Bytes as an array of another type and shape."""
    return np.ndarray(shape, dtype, buffer=memory)
