"""Messages between two ranks, by whichever mechanism is fastest for them.

    with ropewalk.Channel() as channel:
        if channel.rank == 0:
            channel.send(array, 1)
        if channel.rank == 1:
            status = channel.receive(array, 0)  # its sender, tag and length

Inside a node messages go through shared memory, between nodes through MPI. Arrays are NumPy's, or
anything that speaks the buffer protocol or DLPack on the CPU, as for ropewalk.Communicator; or
arrays in memory of a CUDA device, by DLPack or __cuda_array_interface__ (CuPy, Numba, PyTorch),
where the program has used the device before it makes the channel. Work on such an array must have
ended before a message begins: synchronise its stream.
"""

from __future__ import annotations

import atexit
import contextlib
import enum
import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from . import _core
from ._shared import OfRanks, Pending
from .exceptions import ArgumentError
from .exchange import _handle

if TYPE_CHECKING:
    from ._given import ArrayLike
    from .exchange import CommunicatorLike


class Wildcard(enum.Enum):
    """What leaves a source or a tag open. They are no numbers: -1 and -2 stand for any rank in one
    MPI and for no rank in the other, and mpi4py has the numbers of its MPI."""

    any_source = enum.auto()
    any_tag = enum.auto()

    def __repr__(self) -> str:
        return f"ropewalk.{self.name}"


any_source: Final = Wildcard.any_source
"""In place of a source: whichever rank's message comes first."""
any_tag: Final = Wildcard.any_tag
"""In place of the tag of a receive: any of them."""

Source = int | Literal[Wildcard.any_source] | None
Tag = int | Literal[Wildcard.any_tag]

_Result = TypeVar("_Result")

_open: weakref.WeakSet[Channel] = weakref.WeakSet()


def _end_channels() -> None:
    # This runs before MPI ends, which _ending.py sees to, because a channel over nodes has a
    # communicator of MPI's. After an uncaught exception that communicator is not freed either.
    if hasattr(sys, "last_value"):
        return
    for channel in list(_open):
        with contextlib.suppress(ArgumentError):  # another thread is in a call of it
            channel._core.abort()


atexit.register(_end_channels)


@dataclass(frozen=True, slots=True)
class MessageStatus:
    """What a message was: who has sent it, with which tag, how long it is."""

    source: int | None
    """None for a receive from no rank."""
    tag: int
    bytes: int
    count: int | None = None
    """Whole elements of the array it was received into; None for a probe, which has no array."""


class PendingMessage(Pending[_Result]):
    """A message under way, as start_send() and start_receive() give it.

    Its array belongs to it until it is complete. A receive that is dropped before any message has
    come for it is taken back, as by cancel(); a coroutine that is cancelled so ends at once. Any
    other message that is dropped is waited for. An error of the message itself is raised by every
    test(), wait() and result().
    """

    def __init__(self, core: _core.Message, is_send: bool, what: str) -> None:
        self._core: _core.Message = core
        self._is_send = is_send
        self._what = what

    def _result(self) -> _Result:
        given: Any = None if self._is_send else MessageStatus(*self._core.status())
        result: _Result = given
        return result

    def done(self) -> bool:
        """True when it is complete, or has failed. Moves messages on; never raises."""
        return self._core.done()

    def cancel(self) -> bool:
        """Takes back a receive that no message has come for yet, and returns True: the message goes
        to another receive, and wait() and result() of this one raise an ArgumentError. False: it is
        a send, is complete, or is on its way into the array; wait for it."""
        return self._core.cancel()

    def __repr__(self) -> str:
        return f"<ropewalk.{type(self).__name__}, {self._what}, {self._core.state()}>"


class PersistentMessage(PendingMessage[_Result]):
    """A message that is sent or received again and again, with the same array, rank and tag, as
    prepare_send() and prepare_receive() give it. Its array may be changed between two of them."""

    def start(self) -> None:
        """Begins the next one. An ArgumentError while the one before is under way."""
        self._core.start()

    def __repr__(self) -> str:
        state = self._core.state()
        how = "not under way" if state == "complete" else state
        return f"<ropewalk.PersistentMessage, {self._what}, {how}>"


