"""This module writes profiles for `ropewalk tune`, and reads their notes for `ropewalk explain`.

The library itself reads the values of thresholds and the machine (src/tuning/profile.hpp). This
module reads the lines that say what the values rest on: `measured.NAME`, and
`cost.SUBJECT.MEMORY.PATH`, which has pairs of bytes and microseconds. Between nodes MEMORY is
`nodes`, and PATH the algorithm.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from typing import Any

from ..errors import CommandError
from . import model

_RANKS = "cost.ranks"
_NODES = "cost.nodes"
_CROWDED = "cost.crowded"


@dataclasses.dataclass
class Notes:
    """Notes are what a profile says besides the values of thresholds."""

    # The costs were measured with so many ranks on each of so many nodes.
    ranks: int | None = None
    nodes: int = 1
    crowded: bool = False  # ranks of a node shared cores
    measured: dict[str, str] = dataclasses.field(default_factory=dict)  # by threshold
    # The keys are subject, memory and path.
    costs: dict[tuple[str, str, str], model.Model] = dataclasses.field(default_factory=dict)


def _refuse(path: str, number: int, problem: str) -> CommandError:
    remedy = "write it anew with `ropewalk tune`, or leave the line out"
    return CommandError(f"ROPEWALK_PROFILE: {path}:{number}: {problem}; {remedy}", 1)


def read(path: str, origin: str = "ROPEWALK_PROFILE") -> Notes:
    """Returns the notes of a profile, which may be empty. A CommandError names file and line;
    `origin` is what names the file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise CommandError(f"{origin}: {path}: {error.strerror}", 1) from None
    notes = Notes()
    points: dict[tuple[str, str, str], list[model.Point]] = {}
    limits: tuple[int, ...] = ()
    for number, line in enumerate(lines, 1):
        name, _, value = (part.strip() for part in line.partition("#")[0].partition("="))
        if name == "machine.caches":
            limits = model.cache_limits(value)
        elif name == _RANKS:
            notes.ranks = _whole(path, number, name, value, "ranks")
        elif name == _NODES:
            notes.nodes = _whole(path, number, name, value, "nodes")
        elif name == _CROWDED:
            notes.crowded = value == "yes"
        elif name.startswith("measured."):
            notes.measured[name.removeprefix("measured.")] = value
        elif name.startswith("cost."):
            points[_key(path, number, name)] = _points(path, number, name, value)
    notes.costs = {key: model.fit(all_points, limits) for key, all_points in points.items()}
    return notes


def _whole(path: str, number: int, name: str, value: str, of: str) -> int:
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise _refuse(path, number, f'{name}: found "{value}", expected a number of {of}')


def _key(path: str, number: int, name: str) -> tuple[str, str, str]:
    words = name.split(".")
    if len(words) == 4 and all(words):
        return words[1], words[2], words[3]
    raise _refuse(path, number, f'found "{name}", expected cost.SUBJECT.MEMORY.PATH')


def _points(path: str, number: int, name: str, value: str) -> list[model.Point]:
    points: list[model.Point] = []
    for word in value.split():
        size, _, time = word.partition(":")
        try:
            points.append((int(size), float(time)))
        except ValueError:
            points.append((-1, 0.0))
        if points[-1][0] < 0 or not 0 < points[-1][1] < float("inf"):
            expected = "BYTES:MICROSECONDS, as in 4096:0.25"
            raise _refuse(path, number, f'{name}: found "{word}", expected {expected}')
    if points:
        return points
    raise _refuse(path, number, f"{name}: found nothing, expected BYTES:MICROSECONDS pairs")


# ---- writing -------------------------------------------------------------------------------------


def size_text(size: int) -> str:
    """Returns the size as the library writes it: 64K, 1M, 5184."""
    for power, letter in ((40, "T"), (30, "G"), (20, "M"), (10, "K")):
        if size and size % (1 << power) == 0:
            return f"{size >> power}{letter}"
    return str(size)


def columns(rows: list[list[str]]) -> list[str]:
    """Returns the rows as lines, the first column set to the left and the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            f"{cell:<{width}}" if i < 1 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _value(row: dict[str, Any], which: str) -> str:
    return size_text(row[which]) if row["unit"] == "bytes" else str(row[which])


def _measured(row: dict[str, Any]) -> str:
    """Returns what a value rests on, in one line: by size the ratios of the times of its ways."""
    if row["skipped"]:
        return f"not measured: {row['skipped']}"
    sizes = []
    for size in sorted(row["sizes"], key=lambda one: int(one["bytes"])):
        ratios = " ".join(f"{one:.2f}" for one in size["ratio"][1:])
        sizes.append(f"{size_text(size['bytes'])} {ratios}")
    what = "above/below" if row["border"] else f"others/{_value(row, 'before')}"
    saves = ""
    if row["value"] != row["before"]:
        saves = f"; {_value(row, 'value')} saves {100 * row['gain']:.0f} % of "
        saves += f"{_value(row, 'before')}, noise {100 * row['noise']:.0f} %"
    return f"time {what}: {', '.join(sizes)}{saves}"


def situation(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the numbers of `nodes` and of `ranks` on each, and whether they are `crowded`."""
    for row in rows:
        if row.get("what") == "situation":
            return {name: row[name] for name in ("nodes", "ranks", "crowded")}
    raise CommandError("the measurement wrote no row of its ranks; build the benches anew", 1)


def _cost_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the lines of what was measured, and of how many ranks on how many nodes it holds."""
    costs: dict[str, list[str]] = {}
    for row in (one for one in rows if one.get("what") == "cost"):
        name = f"cost.{row['subject']}.{row['memory']}.{row['path']}"
        costs.setdefault(name, []).append(f"{row['bytes']}:{row['us']:.4g}")
    if not costs:
        return []
    found = situation(rows)
    lines = ["", f"{_RANKS} = {found['ranks']}"]
    if found["nodes"] > 1:
        lines.append(f"{_NODES} = {found['nodes']}")
    if found["crowded"]:
        lines.append(f"{_CROWDED} = yes")
    return lines + [f"{name} = {' '.join(points)}" for name, points in sorted(costs.items())]


def text(rows: list[dict[str, Any]], heading: list[str]) -> str:
    """Returns the profile of what was measured, out of the rows that the bench has written."""
    lines = [*(f"# {one}" for one in heading), ""]
    for row in rows:
        if row.get("what") == "machine":
            lines += [f"{name} = {value}" for name, value in row.items() if "machine." in name]
    lines.append("")
    for row in (one for one in rows if one.get("what") == "threshold"):
        if row["value"] != row["default"]:
            comment = f"# default {_value(row, 'default')}"
            lines.append(f"{row['name']} = {_value(row, 'value')}  {comment}")
        lines.append(f"measured.{row['name']} = {_measured(row)}")
    lines += _cost_lines(rows)
    return "\n".join(lines) + "\n"


def write(path: str, contents: str) -> None:
    """Writes the whole file or nothing: an interruption leaves the file that was there before."""
    folder = os.path.dirname(path) or "."
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=".ropewalk-", delete=False
        ) as file:
            temporary = file.name
            file.write(contents)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise CommandError(f"--output: {path}: {error.strerror}", 1) from None
    finally:
        if temporary is not None:
            os.unlink(temporary)
