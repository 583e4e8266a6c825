"""Endpoints and Cartesian halo exchange over NumPy arrays.

A communicator is one of mpi4py or ropewalk, or None for the world; where nobody has started MPI,
None starts it, and it ends with the program. Arrays are exchanged where they lie and kept alive as
long as what uses them.
"""

from __future__ import annotations

import contextlib
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from . import _core, _ending  # noqa: F401  (which ends MPI with the program)
from ._shared import ClosedTogether, OfRanks, kept
from .arrays import Array, array_of
from .exceptions import ArgumentError, Error

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import DTypeLike

    from .collectives import Communicator

    CommunicatorLike: TypeAlias = MPI.Comm | Communicator | None
    # A message is (array, peer), with the tag as well, or with tag and lane.
    Message = tuple[Array, int] | tuple[Array, int, int] | tuple[Array, int, int, int]


def _handle(communicator: CommunicatorLike) -> int | None:
    """The machine word of an mpi4py communicator's handle; None stays None."""
    if communicator is None:
        return None
    if hasattr(communicator, "mpi_handle"):  # one of ropewalk
        handle: int | None = communicator.mpi_handle()
        return handle
    module = sys.modules.get("mpi4py.MPI")
    if module is None or not isinstance(communicator, module.Comm):
        raise ArgumentError(
            f"communicator: {type(communicator).__name__}, expected one of mpi4py or ropewalk, "
            "or None"
        )
    import ctypes

    size = module._sizeof(communicator)
    word = ctypes.string_at(module._addressof(communicator), size)
    return int.from_bytes(word, sys.byteorder)


def _contiguous(array: object, name: str, writable: bool = False) -> Array:
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{name}: {type(array).__name__}, expected a NumPy array")
    if array.dtype.hasobject:
        raise ArgumentError(f"{name}: dtype {array.dtype} holds Python objects")
    if not array.flags.c_contiguous:
        raise ArgumentError(
            f"{name}: not contiguous (strides {array.strides}), expected row-major order; "
            "use numpy.ascontiguousarray or ropewalk.empty"
        )
    if writable and not array.flags.writeable:
        raise ArgumentError(f"{name}: read-only, expected an array that can be received into")
    return array


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class EndpointSet(OfRanks, ClosedTogether):
    """Lanes from this rank into MPI, each a comm thread with a communicator of its own.

    Collective over the communicator, and so is close(). With lanes 0, ROPEWALK_LANES gives the
    number, or else the number of free cores does.
    """

    def __init__(
        self,
        communicator: CommunicatorLike = None,
        lanes: int = 0,
        *,
        threads: bool = True,
        pin: bool = True,
        split_bytes: int | None = None,
    ) -> None:
        handle = _handle(communicator)
        with _refusing_jointly(lambda: _core.endpoints(handle, -1, False, False, 1, ())):
            lanes = _whole("lanes", lanes, _LARGEST_INT)
            if split_bytes is not None:
                split_bytes = _whole("split_bytes", split_bytes, sys.maxsize)
            if split_bytes is not None and split_bytes < 0:
                raise ArgumentError(f"split_bytes: {split_bytes}, expected 0 or more")
            threads, pin = bool(threads), bool(pin)
        self._core: _core.Endpoints = _core.endpoints(
            handle, lanes, threads, pin, split_bytes, kept(communicator)
        )

    @property
    def lanes(self) -> int:
        return self._core.lanes()

    @property
    def has_threads(self) -> bool:
        return self._core.has_threads()

    def send(self, array: Array, destination: int, tag: int = 0, lane: int = 0) -> None:
        """Sends on a lane, and returns when the array may be changed."""
        _contiguous(array, "array")
        self._core.send(lane, _address(array), array.nbytes, destination, tag)

    def receive(self, array: Array, source: int, tag: int = 0, lane: int = 0) -> None:
        """Receives on a lane into the array."""
        _contiguous(array, "array", writable=True)
        self._core.receive(lane, _address(array), array.nbytes, source, tag)

    def plan(self, sends: Iterable[Message] = (), receives: Iterable[Message] = ()) -> MessagePlan:
        """Messages that are sent again and again; each is (array, peer), (array, peer, tag) or
        (array, peer, tag, lane)."""
        return MessagePlan(self, sends, receives)

    def __repr__(self) -> str:
        kind = "with threads" if self.has_threads else "without threads"
        ranks = f"rank {self.rank} of {self.size}"
        return f"<ropewalk.EndpointSet, {ranks}, {self.lanes} lanes {kind}>"

    def close(self) -> None:
        """Ends the comm threads and frees the communicators. Collective."""
        self._core.close()


