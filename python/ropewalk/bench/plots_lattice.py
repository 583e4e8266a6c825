"""`ropewalk bench overlap --plot`, the two figures of Meadows et al. 2018; and `ropewalk bench itt
--plot`, the tables of the report.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CommandError
from . import plots
from .plots import Path, Row

Curves = dict[str, tuple[list[float], list[float]]]


def value(row: Row, key: str) -> float | None:
    """A number of a row, or the median of several."""
    found = row.get(key)
    found = found.get("median") if isinstance(found, dict) else found
    return found if isinstance(found, (int, float)) else None


def grouped(
    rows: Sequence[Row],
    label: Callable[[Row], str],
    x: Callable[[Row], float | None],
    y: Callable[[Row], float | None],
) -> Curves:
    """{label(row): (x values, y values)} of the rows that have both, sorted by x."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        across, up = x(row), y(row)
        if across is not None and up is not None:
            found.setdefault(label(row), []).append((across, up))
    return {
        name: ([one for one, _ in sorted(points)], [one for _, one in sorted(points)])
        for name, points in found.items()
    }


def overlap_label(row: Row, rows: Sequence[Row]) -> str:
    """What tells a curve from the others: layout and volume, and all that differs."""
    words = [f"{row['ranks']} x {row['threads']}", f"L={row['L']}"]
    for key in ("operator", "mpi_grid", "strategy", "face_precision", "mpi_family"):
        if len({one.get(key) for one in rows}) > 1:
            words.append(str(row.get(key)))
    return ", ".join(words)


def overlap_curves(rows: Sequence[Row], key: str) -> Curves:
    """By layout of ranks x threads and volume: comm threads, and what the rows say of them."""
    mine = [row for row in rows if row.get("bench") == "overlap"]
    return grouped(
        mine,
        lambda row: overlap_label(row, mine),
        lambda row: row.get("comm_threads"),
        lambda row: value(row, key),
    )


def itt_label(name: str, row: Row, rows: Sequence[Row]) -> str:
    """The name of a curve, with the layout and the MPI where these differ among the rows."""
    words = [name]
    if len({(one.get("ranks"), one.get("threads")) for one in rows}) > 1:
        words.append(f"{row.get('ranks')} x {row.get('threads')}")
    if len({one.get("mpi_family") for one in rows}) > 1:
        words.append(str(row.get("mpi_family")))
    return ", ".join(words)


def itt_curves(rows: Sequence[Row], table: str, key: str, name: Callable[[Row], str]) -> Curves:
    """Of one table of the report, by L."""
    mine = [row for row in rows if row.get("bench") == "itt" and row.get("table") == table]
    return grouped(
        mine,
        lambda row: itt_label(name(row), row, mine),
        lambda row: row.get("L"),
        lambda row: value(row, key),
    )


def _panel(panel: Any, curves: Curves, title: str, x: str, scale: str = "log") -> None:
    if not curves:
        panel.axis("off")
        return
    for label, (across, up) in curves.items():
        panel.plot(across, up, marker="o", label=label)
    panel.set_yscale(scale)
    panel.set_title(title)
    panel.set_xlabel(x)
    panel.set_xticks(sorted({one for across, _ in curves.values() for one in across}))
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")


def draw_overlap(path: Path, rows: Sequence[Row]) -> None:
    """Time of the overlapped hop, and bandwidth of its exchange, over the comm threads."""
    if not overlap_curves(rows, "time_us"):
        raise CommandError("--plot: there are no rows of the bench overlap to draw", status=1)
    pyplot = plots.require()
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    times, rates = (overlap_curves(rows, key) for key in ("time_us", "exchange_mb_per_s"))
    _panel(panels[0], times, "hop and overlapped exchange, us (ranks x threads)", "comm threads")
    _panel(panels[1], rates, "exchange alone, MB/s sent by a rank", "comm threads")
    plots.save(pyplot, figure, path)


def roofs(rows: Sequence[Row]) -> Curves:
    """{level: (intensities, Gflop/s)} of the measured rooflines, and the highest peak."""
    levels = [row for row in rows if row.get("table") == "roofline"]
    if not levels:
        return {}
    across = [0.5 * 2 ** (step / 4) for step in range(21)]  # 0.5 to 16 flops a byte
    several = len({(row.get("ranks"), row.get("threads")) for row in levels}) > 1
    found = {}
    for row in levels:
        label = str(row["level"]) + (f", {row['ranks']} x {row['threads']}" if several else "")
        rate = row["mb_per_s"] / 1e3
        found[label] = (across, [min(row["peak_gflops"], one * rate) for one in across])
    return found


def _draw_roofline(panel: Any, rows: Sequence[Row]) -> None:
    for label, (across, up) in roofs(rows).items():
        panel.plot(across, up, linewidth=1, label=label)
    mine = [row for row in rows if row.get("table") == "operators" and value(row, "intensity")]
    for row in mine:
        at = (row["intensity"], value(row, "gflops"))
        panel.plot(*at, "k.")
        panel.annotate(f"{row['op']} {row['L']}", at, fontsize=6)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    panel.set_title("operators under the measured roofline, Gflop/s")
    panel.set_xlabel("flops a byte")
    panel.grid(alpha=0.3)
    if panel.get_legend_handles_labels()[1]:
        panel.legend(fontsize="small")


def draw_itt(path: Path, rows: Sequence[Row]) -> None:
    """Operators, their share of the roofline, stencil exchange and memory, over L."""
    if not any(row.get("bench") == "itt" for row in rows):
        raise CommandError("--plot: there are no rows of the bench itt to draw", status=1)
    pyplot = plots.require()
    figure, panels = pyplot.subplots(2, 3, figsize=(18, 9), layout="constrained")
    operators = itt_curves(rows, "summary", "gflops", lambda row: row["op"])
    tables = itt_curves(rows, "operators", "gflops", lambda row: row["op"])
    shares = itt_curves(rows, "summary", "roof_percent", lambda row: row["op"])
    stencil = itt_curves(rows, "stencil", "uni_mb_per_s", lambda row: f"as {row.get('path')}")
    memory = itt_curves(rows, "memory", "mb_per_s", lambda row: "a*x + y")
    _panel(panels[0, 0], operators, "Wilson and domain wall, Gflop/s of all ranks", "L", "linear")
    _panel(panels[0, 1], tables, "operators of tables V and VI, Gflop/s", "L", "linear")
    _draw_roofline(panels[0, 2], rows)
    _panel(panels[1, 0], stencil, "stencil halo exchange, MB/s a node sends", "L")
    _panel(panels[1, 1], memory, "a*x + y, MB/s of all ranks", "L")
    _panel(panels[1, 2], shares, "Wilson and domain wall, % of the roof", "L", "linear")
    plots.save(pyplot, figure, path)
