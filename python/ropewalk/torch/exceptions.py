"""What the backend raises. Each is what ropewalk raises elsewhere, and also the RuntimeError that
programs written for torch's own backends expect."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch.distributed as dist

from .. import exceptions


class ArgumentError(exceptions.ArgumentError, RuntimeError):
    """A value the caller passed; the text begins with the argument's name."""


class MemoryError(exceptions.MemoryError, RuntimeError):
    """Memory of the wanted kind cannot be had."""


class SystemError(exceptions.SystemError, RuntimeError):
    """A system call failed."""


class PeerDeadError(exceptions.PeerDeadError, dist.DistBackendError):
    """Another rank died; the text names it."""


# The other classes are RuntimeErrors by themselves.
_ALSO: dict[type[Exception], type[Exception]] = {
    exceptions.ArgumentError: ArgumentError,
    exceptions.MemoryError: MemoryError,
    exceptions.SystemError: SystemError,
    exceptions.PeerDeadError: PeerDeadError,
}


_END = re.compile(r"this communicator cannot be used any more[;:] end the job")
_RANK = re.compile(r"\brank (\d+)")


def in_words_of_torch(text: str, members: Sequence[int]) -> str:
    """Says of a process group what the text says of a communicator. `members` are the ranks in the
    job of the ranks of the group; none where they are the same."""
    text = _END.sub(
        "this process group cannot be used any more; destroy it and make a new one", text
    )
    return with_ranks_of_the_job(text, [int(rank) for rank in _RANK.findall(text)], members)


def with_ranks_of_the_job(text: str, named: Sequence[int], members: Sequence[int]) -> str:
    """Adds to the text which ranks of the job the ranks of the group are that it names."""
    ranks = sorted(rank for rank in set(named) if rank < len(members))
    known = [f"rank {rank} is rank {members[rank]}" for rank in ranks]
    return f"{text} (of the job, {', '.join(known)})" if known else text


def for_torch(error: Exception, members: Sequence[int] = ()) -> Exception:
    """Returns the same error as one that is a RuntimeError, too."""
    kind = _ALSO.get(type(error))
    if kind is None or not error.args:
        return error
    text = in_words_of_torch(str(error.args[0]), members)
    return kind(text, *error.args[1:]).with_traceback(error.__traceback__)
