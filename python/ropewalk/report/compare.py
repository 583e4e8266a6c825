"""The comparison says what differs between two files of rows, and whether that can be chance.

Rows hold of each time the median, its 95 % interval from order statistics (interval_95, which holds
for any distribution and exists from six rounds on), the least, the 99th percentile and the number
of rounds. The interval of the ratio follows from those of both sides on logarithmic axes: the
distances of each side's bounds from its median are added in quadrature (method of variance
estimates recovery). Where it contains 1, the case is undecided. Rows without intervals are decided
only where the two ranges lie wholly apart and the probability of that by chance, 2 / C(n + m, n) by
the test of Mann and Whitney, is under 5 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .charts import Axis, Finding, Point, Section, Strip, Strips, Table
from .quantities import mean, ratio, size, time
from .rows import Row, Run, differing, grouped, number, positive, short, word

# These fields tell cases apart, in the order of reading. Everything else in a row is a figure.
_CASE = (
    "bench", "table", "op", "operator", "workload", "program", "variant", "mode", "transfer",
    "level", "type", "dtype", "bytes", "floats", "L", "Ls", "precision", "local", "mpi_grid",
    "ranks", "nodes", "threads", "comm_threads", "lanes", "strategy", "mechanism", "memory",
    "pages", "stores", "buffers", "links", "vectors", "exchange", "loop", "backend", "mpi_family",
    "run", "peer_name",
)  # fmt: skip
# A row of the picture stands for one value of some of these fields.
_GROUPS = (
    "table", "op", "operator", "workload", "variant", "strategy", "memory", "buffers", "transfer",
    "pages", "mpi_family", "run",
)  # fmt: skip
_LEVEL = 0.05


@dataclass(frozen=True)
class Case:
    """A case is in both files. `ratio` is the time in A over that in B: above 1, B is faster."""

    key: tuple[str, ...]
    row: Row
    a: float
    b: float
    interval: tuple[float, float] | None
    verdict: str  # "faster", "slower" or "undecided"

    @property
    def ratio(self) -> float:
        return self.a / self.b


def cases(a: Run, b: Run) -> list[Case]:
    """Returns the cases that both files have, in the order of A."""
    left, right = _by_case(a.rows), _by_case(b.rows)
    return [_case(key, left[key], right[key]) for key in left if key in right]


def _by_case(rows: Sequence[Row]) -> dict[tuple[str, ...], Row]:
    """Returns rows by case. Those of the same case are numbered: first is compared with first."""
    joined = {row["bench"] for row in rows if "ratios" in row}  # They also have a row for each run.
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if not positive(row, "time_us") or (row["bench"] in joined and "run" in row):
            continue
        key = (*(word(row.get(field)) for field in _CASE), "1")
        while key in found:
            key = (*key[:-1], str(int(key[-1]) + 1))
        found[key] = row
    return found


def _case(key: tuple[str, ...], a: Row, b: Row) -> Case:
    before, after = positive(a, "time_us") or 1.0, positive(b, "time_us") or 1.0
    interval = ratio_interval(a, b)
    if interval is not None:
        low, high = interval
        verdict = "faster" if low > 1 else "slower" if high < 1 else "undecided"
    else:
        verdict = separated(a, b)
    return Case(key, a, before, after, interval, verdict)


def _bounds(row: Row) -> tuple[float, float] | None:
    time_us = row["time_us"]
    bounds = time_us.get("interval_95") if isinstance(time_us, dict) else None
    if not isinstance(bounds, list) or len(bounds) != 2:
        return None
    low, high = bounds
    return (low, high) if 0 < low <= high else None


def ratio_interval(a: Row, b: Row) -> tuple[float, float] | None:
    """Returns the 95 % interval of the medians' ratio, A over B, or None without both intervals."""
    first, second = _bounds(a), _bounds(b)
    before, after = positive(a, "time_us"), positive(b, "time_us")
    if first is None or second is None or before is None or after is None:
        return None
    middle = math.log(before / after)
    down = math.hypot(math.log(before / first[0]), math.log(second[1] / after))
    up = math.hypot(math.log(first[1] / before), math.log(after / second[0]))
    return math.exp(middle - down), math.exp(middle + up)


def separated(a: Row, b: Row) -> str:
    """Returns the verdict where there are no intervals, by ranges that lie wholly apart."""
    ranges = [
        (number(row, "time_us.min"), number(row, "time_us.p99"), number(row, "time_us.n"))
        for row in (a, b)
    ]
    (low_a, high_a, n), (low_b, high_b, m) = ranges
    if None in (low_a, high_a, n, low_b, high_b, m):
        return "undecided"
    assert low_a and high_a and n and low_b and high_b and m
    # Up to 99 rounds the 99th percentile by the nearest rank is the greatest of the times.
    if max(n, m) > 99 or 2 / math.comb(int(n + m), int(n)) >= _LEVEL:
        return "undecided"
    return "faster" if high_b < low_a else "slower" if high_a < low_b else "undecided"


