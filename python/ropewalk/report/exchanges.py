"""This module makes the pictures of comms (tables I to IV of Boyle et al. 2017), overlap (the
figures of Meadows et al. 2018), gradient (figures 1 to 5 of Boyle et al.), memory, pages and
malloc."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from .charts import (
    LIMIT,
    OWN,
    PEER,
    Axis,
    Chart,
    Finding,
    Lines,
    Point,
    Series,
    Strip,
    Strips,
    Table,
)
from .quantities import FORMS, mean, percent, rate, ratio, size, time
from .rows import Row, differing, grouped, number, positive, word


def curve(rows: Sequence[Row], x: str, y: str, scale: float = 1.0) -> tuple[Point, ...]:
    """Returns the points of the rows that have both fields, sorted by x. `scale` multiplies y."""
    points = [
        Point(across, up * scale)
        for row in rows
        if (across := number(row, x)) is not None and (up := positive(row, y)) is not None
    ]
    return tuple(sorted(points, key=lambda point: point.x))


def curves(
    rows: Sequence[Row], fields: Sequence[str], x: str, y: str, own: Callable[[Row], bool]
) -> list[Series]:
    """Returns a series for each combination of the fields' values."""
    made = []
    for key, group in grouped(rows, fields).items():
        points = curve(group, x, y)
        if points:
            name = " ".join(one for one in key if one) or "ropewalk"
            made.append(Series(name, points, OWN if own(group[0]) else PEER))
    return made


def by_strategy(
    rows: Sequence[Row], x: str, y: str, names: Mapping[str, str], own: Collection[str]
) -> tuple[Series, ...]:
    """Returns a series for each strategy, by its name; `own` are those of ropewalk."""
    made = []
    for (way,), group in grouped(rows, ["strategy"]).items():
        points = curve(group, x, y)
        if points:
            made.append(Series(names.get(way, way), points, OWN if way in own else PEER))
    return tuple(made)


def cases(rows: Sequence[Row], fields: Sequence[str]) -> Iterator[tuple[str, list[Row]]]:
    """Yields the rows of each case, with the beginning of a title that tells it from others."""
    for key, group in grouped(rows, differing(rows, fields)).items():
        yield (f"{', '.join(key)}: " if key else ""), group


def limit_line(rows: Sequence[Row], x: str, y: str, name: str = "limit") -> list[Series]:
    points = {point.x: point for point in curve(rows, x, y)}
    return [Series(name, tuple(points.values()), LIMIT)] if points else []


# ---- comms ---------------------------------------------------------------------------------------


