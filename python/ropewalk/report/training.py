"""This module makes the pictures of torch: its collectives beside Gloo's, and trainings."""

from collections.abc import Sequence

from . import peers
from .charts import Axis, Chart, Finding, Point, Strip, Strips, Table
from .quantities import mean, percent, ratio, significant
from .rows import Row, grouped, positive, word

_OWN = "ropewalk"
_CASE = ("model", "scaling", "memory", "ranks")


def _trainings(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if positive(row, "samples_per_s") and row.get("model")]


def _own(rows: Sequence[Row]) -> list[Row]:
    """Returns ropewalk's rows that compare with another backend. With one rank nobody waits."""
    found = [row for row in _trainings(rows) if row.get("backend") == _OWN]
    return [row for row in found if positive(row, "ratio") and row.get("ranks") != 1]


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    compared = _own(rows)
    return (*peers.charts(rows), *([_strips(compared)] if compared else []))


def _strips(rows: Sequence[Row]) -> Strips:
    strips = []
    for (model, scaling), group in grouped(rows, ["model", "scaling"]).items():
        points = tuple(Point(positive(row, "ratio") or 0, 0, note=_note(row)) for row in group)
        strips.append(
            Strip(f"{model}, {scaling} scaling", points, mean([point.x for point in points]))
        )
    won = sum(point.x > 1 for strip in strips for point in strip.points)
    return Strips(
        f"ropewalk trains faster than Gloo in {won} of {len(rows)} cases",
        "Each dot is one number of ranks and kind of memory: samples of a second with ropewalk "
        "over those with Gloo in the same run, by DistributedDataParallel.",
        Axis("samples a second, ropewalk / Gloo", "ratio"),
        tuple(strips),
        reference=1.0,
        reference_name="as fast",
    )


def _note(row: Row) -> str:
    return f"{word(row.get('ranks'))} ranks, {word(row.get('memory'))}"


def findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    compared = _own(rows)
    if not compared:
        return peers.findings(rows)
    ratios = [positive(row, "ratio") or 0 for row in compared]
    told = f"as many samples a second as with Gloo, in {len(ratios)} trainings; the geometric mean"
    return (*peers.findings(rows), Finding(ratio(mean(ratios)), told))


def tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    lines = []
    for key, group in grouped(_trainings(rows), list(_CASE)).items():
        by_backend = {word(row.get("backend")): row for row in group}
        backends = (by_backend.get("gloo", {}), by_backend.get(_OWN, {}))
        cells = [_cell(row, "samples_per_s") for row in backends]
        cells += [_share(row, "communication_share") for row in backends]
        cells += [_share(row, "efficiency") for row in backends]
        lines.append((*key, *cells))
    if not lines:
        return ()
    return (
        Table(
            "Trainings",
            "Samples of a second, the share of a step that communication takes, and the samples of "
            "a rank over those of one rank alone. Each figure first with Gloo, then with ropewalk.",
            (
                *("model", "scaling", "memory", "ranks", "samples/s: Gloo", "ropewalk"),
                *("communication: Gloo", "ropewalk", "efficiency: Gloo", "ropewalk"),
            ),
            tuple(lines),
        ),
    )


def _cell(row: Row, field: str) -> str:
    value = positive(row, field)
    return significant(value) if value else "–"


def _share(row: Row, field: str) -> str:
    value = positive(row, field)
    return percent(100 * value) if value else "–"
