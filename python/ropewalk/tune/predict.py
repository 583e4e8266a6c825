"""These functions add what `ropewalk tune` has measured to the answers of `ropewalk explain`."""

from __future__ import annotations

import os
from typing import Any

from . import profile

Answer = dict[str, Any]

# The bench has other names for these subjects. Forms with counts cost what those without do.
_SUBJECTS = {
    "broadcast": "bcast",
    "allgatherv": "allgather",
    "gatherv": "gather",
    "scatterv": "scatter",
    "alltoallv": "alltoall",
}

REMEDY = "run `ropewalk tune` here, or set ROPEWALK_PROFILE_MACHINE=any"


def notes_in_force(refused: str) -> profile.Notes | None:
    """Returns the notes of ROPEWALK_PROFILE, or None where it is not set or is refused."""
    path = os.environ.get("ROPEWALK_PROFILE")
    return profile.read(path) if path and not refused else None


def add_measurements(rows: list[Answer], notes: profile.Notes) -> None:
    """Adds to the rows of thresholds what their values rest on."""
    for row in rows:
        row["measured"] = notes.measured.get(row["name"], "")


def add_times(answer: Answer, notes: profile.Notes) -> None:
    """Adds to each alternative of a collective `predicted_us`, `measured_us` where this very size
    was measured, and `model_error`, the share by which the model is off at the worst of its points.
    They are None where the profile has no such cost. Adds to `assumed` for what the times do not
    hold."""
    asked = answer["asked"]
    fits = asked["nodes"] == 1 and asked["ranks"] == notes.ranks and not asked["crowded"]
    if notes.costs and not fits:
        how_many = "an unknown number of" if notes.ranks is None else notes.ranks
        answer["assumed"].append(
            f"no times: the profile's are of {how_many} ranks on one node, each with a core"
        )
    subject = _SUBJECTS.get(asked["subject"], asked["subject"])
    memory = "private" if asked["private_memory"] else "arena"
    beyond = False
    for one in answer["alternatives"]:
        # Data that travels in the slots is copied there, so the kind of its memory does not matter.
        of = "arena" if one["path"] == "inlined" else memory
        cost = notes.costs.get((subject, of, one["path"])) if fits else None
        one["predicted_us"] = cost.predicted(asked["size"]) if cost else None
        one["measured_us"] = cost.observed(asked["size"]) if cost else None
        one["model_error"] = cost.error() if cost else None
        beyond |= cost is not None and not cost.reaches(asked["size"])
    if beyond:
        answer["assumed"].append(
            "times beyond the sizes that were measured continue as those of the last ones"
        )


def time_text(alternative: Answer) -> str:
    """Returns "; 12 us predicted (measured 11.8, model within 9 %)", or "" without a time."""
    predicted = alternative.get("predicted_us")
    if predicted is None:
        return ""
    measured = alternative["measured_us"]
    beside = f"measured {measured:.3g}, " if measured is not None else ""
    return f"; {predicted:.3g} us predicted ({beside}model within " + (
        f"{100 * alternative['model_error']:.0f} %)"
    )
