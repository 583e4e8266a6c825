"""This module makes the pictures of fft: transforms of a grid that is divided over the ranks."""

from collections.abc import Sequence

from .charts import Axis, Chart, Finding, Lines, Series, Table
from .exchanges import by_strategy, cases
from .quantities import ratio, time
from .rows import Row, differing, positive, word

_NAMES = {
    "alltoallw": "MPI_Alltoallw",
    "packed": "MPI_Alltoall, packed",
    "collectives": "ropewalk's Collectives, packed",
    "exchange": "ropewalk's SubarrayExchange",
}
_OWN_WAYS = ("collectives", "exchange")
_CASE = ("numbers", "decomposition", "mpi", "ranks", "threads")


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns the time in transposes by the cells of the grid, for each kind of transform."""
    made = []
    for under, group in cases(rows, _CASE):
        series = by_strategy(group, "cells", "transposes_us", _NAMES, _OWN_WAYS)
        if series:
            made.append(_lines(under, series))
    return tuple(made)


def _lines(under: str, series: tuple[Series, ...]) -> Chart:
    return Lines(
        f"{under}time in transposes of a Fourier transform and its inverse",
        "A grid in three dimensions is divided over the ranks, and transposed so that each axis is "
        "whole on a rank in turn: time of a step in transposes, of the slowest rank.",
        Axis("cells of the grid", "count"),
        Axis("time", "time"),
        series,
    )


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """Returns the best ratios to MPI's fastest way, of whole steps and of their transposes."""
    made = []
    for field, words in (
        ("ratio", "as fast as by MPI, a transform and its inverse, at best"),
        ("transposes_ratio", "as fast as by MPI, their transposes, at best"),
    ):
        ratios = [value for row in rows if (value := positive(row, field))]
        if ratios:
            made.append(Finding(ratio(max(ratios)), words))
    return tuple(made)


def tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    fields = [*differing(rows, _CASE), "grid", "strategy"]
    lines = []
    for row in rows:
        shares = [
            time(value) if (value := positive(row, name)) else "–"
            for name in ("time_us.median", "transposes_us", "local_us")
        ]
        times = ratio(value) if (value := positive(row, "ratio")) else "–"
        lines.append((*(word(row.get(field)) for field in fields), *shares, times))
    if not lines:
        return ()
    return (
        Table(
            "Shares of a transform and its inverse",
            "What the slowest rank spends in transposes and in transforms of its own lines; the "
            "ratio is the time of MPI's fastest way over this one's.",
            (*fields, "step", "transposes", "local", "ratio"),
            tuple(lines),
        ),
    )