class MessagePlan:
    """Made by EndpointSet.plan. start, test and wait allocate nothing."""

    def __init__(
        self, endpoints: EndpointSet, sends: Iterable[Message], receives: Iterable[Message]
    ) -> None:
        arrays: list[Array] = []
        words = [self._words(True, message, arrays) for message in sends]
        words += [self._words(False, message, arrays) for message in receives]
        self._core = endpoints._core.plan(words, kept(endpoints, *arrays))

    @staticmethod
    def _words(is_send: bool, message: Message, arrays: list[Array]) -> _core.MessageWords:
        array, peer, *rest = message
        tag = rest[0] if rest else 0
        lane = rest[1] if len(rest) > 1 else -1
        _contiguous(array, "sends" if is_send else "receives", writable=not is_send)
        arrays.append(array)
        return is_send, _address(array), array.nbytes, peer, tag, lane, 0

    def start(self, strategy: str = "concurrent") -> None:
        self._core.start(strategy)

    def test(self) -> bool:
        """True when all is complete."""
        return self._core.test()

    def wait(self) -> None:
        self._core.wait()

    @property
    def send_bytes(self) -> int:
        return self._core.send_bytes()


class CartesianGrid(OfRanks):
    """A grid of ranks, 1 to 6 dimensions. Collective: all ranks pass the same.

    Ranks stand row-major, by their numbers. `by_node` gives each node a compact block of the grid
    where that is possible, and in it each cache domain; ranks keep their numbers.
    """

    def __init__(
        self,
        extents: Sequence[int],
        periodic: bool | Sequence[bool] = True,
        communicator: CommunicatorLike = None,
        *,
        by_node: bool = False,
    ) -> None:
        handle = _handle(communicator)
        with _refusing_jointly(lambda: _core.grid(handle, [], [])):
            extents = [_whole("extents", extent, _LARGEST_INT) for extent in extents]
            if isinstance(periodic, (bool, np.bool_)):
                periodic = [periodic] * len(extents)
            periodic = [bool(one) for one in periodic]
        self._core: _core.Grid = _core.grid(handle, extents, periodic, bool(by_node))
        self._given = communicator  # is kept, since halos on this grid use it

    def __repr__(self) -> str:
        extents = " x ".join(map(str, self.extents))
        return f"<ropewalk.CartesianGrid, {extents}, this rank at {self.coordinates}>"

    @property
    def dimensions(self) -> int:
        return len(self.extents)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(self._core.extents())

    @property
    def periodic(self) -> tuple[bool, ...]:
        return tuple(self._core.periodic())

    @property
    def coordinates(self) -> tuple[int, ...]:
        return tuple(self._core.coordinates())

    def neighbour(self, offset: Sequence[int]) -> int | None:
        """Rank at coordinates + offset, or None beyond an open boundary."""
        rank = self._core.neighbour([int(one) for one in offset])
        return None if rank < 0 else rank


