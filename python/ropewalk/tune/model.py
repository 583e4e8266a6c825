"""The model of what a mechanism costs, made of the times that were measured.

Between two sizes that were measured, each further byte takes the same time. Beyond the largest one
a model continues that is fitted to all points: a latency, and the time of a byte in each cache
level.

t(b) = latency + sum over the levels of (bytes of b in the level) x (time of a byte there)

The bytes of a level are those between the size at which the buffers of two ranks leave the level
below and the size at which they leave this one. A predicted time never falls with the size: no term
of the fit is negative, and where a larger size took less time, the longer time counts.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import re
from collections.abc import Sequence

Point = tuple[int, float]  # bytes, microseconds

_CACHE = re.compile(r"L(\d+) (\d+)K for (\d+)")


@dataclasses.dataclass(frozen=True)
class Model:
    """The model was fitted to `points`. A level ends and the next begins at each of `limits`."""

    latency: float  # microseconds
    rates: tuple[float, ...]  # microseconds a byte, one more than limits
    limits: tuple[int, ...]
    points: tuple[Point, ...]

    def predicted(self, size: int) -> float:
        """Returns the microseconds that are predicted for `size` bytes."""
        rising = _rising(self.points)
        (last, us) = rising[-1]
        if size > last:
            return us + max(0.0, self.fitted(size) - self.fitted(last))
        return _between(rising, size)

    def fitted(self, size: int) -> float:
        """Returns the microseconds by latency and levels alone."""
        return self.latency + sum(
            rate * part for rate, part in zip(self.rates, parts(size, self.limits), strict=True)
        )

    def error(self) -> float:
        """Returns how far a prediction is off at the worst of the points where it is made without
        that point: 0.1 is 10 %. It is 0 where no point lies between two others."""
        worst = 0.0
        for i in range(1, len(self.points) - 1):
            size, us = self.points[i]
            others = _rising(self.points[:i] + self.points[i + 1 :])
            worst = max(worst, abs(_between(others, size) / us - 1))
        return worst

    def rests_on(self, size: int) -> tuple[Point, ...]:
        """Returns the measurements that the prediction for `size` is made of."""
        at = bisect.bisect_left(self.points, (size, 0.0))
        if at == len(self.points):
            return self.points[-1:]
        if at == 0 or self.points[at][0] == size:
            return self.points[at : at + 1]
        return self.points[at - 1 : at + 1]

    def observed(self, size: int) -> float | None:
        """Returns what was measured for this very size, or None where it was not measured."""
        return dict(self.points).get(size)

    def reaches(self, size: int) -> bool:
        """Says whether the size lies between the least and the largest that were measured."""
        return self.points[0][0] <= size <= self.points[-1][0]


def _rising(points: Sequence[Point]) -> list[Point]:
    """The points, none with less time than the one before."""
    longest = itertools.accumulate((us for _, us in points), max)
    return [(size, us) for (size, _), us in zip(points, longest, strict=True)]


def _between(points: Sequence[Point], size: int) -> float:
    """The time on the line between the two points beside `size`; the first one's below it."""
    at = bisect.bisect_left(points, (size, 0.0))
    if at == 0:
        return points[0][1]
    (left, below), (right, above) = points[at - 1], points[min(at, len(points) - 1)]
    if right == left:
        return below
    return min(above, below + (above - below) * (size - left) / (right - left))


def parts(size: int, limits: Sequence[int]) -> list[int]:
    """Returns how many of the `size` bytes belong to each level."""
    borders = [0, *limits]
    ends = [*limits, max(size, *borders)]
    return [max(0, min(size, end) - begin) for begin, end in zip(borders, ends, strict=True)]


def cache_limits(caches: str) -> tuple[int, ...]:
    """Returns the sizes at which two buffers leave each cache, from machine.caches of a profile.
    Ranks share a cache above L2 as its CPUs do; L1 and L2 count for one rank alone."""
    found: dict[int, int] = {}
    for level, kilobytes, shared in _CACHE.findall(caches):
        each = int(kilobytes) * 1024 // (int(shared) if int(level) > 2 else 1)
        found[int(level)] = each // 2
    return tuple(sorted(found.values()))


def fit(points: Sequence[Point], limits: Sequence[int]) -> Model:
    """Returns the model with the least sum of squared relative errors and no negative term. Levels
    in which nothing was measured join the one below."""
    ordered = tuple(sorted(points))
    used = _levels_with_points([size for size, _ in ordered], limits)
    rows = [[1 / us, *(part / us for part in parts(size, used))] for size, us in ordered]
    latency, *rates = _least_squares(rows)
    return Model(latency, tuple(rates), used, ordered)


def _levels_with_points(sizes: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    used: list[int] = []
    for limit in sorted(limits):
        below = used[-1] if used else 0
        if any(below < size <= limit for size in sizes) and max(sizes) > limit:
            used.append(limit)
    return tuple(used)


def _least_squares(rows: Sequence[Sequence[float]]) -> list[float]:
    """Returns the x >= 0 with the least |rows x - 1|. It tries all ways to leave some terms out, of
    which there are few, and takes the best solution."""
    count = len(rows[0])
    best, least = [0.0] * count, float("inf")
    for chosen in itertools.product((False, True), repeat=count):
        columns = [i for i in range(count) if chosen[i]]
        found = _solved([[row[i] for i in columns] for row in rows]) if columns else None
        if found is None or min(found) < 0:
            continue
        full = [0.0] * count
        for i, value in zip(columns, found, strict=True):
            full[i] = value
        error = sum((sum(a * x for a, x in zip(row, full, strict=True)) - 1) ** 2 for row in rows)
        if error < least:
            best, least = full, error
    return best


def _solved(rows: Sequence[Sequence[float]]) -> list[float] | None:
    """Solves the normal equations by Gauss and Jordan. Returns None if there is no single
    solution."""
    columns = list(zip(*rows, strict=True))
    scale = [max(map(abs, column)) or 1.0 for column in columns]
    scaled = [[value / one for value in column] for column, one in zip(columns, scale, strict=True)]
    matrix = [[*(_dot(left, right) for right in scaled), sum(left)] for left in scaled]
    for column in range(len(matrix)):
        pivot = max(range(column, len(matrix)), key=lambda row: abs(matrix[row][column]))
        if abs(matrix[pivot][column]) < 1e-12:
            return None
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        top = matrix[column]
        for row, values in enumerate(matrix):
            if row != column:
                factor = values[column] / top[column]
                matrix[row] = [a - factor * b for a, b in zip(values, top, strict=True)]
    return [row[-1] / row[i] / scale[i] for i, row in enumerate(matrix)]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
