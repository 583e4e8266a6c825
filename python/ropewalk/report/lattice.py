"""This module makes the pictures of itt, which show what Grid's Benchmark_ITT and tables V and VI
of Boyle et al. 2017 do."""

from collections.abc import Sequence

from .charts import LIMIT, OWN, Axis, Chart, Finding, Lines, Point, Series, Table
from .exchanges import curve, curves
from .quantities import FORMS, percent, rate, ratio, significant
from .rows import Row, differing, number, positive, word


def _of(rows: Sequence[Row], table: str) -> list[Row]:
    return [row for row in rows if row.get("table") == table]


def _layout(rows: Sequence[Row]) -> list[str]:
    return differing(rows, ("ranks", "threads", "mpi"))


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    made = [
        _stencil(rows),
        _steps(rows),
        _operators(rows, "summary"),
        _operators(rows, "operators"),
    ]
    made += [_roofline(rows), _memory(rows)]
    return tuple(chart for chart in made if chart)


def _bandwidths(rows: Sequence[Row], time: str) -> tuple[Point, ...]:
    """Returns the bytes that a node sends and receives, over the field `time` of the rows."""
    made = [
        {**row, "bandwidth": 2 * length / taken}
        for row in rows
        if (taken := positive(row, time)) and (length := positive(row, "node_bytes"))
    ]
    return curve(made, "L", "bandwidth")


def _stencil(rows: Sequence[Row]) -> Chart | None:
    mine = _of(rows, "stencil")
    series = [
        Series(f"as {one.name}", one.points, OWN)
        for one in curves(mine, ["path", *_layout(mine)], "L", "bidi_mb_per_s", lambda row: True)
    ]
    series.append(Series("MPI messages", _bandwidths(mine, "plain_us")))
    series.append(Series("one copy", _bandwidths(mine, "limit_us"), LIMIT))
    series = [one for one in series if one.points]
    if not series:
        return None
    ratios = [value for row in mine if (value := positive(row, "ratio"))]
    said = f": {ratio(min(ratios))} to {ratio(max(ratios))} as fast as MPI's messages"
    return Lines(
        f"Halo exchange of half spinors{said if ratios else ''}",
        "Bandwidth of a node's stencil exchange, sent and received, against the side of the "
        "local lattice; the limit is one copy of the same bytes.",
        Axis("sites along one side of a rank's lattice (L)", "number", log=False),
        Axis("bandwidth", "rate"),
        tuple(series),
    )


def _steps(rows: Sequence[Row]) -> Chart | None:
    """Returns the times of whole steps, in which faces are gathered, exchanged and read."""
    mine = [row for row in _of(rows, "stencil") if isinstance(row.get("step"), dict)]
    names = {"plain": "MPI messages", "direct": "direct", "put": "put", "limit": "limit"}
    series = []
    for way, name in names.items():
        points = curve(mine, "L", f"step.{way}.time_us")
        role = LIMIT if way == "limit" else OWN if way == "put" else "peer"
        series += [Series(name, points, role)] if points else []
    if len(series) < 2:
        return None
    gains = [
        plain / put
        for row in mine
        if (plain := positive(row, "step.plain.time_us"))
        and (put := positive(row, "step.put.time_us"))
    ]
    said = f": put is {ratio(min(gains))} to {ratio(max(gains))} as fast as messages"
    return Lines(
        f"Whole steps{said if gains else ''}",
        "Time to gather the faces out of a field, exchange them and read them; the limit is the "
        "same gathering and reading in a rank's own memory.",
        Axis("sites along one side of a rank's lattice (L)", "number", log=False),
        Axis("time of one step", "time"),
        tuple(series),
    )


def _operators(rows: Sequence[Row], table: str) -> Chart | None:
    """Returns the rates of the best case of each operator at each L."""
    mine = _of(rows, table)
    best: dict[tuple[str, ...], Row] = {}
    for row in mine:
        key = tuple(word(row.get(name)) for name in ("op", "L", "ranks", "threads", "mpi"))
        if (positive(row, "gflops") or 0) > (number(best.get(key, {}), "gflops") or 0):
            best[key] = row
    series = curves(list(best.values()), ["op", *_layout(mine)], "L", "gflops", lambda row: False)
    if not series:
        return None
    fastest = max(best.values(), key=lambda row: row["gflops"])
    share = number(fastest, "roof_percent")
    roof = f", {percent(share)} of its roof" if share is not None else ""
    what = "Wilson and domain wall" if table == "summary" else "Operators of tables V and VI"
    return Lines(
        f"{what}: up to {FORMS['gflops'](fastest['gflops'])} ({fastest.get('op')}, L = "
        f"{fastest.get('L')}){roof}",
        "Floating-point rate of all ranks together against the side of the local lattice; the "
        "fastest case of each operator.",
        Axis("sites along one side of a rank's lattice (L)", "number", log=False),
        Axis("rate of all ranks", "gflops", log=False),
        tuple(series),
    )


