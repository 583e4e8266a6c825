"""The three standard streams, where the caller has closed one, or where output finds no room."""

import errno
import os
import sys

# What a write to standard output may end with; other errors are somebody else's.
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def open_closed() -> None:
    """Opens /dev/null on each of the three that is closed: nothing else may get its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            _open_nothing(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def drop_output() -> None:
    """What is still to be written to standard output goes nowhere."""
    _open_nothing(1)


def is_of_output(error: OSError) -> bool:
    """Whether it says that standard output cannot be written."""
    return error.filename is None and error.errno in _OF_OUTPUT


def _open_nothing(descriptor: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    if nothing != descriptor:
        os.dup2(nothing, descriptor)
        os.close(nothing)
    os.set_inheritable(descriptor, True)
