"""`ropewalk tune --check` measures sizes that a profile does not have, and shows what the profile
predicts for them beside what was observed."""

from __future__ import annotations

import dataclasses
import json
import statistics
from typing import Any

from ..errors import CommandError
from . import profile

Row = dict[str, Any]

CLOSE = 0.15  # A prediction is close where it is off by at most this share.
_WORST = 5  # cases that are named


@dataclasses.dataclass(frozen=True)
class Compared:
    """One case: what is predicted beside what was observed."""

    subject: str
    memory: str
    path: str
    size: int
    predicted: float  # microseconds
    observed: float

    @property
    def error(self) -> float:
        return self.predicted / self.observed - 1

    def row(self) -> Row:
        return {
            "subject": self.subject,
            "memory": self.memory,
            "path": self.path,
            "bytes": self.size,
            "predicted_us": self.predicted,
            "observed_us": self.observed,
            "error": self.error,
        }


def compare(rows: list[Row], notes: profile.Notes) -> list[Compared]:
    """Returns all cases of the rows for which the profile has a cost. Raises CommandError where
    the profile holds for other ranks."""
    found = profile.situation(rows)
    held = {"nodes": notes.nodes, "ranks": notes.ranks, "crowded": notes.crowded}
    if found != held:
        raise CommandError(
            f"--check: the profile is of {words(held)}, measured were {words(found)}; start as many"
        )
    all_cases = []
    for row in (one for one in rows if one.get("what") == "cost"):
        key = (row["subject"], row["memory"], row["path"])
        cost = notes.costs.get(key)
        if cost is not None and cost.reaches(row["bytes"]):
            predicted = cost.predicted(row["bytes"])
            all_cases.append(Compared(*key, row["bytes"], predicted, row["us"]))
    return all_cases


def refuse_others(path: str, notes: profile.Notes, ranks: int | None) -> None:
    """Raises CommandError, before anything is measured, for a profile that has no costs, or has
    those of other ranks. In a box, which says how many there are, they are compared afterwards."""
    if not notes.costs:
        raise CommandError(
            f"--output: '{path}' has no measurements to check, expected a profile that `ropewalk "
            "tune` has written; name one, or measure without --check first"
        )
    if ranks is None or (notes.ranks is not None and -(-ranks // notes.nodes) == notes.ranks):
        return  # the fullest node has so many
    of = "an unknown number of" if notes.ranks is None else notes.ranks * notes.nodes
    raise CommandError(f"--ranks: {ranks}, but '{path}' is of {of} ranks; start as many")


def words(situation: dict[str, Any]) -> str:
    """Returns "2 ranks on one node, each with a core" and the like."""
    ranks = "an unknown number of" if situation["ranks"] is None else situation["ranks"]
    where = "one node" if situation["nodes"] == 1 else f"each of {situation['nodes']} nodes"
    cores = "sharing cores" if situation["crowded"] else "each with a core"
    return f"{ranks} ranks on {where}, {cores}"


def show(rows: list[Row], notes: profile.Notes, *, as_json: bool) -> int:
    """Prints the table, or one JSON object; the exit status."""
    compared = compare(rows, notes)
    if not compared:
        raise CommandError("--check: the profile has none of the costs that were measured", 1)
    if as_json:
        print(json.dumps({"compared": [one.row() for one in compared]}))
    else:
        print(text(compared))
    return 0


def text(compared: list[Compared]) -> str:
    """Returns a line for each algorithm, and the cases that are predicted worst."""
    groups: dict[tuple[str, str, str], list[Compared]] = {}
    for one in compared:
        groups.setdefault((one.subject, one.memory, one.path), []).append(one)
    table = [["algorithm", "sizes", "within 15 %", "median error", "worst", "at"]]
    for key, cases in groups.items():
        worst = max(cases, key=lambda one: abs(one.error))
        table.append(
            [
                " ".join(key),
                str(len(cases)),
                str(sum(abs(one.error) <= CLOSE for one in cases)),
                f"{100 * statistics.median(abs(one.error) for one in cases):.0f} %",
                f"{100 * worst.error:+.0f} %",
                profile.size_text(worst.size),
            ]
        )
    close = sum(abs(one.error) <= CLOSE for one in compared)
    lines = ["\ntimes that the profile predicts, beside those observed between its sizes:"]
    lines += profile.columns(table)
    lines.append(f"  predicted within 15 %: {close} of {len(compared)}; the worst:")
    for one in sorted(compared, key=lambda case: -abs(case.error))[:_WORST]:
        lines.append(
            f"    {one.subject} {one.memory} {one.path}, {profile.size_text(one.size)}: "
            f"{one.predicted:.3g} us predicted, {one.observed:.3g} observed "
            f"({100 * one.error:+.0f} %)"
        )
    return "\n".join(lines)
