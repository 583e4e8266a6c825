"""What the objects that several ranks make together have in common."""

from __future__ import annotations

from typing import Protocol, Self


class _OfRanks(Protocol):
    def rank(self) -> int: ...
    def size(self) -> int: ...


class OfRanks:
    """An object that knows its ranks."""

    _core: _OfRanks

    @property
    def rank(self) -> int:
        """The number of this rank, from 0."""
        return self._core.rank()

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._core.size()


class ClosedTogether:
    """An object that every rank closes: by close(), or at the end of its `with`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: object) -> None:
        if kind is None:  # after an error on this rank the others may not come
            self.close()
