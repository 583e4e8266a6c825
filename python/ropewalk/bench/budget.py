"""`--time` of `ropewalk bench`: the time for all measurements, divided among the programs.

A single program gets all of it; of several, each gets an equal part of what is left, so that what
one saves goes to those after it. Within a program bench/common/budget.hpp does the same.
"""

import re
import time
from collections.abc import Callable

from ..errors import CommandError

_MOST_SECONDS = 86400
_LEAST_SECONDS = 1  # of a program: it has its least rounds in any case


def seconds(text: str) -> float:
    """ "90", "90s" and "1.5m", as the programs read it."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([sm]?)", text)
    value = float(found[1]) * (60 if found[2] == "m" else 1) if found else 0.0
    if 0 < value <= _MOST_SECONDS:
        return value
    raise CommandError(
        f"--time: '{text}' is no time of up to a day in seconds or minutes; write for example "
        "--time 90s or --time 5m"
    )


class Budget:
    """The time of `count` programs that are started one after the other."""

    def __init__(
        self, text: str | None, count: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left = count
        self._clock = clock
        self._end = None if text is None else clock() + seconds(text)

    def next(self) -> list[str]:
        """The options of the next program; none where each takes its own default."""
        if self._end is None:
            return []
        each = max(_LEAST_SECONDS, (self._end - self._clock()) / max(1, self._left))
        self._left -= 1
        return ["--time", f"{each:.1f}".removesuffix(".0")]