class Halo:
    """Exchange of the ghost layers of arrays on a grid of ranks.

    An array has the grid's dimensions first, ghosts included; further axes belong to an element.
    `ghost` is the width on both sides, one number or one a dimension (0 leaves it alone). The
    plan is made here, once and collectively; between start() and wait() the interior may be read
    but not the ghosts. `threads` threads of the rank, 0: one a core of its own, share the copies:
    the caller's, which is always the same, and others that belong to the halo.
    """

    _faces: Sequence[tuple[tuple[int, ...], np.dtype[Any]]] = ()  # of buffers()

    def __init__(
        self,
        grid: CartesianGrid,
        endpoints: EndpointSet,
        arrays: Array | Iterable[Array],
        ghost: int | Sequence[int] = 1,
        *,
        strategy: str = "automatic",
        corners: bool = False,
        threads: int = 1,
    ) -> None:
        with _refusing_halo(grid, endpoints):
            arrays = [arrays] if isinstance(arrays, np.ndarray) else list(arrays)
            words = [_field_words(grid.dimensions, array, ghost) for array in arrays]
            _core.check_strategy(strategy)
            corners = bool(corners)
            threads = _whole("threads", threads, _LARGEST_INT)
        keep = kept(grid, endpoints, *arrays)
        self._core = _core.field_halo(
            grid._core, endpoints._core, words, strategy, corners, threads, keep
        )

    @classmethod
    def faces(
        cls,
        grid: CartesianGrid,
        endpoints: EndpointSet,
        send: Iterable[Array | None],
        receive: Iterable[Array | None],
        *,
        strategy: str = "automatic",
        threads: int = 1,
    ) -> Self:
        """Contiguous packets to + and - of each dimension, as lattice codes pass them: send[2d]
        goes towards +, receive[2d] comes from there. None leaves a direction out."""
        halo = cls.__new__(cls)
        with _refusing_halo(grid, endpoints):
            send, receive = list(send), list(receive)
            if len(send) != len(receive):
                raise ArgumentError(f"receive: {len(receive)} packets, expected {len(send)}")
            sizes = [_face_bytes(*pair) for pair in zip(send, receive, strict=True)]
            _core.check_strategy(strategy)
            threads = _whole("threads", threads, _LARGEST_INT)
        keep = kept(grid, endpoints, *send, *receive)
        sent, received = (
            [0 if one is None else _address(one) for one in side] for side in (send, receive)
        )
        halo._core = _core.face_halo(
            grid._core, endpoints._core, sent, received, sizes, strategy, threads, keep
        )
        return halo

    @classmethod
    def buffers(
        cls,
        grid: CartesianGrid,
        endpoints: EndpointSet,
        shapes: Iterable[int | Sequence[int] | None],
        dtype: DTypeLike = np.float64,
        *,
        strategy: str = "automatic",
        parts: int = 0,
        threads: int = 1,
    ) -> Self:
        """Faces in memory that the halo owns: shapes[2d] is that of the face towards + of dimension
        d, shapes[2d+1] of the one towards -, None leaves a direction out; both sides of a face have
        as many bytes. Write send_buffer(), exchange(), read receive_buffer(). On one node the
        strategy `put` copies nothing: a face is written where its receiver reads it. With `parts`
        threads hand over pieces of a face by ready(); that is for `put` on one node."""
        halo = cls.__new__(cls)
        with _refusing_halo(grid, endpoints):
            halo._faces = [_face_view(shape, dtype) for shape in shapes]
            sizes = [_count(shape) * kind.itemsize for shape, kind in halo._faces]
            _core.check_strategy(strategy)
            parts = _whole("parts", parts, _LARGEST_INT)
            threads = _whole("threads", threads, _LARGEST_INT)
        halo._core = _core.buffer_halo(
            grid._core, endpoints._core, sizes, strategy, parts, threads, kept(grid, endpoints)
        )
        return halo

    def send_buffer(self, direction: int) -> Array:
        """Where the face of the next exchange is written. It may be elsewhere after each exchange:
        ask again for every one. Of halos made by buffers()."""
        return self._view(direction, self._core.send_buffer, is_writable=True)

    def receive_buffer(self, direction: int) -> Array:
        """What the last exchange has received; to be read before the next start(), and not
        written."""
        return self._view(direction, self._core.receive_buffer, is_writable=False)

    def ready(self, direction: int, part: int) -> None:
        """Hands over a part of send_buffer(direction) that this thread has written: of n bytes in P
        parts, part p begins at byte p * n // P. Between start() and wait(), from any thread, each
        part once; send_buffer() is to be asked for before start()."""
        direction, part = _piece(direction, part)
        self._core.ready(direction, part)

    def arrived(self, direction: int, part: int) -> bool:
        """Whether this part of receive_buffer(direction) may be read. Errors of the exchange are
        raised by test() and wait()."""
        direction, part = _piece(direction, part)
        return self._core.arrived(direction, part)

    @property
    def threads(self) -> int:
        """The number of threads that share the copies, the caller's included."""
        return self._core.threads()

    @property
    def parts(self) -> int:
        """The number of parts of each face; 0: faces are handed over as a whole."""
        return self._core.parts()

    def _view(self, direction: int, address: Callable[[int], int], *, is_writable: bool) -> Array:
        if not self._faces:
            raise ArgumentError("direction: this halo has no buffers, expected one of buffers()")
        at = _whole("direction", direction, _LARGEST_INT)
        if not 0 <= at < len(self._faces):
            raise ArgumentError(f"direction: {at}, expected 0 to {len(self._faces) - 1}")
        shape, kind = self._faces[at]
        place = address(at)
        if place == 0 and _count(shape):
            raise ArgumentError(f"direction: {at} has no neighbour, beyond an open boundary")
        if place:
            return array_of(self, place, shape, kind, is_writable=is_writable)
        empty = np.empty(shape, kind)
        empty.flags.writeable = is_writable
        return empty

    def start(self) -> None:
        self._core.start()

    def test(self) -> bool:
        """True when all is complete."""
        return self._core.test()

    def wait(self) -> None:
        self._core.wait()

    def exchange(self) -> None:
        """start() and wait()."""
        self._core.exchange()

    def __repr__(self) -> str:
        return f"<ropewalk.Halo, {self.strategy}, sends {self.send_bytes} bytes>"

    @property
    def strategy(self) -> str:
        """The strategy in use; with `automatic`, the one that was chosen."""
        return self._core.strategy()

    @property
    def send_bytes(self) -> int:
        """The bytes that this rank sends in one exchange."""
        return self._core.send_bytes()

    @property
    def wire_bytes(self) -> int:
        """The part of send_bytes that goes to ranks of other nodes."""
        return self._core.wire_bytes()


