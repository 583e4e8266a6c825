"""This module has PyTorch make its large tensors in communication memory.

PyTorch has the memory of its tensors from one library of its own, which calls posix_memalign. Under
an allocator these calls are ours (docs/decisions/0018-torch-allocator-by-imports.md).
"""

from __future__ import annotations

import re
from types import TracebackType

import torch

from .. import _core
from ..exceptions import ArgumentError, UnsupportedError

_LIBRARY = "libc10.so"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)([KMG]?)(?:i?B)?", re.IGNORECASE)
_LEAST = 4096  # blocks of the arena are whole pages
_REMEDY = "make tensors by ropewalk.torch.empty, or start the program under the malloc library"


class Allocator:
    """While it is in use, new tensors of `minimum` bytes and more lie in communication memory."""

    def __init__(self, minimum: int | str) -> None:
        self.minimum = _bytes(minimum)
        self._before: int | None = None
        # The dynamic linker has found the functions that PyTorch calls before they are replaced.
        torch.empty(1)
        try:
            self._before = _core.place_library_blocks(_LIBRARY, self.minimum)
        except UnsupportedError as error:
            raise UnsupportedError(f"{error}; {_REMEDY}") from None
        if _core.malloc_library_serves():
            _core.arena_statistics()  # makes the arena, for which the malloc library waits
        else:
            self._require_use()

    def _require_use(self) -> None:
        if not _core.library_has_asked():
            torch.empty(self.minimum, dtype=torch.uint8)
        if not _core.library_has_asked():
            self.stop()
            raise UnsupportedError(
                f"allocator: PyTorch {torch.__version__} has an allocator of its own; {_REMEDY}"
            )

    def stop(self) -> None:
        """Has new tensors lie where they lay before. Those that there are stay where they are."""
        if self._before is not None:
            _core.place_library_blocks(_LIBRARY, self._before)
            self._before = None

    def __enter__(self) -> Allocator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "stopped" if self._before is None else f"tensors of {self.minimum} bytes and more"
        return f"<ropewalk.torch allocator, {state}>"


def _bytes(minimum: int | str) -> int:
    """Returns the number of bytes that 131072 and "128K" mean."""
    match = _SIZE.fullmatch(str(minimum))
    found = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not _LEAST <= found < 1 << 62:
        raise ArgumentError(
            f"minimum: {minimum!r}, expected bytes such as 131072 or '128K', at least {_LEAST}"
        )
    return found
