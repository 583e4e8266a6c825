"""How long a benchmark that is a script may take: the rules of common/budget.hpp.

The work is dealt into parts. Each has an equal share of the time that is left, and repeats its
measurement as often as fits: at least three times, so that there is a median, and no part is left
out.
"""

import argparse
import time
from collections.abc import Callable, Iterator

DEFAULT_SECONDS = 100.0  # so that a run ends within two minutes, with what it compiles and starts
LEAST = 3


def add_options(parser: argparse.ArgumentParser, repeated: str, wanted: int) -> None:
    """--pairs and --time; `repeated` says what a pair is."""
    parser.add_argument(
        "--pairs", type=int, help=f"{repeated} ({wanted}, or fewer where they do not fit --time)"
    )
    parser.add_argument(
        "--time",
        type=seconds,
        help="what measuring may take, as 90s or 5m (100s, or no limit with --pairs)",
    )


def seconds(text: str) -> float:
    """ "90", "90s" and "1.5m"."""
    value = float(text.rstrip("sm")) * (60 if text.endswith("m") else 1)
    if not 0 < value <= 86400:
        raise ValueError
    return value


class Budget:
    """The time of `parts` measurements, each repeated up to `wanted` times."""

    def __init__(
        self,
        options: argparse.Namespace,
        parts: int,
        wanted: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted = options.pairs or wanted
        self._seconds = options.time or (0.0 if options.pairs else DEFAULT_SECONDS)
        self._parts = parts
        self._clock = clock
        self._begun = clock()

    def text(self) -> str:
        """What is known before anything has been measured."""
        if not self._seconds:
            return f"{self._wanted} pairs, no limit (--pairs without --time)"
        return f"at most about {self._seconds:.0f} s (--time), up to {self._wanted} pairs"

    def took(self) -> str:
        limit = f"; limit: about {self._seconds:.0f} s" if self._seconds else ""
        return f"{self._clock() - self._begun:.0f} s{limit}"

    def rounds(self) -> Iterator[int]:
        """The next part: 0, 1, ... for as many repetitions as it has."""
        begun = self._clock()
        left = self._seconds - (begun - self._begun)
        share = max(0.0, left) / max(1, self._parts)
        self._parts -= 1
        for done in range(self._wanted):
            spent = self._clock() - begun
            fits = not self._seconds or done == 0 or spent + spent / done <= share
            if done >= LEAST and not fits:
                return
            yield done
