"""The last lines of `ropewalk bench`: a summary of the rows of all programs."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]


def lines(rows: Sequence[Row], seconds: float) -> list[str]:
    """Text for the rows of all programs, under all MPIs."""
    made = [f"Summary ({seconds:.0f} s)"]
    for (bench, mpi), group in _groups(rows).items():
        text = {
            "comms": _comms,
            "memory": _memory,
            "pages": _pages,
            "collectives": _against_plain,
            "p2p": _against_plain,
            "gradient": _gradient,
            "overlap": _overlap,
            "itt": _itt,
        }.get(bench, _fastest)(group)
        if text:
            made.append(f"  {bench:<11} {mpi:<9} {text}")
    wrong = [row for row in rows if row.get("verified") is False]
    if wrong:
        made.append(f"  {len(wrong)} rows had WRONG DATA, the first: {_case(wrong[0])}")
    return made


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.get("bench") not in (None, "machine"):
            groups.setdefault((row["bench"], row.get("mpi_family", "")), []).append(row)
    return groups


def _comms(rows: Sequence[Row]) -> str | None:
    """The fastest exchange, and the most that huge pages gain over memalign in one case."""
    text = _fastest(rows)
    names = ("L", "strategy", "buffers", "bytes", "lanes")
    plain = {_key(row, names): _rate(row) for row in rows if row.get("pages") == "memalign"}
    pairs = [
        (_rate(row), plain.get(_key(row, names))) for row in rows if row.get("pages") == "huge"
    ]
    gains = [huge / other for huge, other in pairs if huge and other]
    return f"{text}; huge pages up to {max(gains):.2f} x memalign" if text and gains else text


def _against_plain(rows: Sequence[Row]) -> str | None:
    """The geometric mean of the plain MPI's time over ropewalk's, and the least."""
    rated = [row for row in rows if isinstance(row.get("ratio"), (int, float)) and row["ratio"] > 0]
    if not rated:
        return None
    mean = math.exp(sum(math.log(row["ratio"]) for row in rated) / len(rated))
    least = min(rated, key=lambda row: row["ratio"])
    return f"{mean:.2f} x the plain MPI; least {least['ratio']:.2f} x ({_case(least)})"


def _gradient(rows: Sequence[Row]) -> str | None:
    """ropewalk's longest vector against the published variant and the limit."""
    ours = [row for row in rows if row.get("variant") == "ropewalk" and row.get("floats")]
    if not ours:
        return None
    row = max(ours, key=lambda one: one["floats"])
    parts = []
    if isinstance(row.get("times_published"), (int, float)):
        parts.append(f"{row['times_published']:.1f} x as published")
    if isinstance(row.get("ratio"), (int, float)):
        parts.append(f"{row['ratio']:.2f} x the plain MPI")
    if isinstance(row.get("limit_percent"), (int, float)):
        parts.append(f"{row['limit_percent']:.0f} % of the limit")
    return f"{', '.join(parts)} ({row['floats']} floats)" if parts else None


def _memory(rows: Sequence[Row]) -> str | None:
    """The largest case is memory's; smaller ones show caches."""
    size = max((row.get("bytes", 0) for row in rows), default=0)
    text = _fastest([row for row in rows if row.get("bytes") == size])
    limits = [
        row["limit_percent"]
        for row in rows
        if row.get("bytes") == size and isinstance(row.get("limit_percent"), (int, float))
    ]
    return f"{text}; {max(limits):.0f} % of the limit" if text and limits else text


def _overlap(rows: Sequence[Row]) -> str | None:
    """The largest gain over exchanging first and computing then, and the least."""
    rated = [row for row in rows if isinstance(row.get("gain"), (int, float))]
    if not rated:
        return None
    best, least = (pick(rated, key=lambda row: row["gain"]) for pick in (max, min))
    return (
        f"{best['gain']:.2f} x exchange, then compute ({best.get('strategy')}, L={best.get('L')}, "
        f"{best.get('comm_threads')} comm threads); least {least['gain']:.2f} x"
    )


def _itt(rows: Sequence[Row]) -> str | None:
    """The comparison points, one a layout; without one the fastest operator."""
    points = [row for row in rows if row.get("table") == "comparison"]
    if points:
        return "comparison point, Mflop/s per node: " + ", ".join(
            f"{row['mflops_per_node']:.0f} ({row.get('ranks')} x {row.get('threads')})"
            for row in points
        )
    rated = [row for row in rows if isinstance(row.get("mflops_per_node"), (int, float))]
    if not rated:
        return _fastest(rows)
    best = max(rated, key=lambda row: row["mflops_per_node"])
    return f"{best['mflops_per_node']:.0f} Mflop/s per node ({best.get('op')}, L={best.get('L')})"


def _pages(rows: Sequence[Row]) -> str | None:
    scattered = [row for row in rows if row.get("pages", "scattered") == "scattered"]
    rated = [row for row in scattered if isinstance(row.get("ratio_to_huge"), (int, float))]
    if not rated:
        return None
    worst = max(rated, key=lambda row: row["ratio_to_huge"])
    case = ", ".join(str(worst[name]) for name in ("transfer", "path") if name in worst)
    return (
        f"scattered 4 KiB pages cost up to {worst['ratio_to_huge']:.2f} x huge ones "
        f"({case}, {worst.get('bytes')} bytes)"
    )


def _fastest(rows: Sequence[Row]) -> str | None:
    rated = [(rate, row) for row in rows if (rate := _rate(row)) is not None]
    if not rated:
        return None
    rate, best = max(rated, key=lambda pair: pair[0])
    return f"{rate:.0f} MB/s ({_case(best)})"


def _rate(row: Row) -> float | None:
    rate = row.get("mb_per_s")
    rate = rate.get("median") if isinstance(rate, dict) else rate
    return rate if isinstance(rate, (int, float)) else None


def _key(row: Row, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in names)


# What tells a row's case apart, in the order of reading.
_CASE = ("op", "type", "strategy", "pages", "buffers", "bytes")


def _case(row: Row) -> str:
    return ", ".join(
        f"{row[name]} {name}" if name == "bytes" else str(row[name])
        for name in _CASE
        if name in row
    )