# ---- the section ---------------------------------------------------------------------------------


def section(a: Run, b: Run, found: Sequence[Case]) -> Section:
    """Returns the comparison as a section of the page."""
    names = f"B ({short(b.file)}) against A ({short(a.file)})"
    if not found:
        note = (
            "No case is in both files: they differ in benches, sizes, ranks or MPIs. Measure both "
            "with the same command."
        )
        return Section("compare", names, note, (Finding("0", "cases are in both files"),), ())
    counts = {
        verdict: sum(case.verdict == verdict for case in found)
        for verdict in ("faster", "slower", "undecided")
    }
    groups = grouped([{**case.row, "case": case} for case in found], ["bench"])
    return Section(
        "compare",
        names,
        "Time in A over time in B, case by case: more than 1 means that B is faster. A case is "
        "decided where the 95 % interval of the ratio leaves out 1, or, for rows without "
        "intervals, where all rounds of one side were faster than all of the other.",
        (
            Finding(ratio(mean([case.ratio for case in found])), "as fast in the geometric mean"),
            Finding(
                f"{counts['faster']} faster",
                f"{counts['slower']} slower, {counts['undecided']} undecided of {len(found)} cases",
            ),
        ),
        tuple(_strips(key[0], [row["case"] for row in rows]) for key, rows in groups.items()),
        (_table(found),),
        _caveats(a, b, found),
    )


def _caveats(a: Run, b: Run, found: Sequence[Case]) -> tuple[str, ...]:
    alone = len(_by_case(a.rows)) + len(_by_case(b.rows)) - 2 * len(found)
    made = [
        f"Where nothing has changed, about {max(1, round(_LEVEL * len(found)))} of {len(found)} "
        "cases are called different by chance. Intervals hold for the rounds of these two runs; "
        "another start may lie elsewhere in memory, so measure twice what matters."
    ]
    if alone:
        made.append(f"{alone} cases are in one file alone and are left out.")
    return tuple(made)


def _strips(bench: str, group: Sequence[Case]) -> Strips:
    by = differing([case.row for case in group], _GROUPS)[:3]
    tied = grouped([{**case.row, "case": case} for case in group], by or ["bench"])
    made = []
    for key, members in tied.items():
        inside = [row["case"] for row in members]
        points = tuple(_point(case) for case in inside)
        made.append(Strip(", ".join(filter(None, key)), points, mean([p.x for p in points])))
    decided = sum(case.verdict != "undecided" for case in group)
    return Strips(
        f"{bench}: {ratio(mean([case.ratio for case in group]))} in the mean, {decided} of "
        f"{len(group)} cases decided",
        "Each dot is one case, with the 95 % interval of its ratio where rows have one; the bar "
        "and the number are the geometric mean of the row.",
        Axis("time in A / time in B", "ratio"),
        tuple(made),
        reference=1.0,
        reference_name="unchanged",
    )


def _point(case: Case) -> Point:
    low, high = case.interval or (None, None)
    return Point(case.ratio, 0, low, high, note=name(case))


def name(case: Case, fields: Sequence[str] = _CASE[1:]) -> str:
    """Returns the case in words, made of these fields."""
    bytes_ = number(case.row, "bytes")
    told = {field: word(case.row.get(field)) for field in fields if field in case.row}
    if bytes_ is not None and "bytes" in told:
        told["bytes"] = size(bytes_)
    for field in ("L", "Ls", "ranks", "threads", "comm_threads", "lanes", "floats"):
        if field in told:
            told[field] = f"{field} {told[field]}"
    return ", ".join(words for words in told.values() if words)


def _table(found: Sequence[Case]) -> Table:
    fields = differing([case.row for case in found], _CASE[1:])
    lines = []
    for case in sorted(found, key=lambda one: one.ratio):
        bounds = "–" if case.interval is None else " to ".join(map(ratio, case.interval))
        lines.append(
            (
                f"{case.row['bench']}: {name(case, fields)}",
                time(case.a),
                time(case.b),
                ratio(case.ratio),
                bounds,
                case.verdict,
            )
        )
    return Table(
        "Every case",
        "The slowest against A first.",
        ("case", "A", "B", "A / B", "95 % interval", "B is"),
        tuple(lines),
    )
