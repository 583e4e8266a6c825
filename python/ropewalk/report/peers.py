"""This module makes the pictures of rows that have a peer's time beside ropewalk's: those of
collectives, p2p, dropin, torch, and any bench whose rows have `time_us` and `plain_us` or `ratios`.
"""

from collections.abc import Sequence

from .charts import LIMIT, OWN, Axis, Chart, Finding, Lines, Point, Series, Strip, Strips
from .quantities import mean, ratio, size
from .rows import Row, differing, grouped, number, positive, spread, word

# These fields tell the panels of a bench apart.
_FIELDS = (
    "op", "workload", "mode", "dtype", "type", "memory", "buffers", "mechanism", "loop", "program",
    "ranks", "nodes", "threads", "backend",
)  # fmt: skip


def ratios_of(row: Row) -> dict[str, float]:
    """Returns {peer: its time over ropewalk's}. Both times of a ratio are of the same run."""
    if isinstance(row.get("ratios"), dict):
        found = {name: number(row["ratios"], name) for name in row["ratios"]}
        return {name: value for name, value in found.items() if value and value > 0}
    ours = positive(row, "time_us")
    theirs = positive(row, "peer_us") or positive(row, "plain_us")
    if ours is None or theirs is None:
        return {}
    name = row.get("peer") or row.get("mpi") or "plain MPI"
    return {word(name): theirs / ours}


def rated(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows that compare. Of rows of --against, they are those that join the runs."""
    found = [row for row in rows if positive(row, "time_us") and ratios_of(row)]
    joined = any("ratios" in row for row in found)
    return [row for row in found if "ratios" in row or not (joined and "run" in row)]


def best(row: Row) -> float:
    """Returns the ratio to the fastest peer."""
    return min(ratios_of(row).values())


def case(row: Row) -> str:
    bytes_ = number(row, "bytes")
    at = size(bytes_) if bytes_ is not None else word(row.get("workload"))
    return f"{at}, {min(ratios_of(row), key=lambda peer: ratios_of(row)[peer])}"


def _keys(rows: Sequence[Row]) -> list[str]:
    """Returns the fields that name a panel: those that differ, and MPIs measured one by one."""
    fields = differing(rows, _FIELDS)
    several = not any("ratios" in row for row in rows) and differing(rows, ("mpi",))
    return [*fields, "mpi"] if several else fields or ["op"]


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    found = rated(rows)
    if not found:
        return ()
    middle, least = mean([best(row) for row in found]), min(found, key=best)
    where = f"{word(least.get('op') or least.get('workload'))}, {case(least)}"
    return (
        Finding(
            ratio(middle),
            f"as fast as the best peer: the geometric mean of {len(found)} cases. Least "
            f"{ratio(best(least))} ({where})",
        ),
    )


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    found = rated(rows)
    if not found:
        return ()
    keys = _keys(found)
    groups = grouped(found, keys)
    made: list[Chart] = [_ratio_strips(groups)]
    share = _limit_strips(groups)
    made += [share] if share else []
    made += [lines for key, group in groups.items() if (lines := _lines(key, group))]
    return tuple(made)


def _title(key: Sequence[str]) -> str:
    return ", ".join(one for one in key if one) or "all cases"


def _ratio_strips(groups: dict[tuple[str, ...], list[Row]]) -> Strips:
    rows = []
    for key, group in groups.items():
        points = tuple(Point(best(row), 0, note=case(row)) for row in group)
        rows.append(Strip(_title(key), points, mean([point.x for point in points])))
    every = [point.x for row in rows for point in row.points]
    won = sum(value > 1 for value in every)
    return Strips(
        f"ropewalk is faster than the best peer in {won} of {len(every)} cases",
        "Each dot is one size: the best peer's time over ropewalk's in the same run. The bar and "
        "the number are the geometric mean of the row; squares lie where the peer is faster.",
        Axis("time of the best peer / time of ropewalk", "ratio"),
        tuple(rows),
        reference=1.0,
        reference_name="as fast",
    )


def _limit_strips(groups: dict[tuple[str, ...], list[Row]]) -> Strips | None:
    rows = []
    for key, group in groups.items():
        limits = [(positive(row, "limit_us"), positive(row, "time_us"), row) for row in group]
        points = tuple(
            Point(100 * limit / time, 0, note=case(row).split(",")[0])
            for limit, time, row in limits
            if limit and time
        )
        if points:
            rows.append(Strip(_title(key), points, mean([point.x for point in points])))
    if not rows:
        return None
    middle = mean([point.x for row in rows for point in row.points])
    return Strips(
        f"{middle:.0f} % of the physical limit in the mean",
        "Each dot is one size: the time of the same loads and stores without any synchronisation, "
        "as a share of ropewalk's time.",
        Axis("share of the limit", "percent", log=False),
        tuple(rows),
        reference=100.0,
        reference_name="limit",
        worse_below=False,
    )


def _lines(key: Sequence[str], group: Sequence[Row]) -> Lines | None:
    group = sorted((row for row in group if positive(row, "bytes")), key=lambda row: row["bytes"])
    if len({row["bytes"] for row in group}) < 2:
        return None
    names = list(dict.fromkeys(peer for row in group for peer in ratios_of(row)))
    limit = tuple(
        Point(row["bytes"], value) for row in group if (value := positive(row, "limit_us"))
    )
    series = [
        Series("ropewalk", tuple(_own_point(row) for row in group), OWN),
        *(Series(name, _peer_points(group, name)) for name in names),
        *([Series("limit", limit, LIMIT)] if limit else []),
    ]
    values = [best(row) for row in group]
    apart = " Each peer is drawn at its ratio to ropewalk within its own run." * (len(names) > 1)
    return Lines(
        f"{_title(key)}: {ratio(min(values))} to {ratio(max(values))} as fast as the best peer",
        "Time of one call against its size, both axes logarithmic; thin bars are ropewalk's "
        f"spread.{apart}",
        Axis("bytes", "size"),
        Axis("time of one call", "time"),
        tuple(series),
    )


def _own_point(row: Row) -> Point:
    low, high = spread(row, "time_us")
    return Point(row["bytes"], positive(row, "time_us") or 0, low, high, word(row.get("path")))


def _peer_points(group: Sequence[Row], name: str) -> tuple[Point, ...]:
    rated = [(row, ratios_of(row)) for row in group]
    return tuple(
        Point(row["bytes"], ratios[name] * (positive(row, "time_us") or 0))
        for row, ratios in rated
        if name in ratios
    )
