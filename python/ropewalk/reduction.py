"""Reductions of the same arrays again and again, such as the gradients of data-parallel training.

Arrays are NumPy's, or anything that speaks DLPack, as tensors of PyTorch do; nothing but NumPy is
imported. They are reduced in place and kept alive as long as the plan uses them.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._ending import end_with_program
from ._shared import ClosedTogether, OfRanks, kept
from .arrays import Array, is_lazy
from .exceptions import ArgumentError, Error
from .exchange import _handle
from .operations import operation_name

if TYPE_CHECKING:
    from .exchange import CommunicatorLike
    from .operations import Operation

    # A tensor is an array (NumPy's, or any that speaks DLPack), (input, output) or (shape, dtype).
    Tensor = Any

# The numbers are those of ElementType and ReductionOp (ropewalk/types.hpp).
_TYPES = {
    "int8": 0,
    "uint8": 1,
    "int16": 2,
    "uint16": 3,
    "int32": 4,
    "uint32": 5,
    "int64": 6,
    "uint64": 7,
    "float16": 8,
    "bfloat16": 9,
    "float32": 10,
    "float64": 11,
    "complex64": 13,
    "complex128": 14,
}
_OPS = {"max": 0, "min": 1, "sum": 2, "prod": 3, "average": 2}
_BFLOAT16 = _TYPES["bfloat16"]


class as_bfloat16:
    """A NumPy array of uint16 whose elements are bfloat16: `ReductionPlan([as_bfloat16(bits)])`."""

    def __init__(self, array: Array) -> None:
        if not isinstance(array, np.ndarray) or array.dtype != np.uint16:
            raise ArgumentError("array: expected a NumPy array of uint16")
        self.array = array


class PendingReduction:
    """A reduction under way, as start() returns it. Once a later round has started, it is
    complete. An ArgumentError once the plan is closed, which has waited for it."""

    def __init__(self, plan: ReductionPlan, core: _core.PendingReduction) -> None:
        self._plan = plan
        self._core = core

    def test(self) -> bool:
        """True when it is complete."""
        return self._core.test()

    def wait(self) -> None:
        self._core.wait()


class ReductionPlan(OfRanks, ClosedTogether):
    """Reduces arrays over all ranks, any number of times. Collective; so is close().

    Each of `tensors` is an array, reduced in place; or (input, output), two arrays; or
    (shape, dtype), which lies in memory of the plan, see data(). Their sizes and types must be the
    same on all ranks. `op` is "sum", "average", "max", "min" or "prod".

    Tensors of up to fuse_bytes are fused, by type, into buckets of up to bucket_bytes. All ranks
    start the same buckets in the same order. Between a bucket's start and its end its arrays belong
    to the plan. One thread at a time uses a plan.
    """

    def __init__(
        self,
        tensors: Iterable[Tensor],
        op: Operation = "sum",
        *,
        communicator: CommunicatorLike = None,
        bucket_bytes: int = 4 << 20,
        fuse_bytes: int = 64 << 10,
        thread: bool = True,
    ) -> None:
        handle = _handle(communicator)
        with _refusing_jointly(handle):
            op = operation_name(op)
            if not isinstance(op, str) or op not in _OPS:
                raise ArgumentError(f"op: {op!r}, expected one of {', '.join(sorted(_OPS))}")
            tensors = list(tensors)
            words = [_tensor_words(one, index) for index, one in enumerate(tensors)]
            _sizes(bucket_bytes, fuse_bytes)
            thread = bool(thread)
        self._shapes = [(shape, kind) for shape, kind, _, _ in words]
        self._core: _core.ReductionPlan = _core.reduction_plan(
            handle,
            [(_count(shape), kind, read, write) for shape, kind, read, write in words],
            _OPS[op],
            op == "average",
            bucket_bytes,
            fuse_bytes,
            thread,
            kept(*map(_memory, tensors), communicator),  # by the numbers of the tensors
        )
        end_with_program(self)

    @property
    def nodes(self) -> int:
        """That the ranks are on; 0 where MPI itself reduces."""
        return self._core.nodes()

    @property
    def has_thread(self) -> bool:
        return self._core.has_thread()

    @property
    def buckets(self) -> int:
        return self._core.buckets()

    def bucket_of(self, tensor: int) -> int:
        return self._core.bucket_of(tensor)

    def bind(self, tensor: int, *arrays: Any) -> None:
        """Sets other arrays for a tensor: one (in place), or input and output; without arrays, the
        plan's memory."""
        shape, kind = self._shape_of(tensor)
        if len(arrays) > 2:
            raise ArgumentError(f"arrays: {len(arrays)}, expected at most an input and an output")
        read, write = 0, 0
        if arrays:
            given = arrays[0] if len(arrays) == 1 else arrays
            other, other_kind, read, write = _tensor_words(given, tensor)
            if (_count(other), other_kind) != (_count(shape), kind):
                raise ArgumentError(
                    f"arrays: {_count(other)} elements of {_name(other_kind)}, expected "
                    f"{_count(shape)} of {_name(kind)}, as tensor {tensor} has"
                )
        self._core.bind(tensor, read, write, _memory(arrays))

    def data(self, tensor: int) -> Array | None:
        """The plan's memory of a tensor, in its shape; what is written there is not copied. None
        where it has none. Elements of bfloat16 are seen as uint16. The array stays valid when the
        plan is closed."""
        shape, kind = self._shape_of(tensor)
        address = self._core.data(tensor)
        if address == 0:
            return None
        dtype = np.dtype(np.uint16 if kind == _BFLOAT16 else _name(kind))
        return self._core.view(address, _count(shape) * dtype.itemsize).view(dtype).reshape(shape)

    def _shape_of(self, tensor: int) -> tuple[tuple[int, ...], int]:
        try:
            if operator.index(tensor) >= 0:
                return self._shapes[tensor]
        except (TypeError, IndexError):
            pass
        raise ArgumentError(f"tensor: {tensor!r}, expected 0 to {len(self._shapes) - 1}")

    def start(self, bucket: int | None = None) -> PendingReduction:
        """Starts a bucket, or all that are not under way."""
        core = self._core.start_all() if bucket is None else self._core.start(bucket)
        return PendingReduction(self, core)

    def ready(self, tensor: int) -> None:
        """Tells that a tensor is ready. A bucket starts when all its tensors are, and all buckets
        before it have been started."""
        self._core.ready(tensor)

    def test(self) -> bool:
        """True when nothing is under way."""
        return self._core.test()

    def wait(self) -> None:
        """Ends a round: waits for all buckets."""
        self._core.wait()

    def reduce(self) -> None:
        """start() and wait()."""
        self._core.reduce()

    def close(self) -> None:
        """Waits for what was started and gives memory and thread back; memory that data() has
        shown, once no array of it is used any more. Collective. An ArgumentError while another
        thread is in a call of the plan."""
        self._core.close()


