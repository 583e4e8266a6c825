"""Endpoints and Cartesian halo exchange over NumPy arrays.

A communicator is an mpi4py one, or None for the world; where nobody has started MPI, None starts
it, and it ends with the program. Arrays are exchanged where they lie and kept alive as long as what
uses them.
"""

import atexit
import contextlib
import sys

import numpy as np

from . import _core
from .exceptions import ArgumentError, Error


def _end_mpi():
    # After an uncaught exception other ranks may wait for this one, and to end MPI or close
    # endpoints would be to wait for them: the launcher ends them when it sees this rank gone.
    if hasattr(sys, "last_value"):
        _core.abandon()
    else:
        _core.end_mpi()


atexit.register(_end_mpi)


def _handle(communicator):
    """The word that stands for an mpi4py communicator; None stays None."""
    if communicator is None or isinstance(communicator, int):
        return communicator
    module = sys.modules.get("mpi4py.MPI")
    if module is None or not isinstance(communicator, module.Comm):
        raise ArgumentError(
            f"communicator: {type(communicator).__name__}, expected one of mpi4py, or None"
        )
    import ctypes

    size = module._sizeof(communicator)
    word = ctypes.string_at(module._addressof(communicator), size)
    return int.from_bytes(word, sys.byteorder)


def _contiguous(array, name, writable=False):
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


def _address(array):
    return array.__array_interface__["data"][0]


class EndpointSet:
    """Lanes from this rank into MPI, each a comm thread with a communicator of its own.

    Collective over the communicator, and so is close(). lanes 0 means ROPEWALK_LANES, else what
    the free cores give.
    """

    def __init__(self, communicator=None, lanes=0, *, threads=True, pin=True, split_bytes=1 << 20):
        self._core = _core.endpoints(_handle(communicator), lanes, threads, pin, split_bytes)

    @property
    def lanes(self):
        return self._core.lanes()

    @property
    def rank(self):
        return self._core.rank()

    @property
    def size(self):
        return self._core.size()

    @property
    def has_threads(self):
        return self._core.has_threads()

    def send(self, array, destination, tag=0, lane=0):
        """Sends on a lane, and returns when the array may be changed."""
        _contiguous(array, "array")
        self._core.send(lane, _address(array), array.nbytes, destination, tag)

    def receive(self, array, source, tag=0, lane=0):
        """Receives on a lane into the array."""
        _contiguous(array, "array", writable=True)
        self._core.receive(lane, _address(array), array.nbytes, source, tag)

    def plan(self, sends=(), receives=()):
        """Messages that are sent again and again; each is (array, peer), (array, peer, tag) or
        (array, peer, tag, lane)."""
        return MessagePlan(self, sends, receives)

    def close(self):
        """Ends the comm threads and frees the communicators. Collective."""
        self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:  # after an error on this rank the others may not come
            self.close()


class MessagePlan:
    """Made by EndpointSet.plan. start, test and wait allocate nothing."""

    def __init__(self, endpoints, sends, receives):
        self._kept = [endpoints]
        words = [self._words(True, message) for message in sends]
        words += [self._words(False, message) for message in receives]
        self._core = endpoints._core.plan(words)

    def _words(self, is_send, message):
        array, peer, *rest = message
        tag = rest[0] if rest else 0
        lane = rest[1] if len(rest) > 1 else -1
        _contiguous(array, "sends" if is_send else "receives", writable=not is_send)
        self._kept.append(array)
        return is_send, _address(array), array.nbytes, peer, tag, lane, 0

    def start(self, strategy="concurrent"):
        self._core.start(strategy)

    def test(self):
        """True when all is complete."""
        return self._core.test()

    def wait(self):
        self._core.wait()

    @property
    def send_bytes(self):
        return self._core.send_bytes()


class CartesianGrid:
    """A grid of ranks, 1 to 6 dimensions, numbered row-major. Collective: all ranks pass the
    same."""

    def __init__(self, extents, periodic=True, communicator=None):
        extents = [int(extent) for extent in extents]
        if isinstance(periodic, (bool, np.bool_)):
            periodic = [periodic] * len(extents)
        self._core = _core.grid(_handle(communicator), extents, [bool(one) for one in periodic])

    @property
    def dimensions(self):
        return len(self.extents)

    @property
    def extents(self):
        return tuple(self._core.extents())

    @property
    def periodic(self):
        return tuple(self._core.periodic())

    @property
    def coordinates(self):
        return tuple(self._core.coordinates())

    @property
    def rank(self):
        return self._core.rank()

    @property
    def size(self):
        return self._core.size()

    def neighbour(self, offset):
        """Rank at coordinates + offset, or None beyond an open boundary."""
        rank = self._core.neighbour([int(one) for one in offset])
        return None if rank < 0 else rank


class Halo:
    """Exchange of the ghost layers of arrays on a grid of ranks.

    An array has the grid's dimensions first, ghosts included; further axes belong to an element.
    `ghost` is the width on both sides, one number or one a dimension (0 leaves it alone). The
    plan is made here, once and collectively; between start() and wait() the interior may be read
    but not the ghosts.
    """

    def __init__(self, grid, endpoints, arrays, ghost=1, *, strategy="automatic", corners=False):
        if isinstance(arrays, np.ndarray):
            arrays = [arrays]
        self._kept = [grid, endpoints, *arrays]
        with _refusing_jointly(grid, endpoints):
            words = [_field_words(grid.dimensions, array, ghost) for array in arrays]
        self._core = _core.field_halo(grid._core, endpoints._core, words, strategy, corners)

    @classmethod
    def faces(cls, grid, endpoints, send, receive, *, strategy="automatic"):
        """Contiguous packets to + and - of each dimension, as lattice codes pass them: send[2d]
        goes towards +, receive[2d] comes from there. None leaves a direction out."""
        halo = cls.__new__(cls)
        halo._kept = [grid, endpoints, *send, *receive]
        with _refusing_jointly(grid, endpoints):
            if len(send) != len(receive):
                raise ArgumentError(f"receive: {len(receive)} packets, expected {len(send)}")
            sizes = [_face_bytes(*pair) for pair in zip(send, receive, strict=True)]
        addresses = [
            [0 if one is None else _address(one) for one in side] for side in (send, receive)
        ]
        halo._core = _core.face_halo(grid._core, endpoints._core, *addresses, sizes, strategy)
        return halo

    def start(self):
        self._core.start()

    def test(self):
        """True when all is complete."""
        return self._core.test()

    def wait(self):
        self._core.wait()

    def exchange(self):
        """start() and wait()."""
        self._core.exchange()

    @property
    def strategy(self):
        """As chosen, where it was automatic."""
        return self._core.strategy()

    @property
    def send_bytes(self):
        """Of this rank in one exchange."""
        return self._core.send_bytes()


@contextlib.contextmanager
def _refusing_jointly(grid, endpoints):
    """What one rank finds wrong in its arrays, the others must hear of, or they would wait for it:
    it takes part in the collective check with a field that cannot be."""
    try:
        yield
    except ArgumentError:
        with contextlib.suppress(Error):
            _core.field_halo(grid._core, endpoints._core, [(0, 0, [], [])], "sequential", False)
        raise


def _field_words(dimensions, array, ghost):
    _contiguous(array, "arrays", writable=True)
    if array.ndim < dimensions:
        raise ArgumentError(
            f"arrays: {array.ndim} dimensions, expected the grid's {dimensions} or more"
        )
    widths = [int(ghost)] * dimensions if np.ndim(ghost) == 0 else [int(one) for one in ghost]
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


def _face_bytes(send, receive):
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
