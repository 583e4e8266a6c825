"""What ropewalk raises. Each is also the built-in exception that fits, so that either is caught.

The text names the argument or place, what was found, what was expected, and what to do.
"""

import builtins


class Error(Exception):
    """Any error of ropewalk."""


class ArgumentError(Error, ValueError):
    """A value the caller passed; the text begins with the argument's name."""


class MemoryError(Error, builtins.MemoryError):
    """Memory of the wanted kind cannot be had."""


class SystemError(Error, OSError):
    """A system call failed."""


class MpiError(Error, RuntimeError):
    """An MPI call failed, or no MPI is loaded."""


class PeerDeadError(Error, ConnectionError):
    """Another rank died; the text names it."""


class UnsupportedError(Error, NotImplementedError):
    """This machine or MPI cannot do it."""


class InternalError(Error, RuntimeError):
    """A broken invariant of ropewalk itself."""