def _count(shape: Iterable[int]) -> int:
    return math.prod(shape)


def _face_view(
    shape: int | Sequence[int] | None, dtype: DTypeLike
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of a face; that of no face has no element."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ArgumentError(f"dtype: {kind} holds Python objects, expected plain data")
    if shape is None:
        return (0,), kind
    given: Any = shape
    extents = tuple(
        _whole("shapes", one, sys.maxsize) for one in (given if np.ndim(given) else (given,))
    )
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"shapes: {shape}, expected extents of 0 or more")
    return extents, kind


@contextlib.contextmanager
def _refusing_jointly(refuse: Callable[[], object]) -> Iterator[None]:
    """Tells the other ranks of any error that one rank finds in its arguments, since they would
    wait for it: the rank takes part in their collective check by `refuse`, which asks for something
    impossible. With a wrong communicator nobody can be told."""
    try:
        yield
    except Exception:
        with contextlib.suppress(Error):
            refuse()
        raise


def _refusing_halo(
    grid: CartesianGrid, endpoints: EndpointSet
) -> contextlib.AbstractContextManager[None]:
    _handle(grid._given)  # is open still

    def refuse() -> None:
        words: list[_core.FieldWords] = [(0, 0, [], [])]
        _core.field_halo(grid._core, endpoints._core, words, "sequential", False, 1, ())

    return _refusing_jointly(refuse)


_LARGEST_INT = (1 << 31) - 1


def _whole(name: str, value: Any, most: int) -> int:
    """As an int of C that is no larger; what is too small is the collective check's to say."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}: {value!r}, expected a whole number") from None
    if not -most <= number <= most:
        raise ArgumentError(f"{name}: {number}, expected at most {most}")
    return number


def _piece(direction: int, part: int) -> tuple[int, int]:
    return _whole("direction", direction, _LARGEST_INT), _whole("part", part, _LARGEST_INT)


def _field_words(dimensions: int, array: Array, ghost: int | Sequence[int]) -> _core.FieldWords:
    _contiguous(array, "arrays", writable=True)
    if array.ndim < dimensions:
        raise ArgumentError(
            f"arrays: {array.ndim} dimensions, expected the grid's {dimensions} or more"
        )
    given: Any = [ghost] * dimensions if np.ndim(ghost) == 0 else ghost
    widths = [_whole("ghost", one, _LARGEST_INT) for one in given]
    if len(widths) != dimensions or min(widths) < 0:
        raise ArgumentError(f"ghost: {ghost}, expected {dimensions} widths of 0 or more")
    interior = [
        extent - 2 * width for extent, width in zip(array.shape[:dimensions], widths, strict=True)
    ]
    if min(interior) < 1:
        raise ArgumentError(
            f"ghost: widths {widths} leave no interior of an array of shape {array.shape}"
        )
    element = array.itemsize
    for extent in array.shape[dimensions:]:
        element *= extent
    return _address(array), element, interior, widths


def _face_bytes(send: Array | None, receive: Array | None) -> int:
    if send is None and receive is None:
        return 0
    if send is None or receive is None:
        raise ArgumentError("send, receive: one of a direction's packets is None, expected both")
    _contiguous(send, "send")
    _contiguous(receive, "receive", writable=True)
    if send.nbytes != receive.nbytes:
        raise ArgumentError(
            f"receive: {receive.nbytes} bytes, expected {send.nbytes} as its direction sends"
        )
    return send.nbytes
