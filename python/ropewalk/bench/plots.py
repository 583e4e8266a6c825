"""`ropewalk bench gradient --plot`: figures 1 to 5 of section IV of Boyle et al. 2017; and what all
figures of benches need.
"""

import importlib
import os
from collections.abc import Sequence
from typing import Any

from ..errors import CommandError

Row = dict[str, Any]
Path = str | os.PathLike[str]

# Each entry has a title, what a row has of it, and the scale of its axis.
FIGURES = (
    ("bandwidth inside communication, MB/s", "mb_per_s", "log"),
    ("time in communication, s", "communication_us", "log"),
    ("everything else, s", "other_us", "log"),
    ("share of communication, %", "communication_percent", "linear"),
    ("wall time, s", "time_us", "log"),
)
MARKERS = {"published": "s", "improved": "^", "ropewalk": "o", "mpi": "x"}


def require() -> Any:
    """matplotlib, drawing to files only."""
    try:
        matplotlib = importlib.import_module("matplotlib")
        matplotlib.use("Agg")
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise CommandError(
            "--plot: matplotlib is not here; `pip install matplotlib`, or write the rows with "
            "--json and draw them elsewhere"
        ) from None


def check(path: str) -> None:
    """Error where no figure could be written to `path`: before hours of measuring."""
    figure = require().figure()
    known = sorted(figure.canvas.get_supported_filetypes())
    require().close(figure)
    ending = os.path.splitext(path)[1].removeprefix(".").lower()
    if ending not in known:
        raise CommandError(
            f"--plot: {path}: '{ending}' is no kind of figure, expected {', '.join(known)}; "
            "write for example --plot figure.svg"
        )


def curves(rows: Sequence[Row], key: str) -> dict[str, tuple[list[int], list[float]]]:
    """{label: (lengths, values)} of the rows of the bench, by variant (and MPI, if several)."""
    mine = [row for row in rows if row.get("bench") == "gradient"]
    several = len({row.get("mpi") for row in mine}) > 1
    found: dict[str, tuple[list[int], list[float]]] = {}
    for row in sorted(mine, key=lambda one: one["floats"]):
        value = row.get(key)
        value = value.get("median") if isinstance(value, dict) else value
        if not isinstance(value, (int, float)):
            continue
        if key.endswith("_us"):
            value /= 1e6
        label = row["variant"] + (f", {row.get('mpi')}" if several else "")
        lengths, values = found.setdefault(label, ([], []))
        lengths.append(row["floats"])
        values.append(value)
    return found


def limit(rows: Sequence[Row]) -> tuple[list[int], list[float]]:
    """Lengths and seconds of the limit, where there is one."""
    found = {row["floats"]: row["limit_us"] / 1e6 for row in rows if "limit_us" in row}
    return sorted(found), [found[length] for length in sorted(found)]


def save(pyplot: Any, figure: Any, path: Path) -> None:
    """Writes the figure to a file; its ending says in which format."""
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"--plot: {os.fspath(path)}: {error}", status=1) from None
    finally:
        pyplot.close(figure)


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Writes the five figures to a file."""
    if not curves(rows, "time_us"):
        raise CommandError("--plot: there are no rows of the bench gradient to draw", status=1)
    pyplot = require()
    figure, panels = pyplot.subplots(2, 3, figsize=(15, 8), layout="constrained")
    for panel, (title, key, scale) in zip(panels.flat, FIGURES, strict=False):
        for label, (lengths, values) in curves(rows, key).items():
            variant = label.split(",")[0]
            panel.plot(lengths, values, marker=MARKERS.get(variant, "."), label=label)
        if key == "time_us" and limit(rows)[0]:
            panel.plot(*limit(rows), linestyle="--", color="black", label="limit")
        panel.set_xscale("log", base=2)
        panel.set_yscale(scale)
        panel.set_title(title)
        panel.set_xlabel("floats")
        panel.grid(alpha=0.3)
    panels.flat[4].legend()
    panels.flat[5].axis("off")
    save(pyplot, figure, path)