@contextlib.contextmanager
def _refusing_jointly(handle: int | None) -> Iterator[None]:
    """Tells the other ranks of an error that one rank finds in its arrays, since they would wait
    for it: the rank takes part in the collective check with a plan that is refused."""
    try:
        yield
    except Exception:
        with contextlib.suppress(Error):
            _core.reduction_plan(handle, [(0, -1, 0, 0)], _OPS["sum"], False, 1, 0, False, ())
        raise


def _memory(given: Tensor) -> Any:
    """What has the memory of a tensor as it was given."""
    if isinstance(given, tuple):
        return tuple(map(_memory, given))
    return given.array if isinstance(given, as_bfloat16) else given


def _name(kind: int) -> str:
    return next((name for name, number in _TYPES.items() if number == kind), "no type of ropewalk")


def _count(shape: Iterable[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _sizes(bucket_bytes: int, fuse_bytes: int) -> None:
    for name, size, least in (("bucket_bytes", bucket_bytes, 1), ("fuse_bytes", fuse_bytes, 0)):
        if not isinstance(size, (int, np.integer)) or not least <= size < 1 << 62:
            raise ArgumentError(f"{name}: {size!r}, expected a number of bytes from {least}")


def _tensor_words(given: Any, index: int) -> tuple[tuple[int, ...], int, int, int]:
    """(shape, type, address of the input or 0, address of the output or 0)"""
    if not isinstance(given, tuple):
        shape, kind, address = _described(given, index, writable=True)
        return shape, kind, 0, address
    if len(given) != 2:
        raise ArgumentError(
            f"tensors: number {index} has {len(given)} parts, expected an array, (input, output) "
            "or (shape, dtype)"
        )
    if isinstance(given[1], (str, type, np.dtype)):
        return _shape(given[0], index), _kind(given[1], index), 0, 0
    shape, kind, read = _described(given[0], index, writable=False)
    other, other_kind, write = _described(given[1], index, writable=True)
    if (_count(shape), kind) != (_count(other), other_kind):
        raise ArgumentError(
            f"tensors: number {index} has an input of {_count(shape)} {_name(kind)} and an output "
            f"of {_count(other)} {_name(other_kind)}, expected the same"
        )
    return shape, kind, read, write


def _shape(given: Any, index: int) -> tuple[int, ...]:
    try:
        shape = tuple(map(operator.index, given if np.ndim(given) else (given,)))
    except (TypeError, ValueError):
        shape = (-1,)
    if min(shape, default=0) < 0 or _count(shape) >= 1 << 60:
        raise ArgumentError(f"tensors: number {index} has shape {given!r}, expected extents")
    return shape


def _kind(dtype: Any, index: int) -> int:
    try:
        name = dtype if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype).name
    except TypeError:  # no type of NumPy
        name = repr(dtype)
    if name not in _TYPES:
        raise ArgumentError(
            f"tensors: number {index} has dtype {name}, expected one of {', '.join(_TYPES)}"
        )
    return _TYPES[name]


def _described(array: Any, index: int, writable: bool) -> tuple[tuple[int, ...], int, int]:
    """(shape, type, address) of an array of the caller's."""
    kind = None
    if isinstance(array, as_bfloat16):
        array, kind = array.array, _BFLOAT16
    elif isinstance(array, np.ndarray) and array.dtype.name == "bfloat16":  # of ml_dtypes
        array, kind = array.view(np.uint16), _BFLOAT16
    describe = _core.describe_output if writable else _core.describe_input
    try:
        address, count, found, contiguous, on_cpu = describe(array)
    except TypeError:
        raise ArgumentError(
            f"tensors: number {index} is {_what(array)}, expected "
            f"{'a writable' if writable else 'an'} array with the buffer protocol or DLPack"
        ) from None
    if is_lazy(array):
        raise ArgumentError(
            f"tensors: number {index} is a lazily conjugated or negated tensor, whose memory holds "
            "other numbers, expected one that holds its elements; use resolve_conj().resolve_neg()"
        )
    if not on_cpu:
        raise ArgumentError(f"tensors: number {index} is not in the memory of the CPU; copy it")
    if not contiguous:
        raise ArgumentError(f"tensors: number {index} is not contiguous, expected row-major order")
    if found < 0:
        raise ArgumentError(
            f"tensors: number {index} has a dtype that is none of {', '.join(_TYPES)}"
        )
    shape = tuple(getattr(array, "shape", (count,)))
    return shape, found if kind is None else kind, address


def _what(array: object) -> str:
    if isinstance(array, np.ndarray):
        return f"an array of {array.dtype}" + ("" if array.flags.writeable else ", read-only")
    return type(array).__name__