def comms(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns bandwidth by face size and strategy, in a panel for each kind of pages."""
    fields = differing(rows, ("mpi", "buffers", "lanes", "mpi_grid"))
    made: list[Chart] = []
    for key, group in grouped(rows, ["pages", *fields]).items():
        series = curves(group, ["strategy"], "bytes", "mb_per_s", _is_own)
        line_rates = curve(group, "bytes", "line_rate_mb_per_s", 2.0)
        if line_rates:
            series.append(Series("line rate", line_rates, LIMIT))
        if not series:
            continue
        fastest = max(group, key=lambda row: positive(row, "mb_per_s") or 0)
        share = number(fastest, "line_rate_percent")
        at = f", {percent(share)} of the line rate" if share is not None else ""
        made.append(
            Lines(
                f"{', '.join(one for one in key if one)} pages: up to "
                f"{rate(positive(fastest, 'mb_per_s') or 0)} with {fastest.get('strategy')}{at}",
                "Bandwidth of a rank's halo exchange, both directions, against the bytes of one "
                "face (tables I to IV of Boyle et al. 2017); the line rate is that of both.",
                Axis("bytes of a face", "size"),
                Axis("bandwidth", "rate"),
                tuple(series),
            )
        )
    return tuple(made)


def _is_own(row: Row) -> bool:
    return row.get("strategy") in ("direct", "put", "automatic")


def comms_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """Returns the table as the paper prints it: lines are lattices, columns are strategies."""
    strategies = list(dict.fromkeys(word(row.get("strategy")) for row in rows))
    fields = ["L", "bytes", *differing(rows, ("pages", "mpi", "buffers", "lanes"))]
    lines = []
    for key, group in grouped(rows, fields).items():
        by = {word(row.get("strategy")): positive(row, "mb_per_s") for row in group}
        cells = (rate(value) if (value := by.get(one)) else "–" for one in strategies)
        face = size(float(key[1])) if key[1] else "–"
        lines.append((key[0], face, *key[2:], *cells))
    return (
        Table(
            "Bandwidth by lattice and strategy",
            "The layout of tables I to IV of Boyle et al. 2017: both directions of one rank.",
            ("L", "face", *fields[2:], *strategies),
            tuple(lines),
        ),
    )


def comms_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    rated = [row for row in rows if positive(row, "mb_per_s")]
    if not rated:
        return ()
    fastest = max(rated, key=lambda row: row["mb_per_s"])
    found = [Finding(rate(fastest["mb_per_s"]), f"a rank at most ({fastest.get('strategy')})")]
    names = ("L", "strategy", "buffers", "lanes", "mpi")
    plain = {
        tuple(word(row.get(name)) for name in names): row["mb_per_s"]
        for row in rated
        if row.get("pages") == "memalign"
    }
    gains = [
        row["mb_per_s"] / other
        for row in rated
        if row.get("pages") == "huge"
        and (other := plain.get(tuple(word(row.get(name)) for name in names)))
    ]
    if gains:
        words = "the bandwidth of memalign's pages with huge ones, geometric mean"
        found.append(Finding(ratio(mean(gains)), words))
    return tuple(found)


# ---- gradient ------------------------------------------------------------------------------------

_GRADIENT = (
    ("time_us", "Wall time", "time of a reduction", "time", "figure 5"),
    ("mb_per_s", "Bandwidth inside communication", "bandwidth", "rate", "figure 1"),
    ("communication_us", "Time in communication", "time", "time", "figure 2"),
    ("other_us", "Everything else", "time", "time", "figure 3"),
    ("communication_percent", "Share of communication", "share", "percent", "figure 4"),
)
_NAMES = {"published": "as published", "improved": "as improved", "mpi": "MPI_Allreduce"}


def gradient(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns the five figures of the paper, for each MPI."""
    fields = differing(rows, ("mpi", "nodes", "ranks"))
    made = []
    for key, group in grouped(rows, fields).items():
        named = [
            {**row, "variant": _NAMES.get(word(row.get("variant")), row.get("variant"))}
            for row in group
        ]
        under = f"{', '.join(key)}: " if key else ""
        made += [_gradient_figure(named, under, *figure) for figure in _GRADIENT]
    return tuple(chart for chart in made if chart)


def _gradient_figure(
    rows: Sequence[Row], under: str, field: str, title: str, label: str, form: str, figure: str
) -> Chart | None:
    series = curves(rows, ["variant"], "floats", field, lambda row: row["variant"] == "ropewalk")
    if field == "time_us":
        series += limit_line(rows, "floats", "limit_us")
    if not series:
        return None
    times = _times_published(rows) if field == "time_us" else []
    said = _largest(series, form)
    if times:
        said = f": {ratio(min(times))} to {ratio(max(times))} as fast as the published ring"
    return Lines(
        f"{under}{title}{said}",
        f"{title} of summing a vector over all ranks, by variant: {figure} of Boyle et al. 2017.",
        Axis("floats", "count"),
        Axis(label, form, log=form != "percent"),
        tuple(series),
    )


def _largest(series: Sequence[Series], form: str) -> str:
    """Returns, in words, ropewalk's value at the greatest length and the value nearest to it."""
    ends = {one.name: one.points[-1].y for one in series if one.points and one.role != LIMIT}
    own = ends.pop("ropewalk", None)
    if own is None or not ends:
        return ""
    near = min(ends, key=lambda name: abs(math.log(ends[name] / own)))
    return f": {FORMS[form](own)} at the greatest length, {near} {FORMS[form](ends[near])}"


def _times_published(rows: Sequence[Row]) -> list[float]:
    ours = (row for row in rows if row.get("variant") == "ropewalk")
    return [value for row in ours if (value := positive(row, "times_published"))]


def gradient_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    times = _times_published(rows)
    ours = [row for row in rows if row.get("variant") == "ropewalk"]
    shares = [value for row in ours if (value := positive(row, "limit_percent"))]
    found = [Finding(ratio(max(times)), "as fast as the published ring, at most")] if times else []
    if shares:
        found.append(Finding(percent(max(shares)), "of the limit at the best length"))
    return tuple(found)


# ---- overlap -------------------------------------------------------------------------------------

_STEPS = (
    ("compute_us", "compute", PEER),
    ("exchange_us", "exchange", PEER),
    ("sequential_us", "one after other", PEER),
    ("time_us", "overlapped", OWN),
    ("limit_us", "limit", LIMIT),
)


def overlap(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns times over comm threads, as the paper does, or over L if their number is the same."""
    x, label = ("comm_threads", "comm threads")
    if len({row.get("comm_threads") for row in rows}) < 2:
        x, label = ("L", "sites along one side of a rank's lattice (L)")
    others = ("operator", "strategy", "ranks", "threads", "mpi_grid", "mpi", "L", "comm_threads")
    keys = [field for field in differing(rows, others) if field != x]
    made: list[Chart] = []
    for key, group in grouped(rows, keys).items():
        series = [
            Series(name, points, role)
            for field, name, role in _STEPS
            if (points := curve(group, x, field))
        ]
        gains = [value for row in group if (value := positive(row, "gain"))]
        if not series or not gains:
            continue
        named = ", ".join(f"{field} {one}" for field, one in zip(keys, key, strict=True))
        made.append(
            Lines(
                f"{named + ': ' if named else ''}overlapping gains {ratio(min(gains))} to "
                f"{ratio(max(gains))}",
                "Time of one hop: its parts alone, one after the other, and overlapped, as the "
                "figures of Meadows et al. 2018; the limit is the longer of the two parts.",
                Axis(label, "number", log=False),
                Axis("time of one hop", "time"),
                tuple(series),
            )
        )
    return tuple(made)


def overlap_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    gains = [value for row in rows if (value := positive(row, "gain"))]
    scaled = [value for row in rows if (value := positive(row, "weak_scaling"))]
    words = "as fast as exchanging first and computing then, at most"
    found = [Finding(ratio(max(gains)), words)] if gains else []
    if scaled:
        found.append(Finding(ratio(max(scaled)), "one rank's work in the same time (weak scaling)"))
    return tuple(found)


# ---- memory, pages, malloc -----------------------------------------------------------------------


def memory(rows: Sequence[Row]) -> tuple[Chart, ...]:
    series = curves(
        rows,
        ["pages", *differing(rows, ("stores", "mpi"))],
        "bytes",
        "mb_per_s",
        lambda row: row.get("pages") == "huge",
    )
    limits = [
        {**row, "limit": length / time}
        for row in rows
        if (time := positive(row, "limit_us")) and (length := positive(row, "bytes"))
    ]
    series += limit_line(limits, "bytes", "limit")
    said = memory_findings(rows)
    if not series:
        return ()
    return (
        Lines(
            f"a·x + y: {said[0].figure} from memory" if said else "a·x + y",
            "Bandwidth of z = a·x + y against the size of the three arrays together, two loads "
            "and one store counted; steps are the caches.",
            Axis("bytes of all arrays", "size"),
            Axis("bandwidth", "rate"),
            tuple(series),
        ),
    )


def memory_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    rated = [row for row in rows if positive(row, "mb_per_s") and positive(row, "bytes")]
    if not rated:
        return ()
    most = max(row["bytes"] for row in rated)
    largest = max((row for row in rated if row["bytes"] == most), key=lambda row: row["mb_per_s"])
    words = f"for a·x + y from memory ({size(most)}, {largest.get('pages')} pages)"
    return (Finding(rate(largest["mb_per_s"]), words),)


def pages(rows: Sequence[Row]) -> tuple[Chart, ...]:
    rated = [row for row in rows if positive(row, "ratio_to_huge") and row.get("pages") != "huge"]
    strips = []
    for key, group in grouped(rated, ["transfer", "path", "pages"]).items():
        points = tuple(
            Point(row["ratio_to_huge"], 0, note=size(number(row, "bytes") or 0)) for row in group
        )
        strips.append(
            Strip(", ".join(filter(None, key)), points, mean([point.x for point in points]))
        )
    if not strips:
        return ()
    worst = max(point.x for strip in strips for point in strip.points)
    return (
        Strips(
            f"Other pages cost up to {ratio(worst)} huge ones",
            "Each dot is one size: the time of a transfer from pages of that kind over that from "
            "2 MiB pages; fresh counts the first touch and the mapping, steady the copy alone.",
            Axis("time over that of huge pages", "ratio"),
            tuple(strips),
            reference=1.0,
            reference_name="as fast",
        ),
    )


def malloc(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns times without the library over times with it: the inverse of the rows' `ratio`."""
    strips = []
    for key, group in grouped(rows, ["workload"]).items():
        points = tuple(
            Point(plain / own, 0, note=f"{time(own)} instead of {time(plain)}")
            for row in group
            if (plain := positive(row, "plain_us")) and (own := positive(row, "time_us"))
        )
        if points:
            strips.append(Strip(key[0], points, mean([point.x for point in points])))
    if not strips:
        return ()
    middle = mean([strip.centre for strip in strips])
    return (
        Strips(
            f"{ratio(middle)} as fast as libc's allocator in the mean of {len(strips)} workloads",
            "Time of an unchanged program without the malloc library over its time with it.",
            Axis("time without / time with", "ratio"),
            tuple(strips),
            reference=1.0,
            reference_name="as fast",
        ),
    )
