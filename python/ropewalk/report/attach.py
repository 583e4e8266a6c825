"""This module makes the pictures of attach: what registration costs and what a cache saves of it
(Hashmi et al. 2018), and what caches count of recorded traces."""

from collections.abc import Sequence

from .charts import OWN, PEER, Axis, Chart, Finding, Lines, Series, Table
from .exchanges import curve
from .quantities import percent, size, time
from .rows import Row, differing, grouped, positive, word


def _of(rows: Sequence[Row], what: str) -> list[Row]:
    return [row for row in rows if row.get("what") == what]


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Returns times by size, of each mechanism with a registration cache and without."""
    series = []
    for (mechanism, cache), group in grouped(_of(rows, "steps"), ["mechanism", "cache"]).items():
        points = curve(group, "bytes", "time_us")
        name = f"{mechanism}, cache {cache}"
        if points:
            series.append(Series(name, points, OWN if cache == "on" else PEER))
    if not series:
        return ()
    return (
        Lines(
            "Memory of another rank, attached each time and kept attached",
            "Time of one transfer: without the cache with its registration, the first touch and "
            "the release, with the cache the look-up and the copy.",
            Axis("bytes", "size"),
            Axis("time", "time"),
            tuple(series),
        ),
    )


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """Returns the share of registration in the smallest transfer of memory that was attached."""
    attached = [
        row
        for row in _of(rows, "steps")
        if row.get("cache") == "off" and positive(row, "registration_percent")
        if positive(row, "bytes") and positive(row, "time_us")
    ]
    if not attached:
        return ()
    least = min(attached, key=lambda row: row["bytes"])
    words = f"of the time of {size(least['bytes'])} ({least.get('mechanism')}) is registration"
    return (Finding(percent(least["registration_percent"]), words),)


def tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    return (*_contention(_of(rows, "contention")), *_replay(_of(rows, "replay")))


def _contention(rows: Sequence[Row]) -> tuple[Table, ...]:
    fields = ["pattern", *differing(rows, ("ranks", "mpi"))]
    sizes = sorted({row["bytes"] for row in rows if positive(row, "bytes")})
    lines = []
    for key, group in grouped(rows, fields).items():
        by = {row.get("bytes"): positive(row, "us") for row in group}
        cells = (time(value) if (value := by.get(one)) else "–" for one in sizes)
        lines.append((*key, *cells))
    if not lines:
        return ()
    return (
        Table(
            "Copies by the kernel at once",
            "Time of a copy that one rank makes alone, that all others make from rank 0, and that "
            "each makes from the next.",
            (*fields, *(size(one) for one in sizes)),
            tuple(lines),
        ),
    )


def _replay(rows: Sequence[Row]) -> tuple[Table, ...]:
    fields = ("trace", "capacity", "eviction", "requests", "hits", "misses", "evictions")
    lines = tuple(tuple(word(row.get(field)) for field in fields) for row in rows)
    if not lines:
        return ()
    meaning = "What registration caches of so many entries count of recorded traces."
    return (Table("Traces replayed", meaning, fields, lines),)
