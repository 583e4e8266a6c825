"""This module makes the pictures of amr: steps on an adaptively refined mesh, by share of time."""

from collections.abc import Sequence

from .charts import Axis, Chart, Finding, Lines, Series, Table
from .exchanges import by_strategy, cases
from .quantities import percent, time
from .rows import Row, differing, positive, word

_OWN_WAY = "channel"
_NAMES = {"isend": "MPI_Isend and MPI_Irecv", _OWN_WAY: "ropewalk's Channel"}
_CASE = ("mpi", "ranks")
_SHARES = ("communication_us", "reductions_us", "computing_us")


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns the time in messages by the cells of a block, for each MPI and number of ranks."""
    made = []
    for under, group in cases(rows, _CASE):
        series = by_strategy(group, "cells", "communication_us", _NAMES, (_OWN_WAY,))
        if series:
            made.append(_lines(under, series))
    return tuple(made)


def _lines(under: str, series: tuple[Series, ...]) -> Chart:
    return Lines(
        f"{under}time in messages of a step on an adaptive mesh",
        "Faces between blocks of different ranks, one message each, and blocks that move when the "
        "mesh changes: time of a step in messages, of the slowest rank.",
        Axis("cells along the edge of a block", "count"),
        Axis("time", "time"),
        series,
    )


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """Returns the least and the greatest share of MPI's time that ropewalk's messages take."""
    ratios = [value for row in rows if (value := positive(row, "communication_ratio"))]
    if not ratios:
        return ()
    return (
        Finding(percent(100 * min(ratios)), "of MPI's time in messages, at best"),
        Finding(percent(100 * max(ratios)), "of MPI's time in messages, at worst"),
    )


def tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    fields = [*differing(rows, _CASE), "cells", "strategy"]
    lines = []
    for row in rows:
        shares = [time(value) if (value := positive(row, name)) else "–" for name in _SHARES]
        lines.append((*(word(row.get(field)) for field in fields), *shares))
    if not lines:
        return ()
    return (
        Table(
            "Shares of a step",
            "What a step of the slowest rank spends in messages, in sums over all ranks, and in "
            "computing, with packing and unpacking.",
            (*fields, "messages", "sums", "computing"),
            tuple(lines),
        ),
    )