class Channel(OfRanks):
    """Messages among the ranks of an MPI communicator, on one node or several.

    `comm` is a communicator of ropewalk or mpi4py, or None for the world; where nobody has started
    MPI, None starts it. Collective. Close it when every message has been waited for, or leave its
    `with`; no rank waits in that. Where an exception leaves the `with`, or the program ends,
    messages under way are taken back.

    As in MPI, messages from one rank to another are matched in the order they were sent, by tag; a
    receive may leave its source, its tag or both open: any_source, any_tag. They meet neither
    messages of MPI nor those of another channel. Where a rank is None, as CartesianGrid.neighbour()
    gives it beyond an open boundary, nothing is sent or received. A message may be shorter than the
    array of its receive; one that is longer is dropped, and the receive raises an ArgumentError.
    Who waits for a rank that has died, or has closed its channel, gets a PeerDeadError.

    `threads` (1 to 64; each rank may have another number) is how many threads of this rank copy a
    message of 256 KiB and more, the caller among them. They pay where ranks leave cores idle.

    While a rank waits, its other Python threads run. A call while another thread is in one is an
    ArgumentError: make a channel for each thread.
    """

    def __init__(self, comm: CommunicatorLike = None, *, threads: int = 1) -> None:
        self._core: _core.Channel = _core.channel(_handle(comm), threads)
        _open.add(self)

    # ---- what it is

    def is_near(self, rank: int) -> bool:
        """True where messages to this rank go through shared memory; the others go to MPI."""
        return self._core.is_near(rank)

    @property
    def reason(self) -> str:
        """Why no message goes through shared memory; empty where some do."""
        return self._core.reason()

    @property
    def slot_bytes(self) -> int:
        """Up to so many bytes a message is copied on its way, and its send does not wait."""
        return self._core.slot_bytes()

    @property
    def last_mechanism(self) -> str:
        """How the last message that this rank has received came: inlined, slots, receiver, sender,
        both, pipeline, threaded, mpi, none."""
        return self._core.last_mechanism()

    # ---- messages

    def send(self, array: ArrayLike, destination: int | None, tag: int = 0) -> None:
        """Returns when the array may be changed again. A send of more than slot_bytes may wait for
        its receive."""
        self._core.send(array, destination, tag)

    def receive(self, out: ArrayLike, source: Source, tag: Tag = 0) -> MessageStatus:
        """Returns when the message is in `out`."""
        return MessageStatus(*self._core.receive(out, source, tag))

    def send_receive(
        self,
        array: ArrayLike,
        destination: int | None,
        out: ArrayLike,
        source: Source,
        send_tag: int = 0,
        receive_tag: Tag = 0,
    ) -> MessageStatus:
        """Both at once, in whatever order the two come. The arrays must not overlap."""
        words = self._core.send_receive(array, destination, out, source, send_tag, receive_tag)
        return MessageStatus(*words)

    def start_send(
        self, array: ArrayLike, destination: int | None, tag: int = 0
    ) -> PendingMessage[None]:
        """send() that goes on while this rank computes."""
        core = self._core.start_send(array, destination, tag)
        return PendingMessage(core, True, f"send to {_rank(destination)}, tag {tag}")

    def start_receive(
        self, out: ArrayLike, source: Source, tag: Tag = 0
    ) -> PendingMessage[MessageStatus]:
        """receive() that goes on while this rank computes."""
        core = self._core.start_receive(out, source, tag)
        return PendingMessage(core, False, f"receive from {_rank(source)}, tag {_tag(tag)}")

    def prepare_send(
        self, array: ArrayLike, destination: int | None, tag: int = 0
    ) -> PersistentMessage[None]:
        """A send to be started again and again. The array is read where it lies, so it must be
        row-major."""
        core = self._core.prepare_send(array, destination, tag)
        return PersistentMessage(core, True, f"send to {_rank(destination)}, tag {tag}")

    def prepare_receive(
        self, out: ArrayLike, source: Source, tag: Tag = 0
    ) -> PersistentMessage[MessageStatus]:
        """A receive to be started again and again."""
        core = self._core.prepare_receive(out, source, tag)
        return PersistentMessage(core, False, f"receive from {_rank(source)}, tag {_tag(tag)}")

    def probe(
        self, source: int | Literal[Wildcard.any_source] = any_source, tag: Tag = any_tag
    ) -> MessageStatus | None:
        """The first message that a receive from there with this tag would take, if one has come."""
        found = self._core.probe(source, tag)
        return None if found is None else MessageStatus(*found)

    # ---- its end

    def close(self) -> None:
        """Gives memory back. An ArgumentError while a message is under way."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self._core.abort()  # nothing is left to do where it is closed

    def __repr__(self) -> str:
        if self._core.closed():
            return "<ropewalk.Channel, closed>"
        near = sum(map(self.is_near, range(self.size)))
        how = f"{near} by shared memory" if near else f"by MPI: {self.reason}"
        return f"<ropewalk.Channel, rank {self.rank} of {self.size}, {how}>"


def _rank(given: Source) -> str:
    if given is None:
        return "no rank"
    return "any rank" if given is any_source else str(given)


def _tag(tag: Tag) -> str:
    return "any" if tag is any_tag else str(tag)
