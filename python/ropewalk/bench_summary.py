"""The last lines of `ropewalk bench`: the best figure of each table, from the rows alone."""


def lines(rows, seconds):
    """Text for the rows of all programs, under all MPIs."""
    made = [f"Summary ({seconds:.0f} s)"]
    for (bench, mpi), group in _groups(rows).items():
        best = _best(group)
        if best is not None:
            made.append(f"  {bench:<8} {mpi:<10} {best}")
    wrong = [row for row in rows if row.get("verified") is False]
    if wrong:
        made.append(f"  {len(wrong)} rows had WRONG DATA: {_case(wrong[0])}")
    return made


def _groups(rows):
    groups = {}
    for row in rows:
        if row.get("bench") not in (None, "machine"):
            key = row["bench"].removeprefix("ropewalk-bench-"), row.get("mpi_family", "")
            groups.setdefault(key, []).append(row)
    return groups


def _best(rows):
    rated = [row for row in rows if isinstance(_rate(row), (int, float))]
    if not rated:
        return None
    best = max(rated, key=_rate)
    return f"{_rate(best):.0f} MB/s: {_case(best)}"


def _rate(row):
    rate = row.get("mb_per_s")
    return rate.get("median") if isinstance(rate, dict) else rate


# What tells a row's case apart, in the order of reading.
_CASE = ("op", "type", "strategy", "pages", "buffers", "bytes", "L", "ranks", "lanes")


def _case(row):
    words = [f"{name} {row[name]}" for name in _CASE if name in row]
    return ", ".join(words)