def _roofline(rows: Sequence[Row]) -> Chart | None:
    levels = _of(rows, "roofline")
    points = [
        row
        for row in _of(rows, "operators") + _of(rows, "summary")
        if positive(row, "intensity") and positive(row, "gflops")
    ]
    if not levels or not points:
        return None
    across = [0.5 * 2 ** (step / 4) for step in range(21)]  # flops a byte, 0.5 to 16
    series = []
    for row in levels:
        roof = tuple(
            Point(one, min(row["peak_gflops"], one * row["mb_per_s"] / 1e3)) for one in across
        )
        series.append(Series(f"{row.get('level')} roof", roof, LIMIT))
    measured = tuple(
        sorted(
            (
                Point(row["intensity"], row["gflops"], note=f"{row.get('op')}, L = {row.get('L')}")
                for row in points
            ),
            key=lambda point: point.x,
        )
    )
    series.append(Series("operators", measured, OWN))
    return Lines(
        "Operators under the measured roofline",
        "Each dot is one operator at one L: flops for each byte that must move, and the rate "
        "reached; the lines are the measured bandwidths up to the measured peak.",
        Axis("flops a byte", "number"),
        Axis("rate of all ranks", "gflops"),
        tuple(series),
    )


def _memory(rows: Sequence[Row]) -> Chart | None:
    mine = _of(rows, "memory")
    series = curves(mine, _layout(mine), "L", "mb_per_s", lambda row: True)
    if not series:
        return None
    return Lines(
        f"a·x + y: {rate(max(point.y for one in series for point in one.points))} at best",
        "Bandwidth of a·x + y over a lattice's fields, all ranks together.",
        Axis("sites along one side of a rank's lattice (L)", "number", log=False),
        Axis("bandwidth", "rate"),
        tuple(series),
    )


def tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """Returns tables of the comparison points, and of the operators as the paper prints them."""
    made = []
    points = _of(rows, "comparison")
    if points:
        lines = tuple(
            (
                f"{row.get('ranks')} × {row.get('threads')}",
                significant(row["mflops_per_node"]),
                significant(number(row, "robustness") or 0),
            )
            for row in points
            if positive(row, "mflops_per_node")
        )
        made.append(
            Table(
                "Comparison point",
                "Grid's figure of merit: half of DWF4 at L = 16 and at L = 12.",
                ("ranks × threads", "Mflop/s per node", "robustness"),
                lines,
            )
        )
    operators = _of(rows, "operators")
    if operators:
        sides = sorted({int(row["L"]) for row in operators if number(row, "L")})
        by: dict[str, dict[int, float]] = {}
        for row in operators:
            cell = by.setdefault(word(row.get("op")), {})
            value = number(row, "mflops_per_node") or (number(row, "gflops") or 0) * 1e3
            cell[int(row["L"])] = max(value, cell.get(int(row["L"]), 0))
        cells = tuple(
            (op, *(significant(cell[L]) if L in cell else "–" for L in sides))
            for op, cell in by.items()
        )
        made.append(
            Table(
                "Operators, Mflop/s per node",
                "The layout of tables V and VI of Boyle et al. 2017.",
                ("operator", *(f"{L}⁴" for L in sides)),
                cells,
            )
        )
    return tuple(made)


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    found = []
    rated = [row for row in rows if positive(row, "gflops")]
    if rated:
        best = max(rated, key=lambda row: row["gflops"])
        at = f"of all ranks, {best.get('op')} at L = {best.get('L')}"
        found.append(Finding(FORMS["gflops"](best["gflops"]), at))
    ratios = [value for row in _of(rows, "stencil") if (value := positive(row, "ratio"))]
    if ratios:
        words = f"as fast as MPI's messages in the halo exchange; least {ratio(min(ratios))}"
        found.append(Finding(ratio(max(ratios)), words))
    return tuple(found)
