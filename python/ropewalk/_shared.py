"""What the objects that several ranks make together have in common."""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import Callable, Generator
from typing import Any, Generic, Protocol, Self, TypeVar

_Result = TypeVar("_Result")


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

    def _repr_html_(self) -> str:
        """As a notebook shows it: its repr, in a box."""
        words = html.escape(repr(self).strip("<>"))
        style = "border:1px solid;border-radius:6px;padding:2px 8px;opacity:0.9"
        return f'<code style="{style}">{words}</code>'


def kept(*objects: Any) -> tuple[object, ...]:
    """Returns what the compiled part of an object keeps until it has ended, of arrays and other
    objects that it uses. Of an object of ranks that is its compiled part, too: the collector of
    cycles may take the Python object apart before the other one ends, and clears a list, but no
    tuple. The Python object itself is what the end of the program completes."""
    found: list[object] = []
    for one in objects:
        while isinstance(one, OfRanks):
            found += (one, one._core)
            one = getattr(one, "_given", None)  # the communicator that it was made of
        found.append(one)
    return tuple(found)


class ClosedTogether:
    """An object that every rank closes: by close(), or at the end of its `with`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: object) -> None:
        if kind is None:  # after an error on this rank the others may not come
            self.close()


# Seconds between two tests by a coroutine that awaits a collective or a message, or by a wait that
# has a limit: a small one takes some microseconds, and each test wakes the event loop.
_FIRST_PAUSE = 20e-6
_LONGEST_PAUSE = 1e-3


def _looks(test: Callable[[], bool]) -> Generator[Any, None, None]:
    """Lets the event loop run until `test` says that it is complete."""
    pause = 0.0
    while not test():
        yield from asyncio.sleep(pause).__await__()
        pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)


def _wait_for(test: Callable[[], bool], seconds: float) -> None:
    """Returns when `test` says that it is complete; a TimeoutError after so many seconds."""
    end = time.monotonic() + seconds
    pause = 0.0
    while not test():
        left = end - time.monotonic()
        if not left > 0:
            raise TimeoutError(f"not complete after {seconds} s; it goes on, and may be waited for")
        time.sleep(min(pause, left))
        pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)


class _Pending(Protocol):
    def test(self) -> bool: ...
    def wait(self) -> None: ...


class Pending(Generic[_Result]):
    """What is under way between ranks, and may be tested, waited for and awaited."""

    _core: _Pending

    def _result(self) -> _Result:
        raise NotImplementedError

    def test(self) -> bool:
        """True when it is complete; moves messages on. Raises what it has met."""
        return self._core.test()

    def wait(self, timeout: float | None = None) -> None:
        """Returns when it is complete. Raises what it has met, and a TimeoutError where it is not
        complete after `timeout` seconds; it goes on then, and may be waited for again."""
        if timeout is None:
            self._core.wait()
        else:
            _wait_for(self._core.test, timeout)

    def result(self, timeout: float | None = None) -> _Result:
        """Waits in the same way, and returns what the blocking form returns."""
        self.wait(timeout)
        return self._result()

    def __await__(self) -> Generator[Any, None, _Result]:
        yield from _looks(self._core.test)
        return self.result()
