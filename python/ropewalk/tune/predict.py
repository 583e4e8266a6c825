"""These functions add what `ropewalk tune` has measured to the answers of `ropewalk explain`."""

from __future__ import annotations

import os
from typing import Any

from . import check, estimate, model, profile

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
    """Adds to each alternative of a collective `predicted_us`, `rests_on` (what that was measured
    or estimated from), `measured_us` where this very size was measured, and `model_error`, the
    share by which predictions from other points are off at the worst of its points. They are None
    where the profile has no such cost. Adds to `assumed` for what the times do not hold."""
    asked = answer["asked"]
    held = {"nodes": notes.nodes, "ranks": notes.ranks, "crowded": notes.crowded}
    fits = all(asked[name] == value for name, value in held.items())
    if notes.costs and not fits:
        answer["assumed"].append(
            f"times are estimates where there are any: the profile's are of {check.words(held)}"
        )
    beyond = False
    for one in answer["alternatives"]:
        cost = notes.costs.get(_key(asked, one)) if fits else None
        one |= _times(cost, asked["size"]) if cost else _estimated(asked, one, notes)
        beyond |= cost is not None and not cost.reaches(asked["size"])
    if beyond:
        answer["assumed"].append(
            "times beyond the sizes that were measured continue as those of the last ones"
        )


def _subject(asked: Answer) -> str:
    subject: str = asked["subject"]
    return _SUBJECTS.get(subject, subject)


def _key(asked: Answer, alternative: Answer) -> tuple[str, str, str]:
    """Under which a profile has the cost of an alternative."""
    if asked["nodes"] > 1:
        return _subject(asked), "nodes", alternative["algorithm"]
    # Data that travels in the slots is copied there, so the kind of its memory does not matter.
    is_private = asked["private_memory"] and alternative["path"] != "inlined"
    return _subject(asked), "private" if is_private else "arena", alternative["path"]


def _times(cost: model.Model, size: int) -> Answer:
    return {
        "predicted_us": cost.predicted(size),
        "measured_us": cost.observed(size),
        "model_error": cost.error(),
        "rests_on": [
            f"{profile.size_text(at)} measured: {us:.3g} us" for at, us in cost.rests_on(size)
        ],
    }


def _estimated(asked: Answer, alternative: Answer, notes: profile.Notes) -> Answer:
    """The same from the wire, or from the kernel's copies, where the call itself was not
    measured."""
    made: Answer = dict.fromkeys(("predicted_us", "measured_us", "model_error"))
    made["rests_on"] = []
    if asked["nodes"] > 1:
        wire = estimate.wire_of(notes.costs)
        if wire is None:
            return made
        call = estimate.Call(asked["size"], asked["nodes"], asked["ranks"])
        made["predicted_us"] = estimate.over_nodes(
            wire, _subject(asked), alternative.get("algorithm", ""), call
        )
        of = f"the wire alone: {wire.latency:.3g} us, {1 / max(wire.rate, 1e-9):.0f} MB/s"
    elif alternative["path"] == "cma":
        made["predicted_us"] = estimate.by_kernel(
            notes.costs, notes.ranks or 1, _subject(asked), asked["ranks"], asked["size"]
        )
        of = f"the kernel's copies with {asked['ranks']} ranks at once"
    if made["predicted_us"] is not None:
        made["rests_on"] = [of]
    return made


def time_text(alternative: Answer) -> str:
    """Returns "; 12 us predicted (8K measured: 9 us, 16K measured: 15 us; within 9 %)" or the like,
    or "" without a time."""
    predicted = alternative.get("predicted_us")
    if predicted is None:
        return ""
    if alternative["measured_us"] is not None:
        return f"; {predicted:.3g} us measured"
    of = ", ".join(alternative["rests_on"])
    if alternative["model_error"] is None:
        return f"; {predicted:.3g} us at least (estimated from {of})"
    return f"; {predicted:.3g} us predicted ({of}; model within " + (
        f"{100 * alternative['model_error']:.0f} %)"
    )
