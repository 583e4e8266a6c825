"""What the backend raises. Each is what ropewalk raises elsewhere, and also the RuntimeError that
programs written for torch's own backends expect."""

from __future__ import annotations

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


def for_torch(error: Exception) -> Exception:
    """Returns the same error as one that is a RuntimeError, too."""
    kind = _ALSO.get(type(error))
    return error if kind is None else kind(*error.args).with_traceback(error.__traceback__)
