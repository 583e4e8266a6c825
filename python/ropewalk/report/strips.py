"""This module draws strips: each thing that is compared has a row, with a dot for each case."""

from . import svg
from .charts import Strip, Strips
from .quantities import FORMS
from .svg import Scale

_TOP, _BOTTOM = 22.0, 36.0
_ROW, _TALL = 24.0, 38.0  # The name stands beside the dots of a row, or above them.
_LONGEST = 104.0  # Longer names do not stand beside their dots.


def draw(chart: Strips, name: str) -> str:
    """Returns the chart as SVG. `name` must be unique on the page."""
    x = _scale(chart)
    parts = [*_axis(chart, x), *(part for place in _rows(chart) for part in _row(chart, x, *place))]
    return svg.drawing(_height(chart), name, f"{chart.title}. {chart.meaning}", parts)


def _stacked(chart: Strips) -> bool:
    return max(svg.text_width(row.name) for row in chart.rows) > _LONGEST


def _height(chart: Strips) -> float:
    return _TOP + _BOTTOM + len(chart.rows) * (_TALL if _stacked(chart) else _ROW)


def _rows(chart: Strips) -> list[tuple[Strip, float]]:
    """Returns each row with the height at which its dots lie."""
    step, first = (_TALL, 26.0) if _stacked(chart) else (_ROW, 12.0)
    return [(row, _TOP + first + k * step) for k, row in enumerate(chart.rows)]


def _centre(chart: Strips, row: Strip) -> str:
    words = FORMS[chart.axis.form](row.centre)
    return f"{words} {row.verdict}" if row.verdict else words


def _scale(chart: Strips) -> Scale:
    values = [
        value
        for row in chart.rows
        for point in row.points
        for value in (point.x, point.low, point.high)
        if value is not None
    ]
    if chart.reference is not None:
        values.append(chart.reference)
    low, high = svg.span(chart.axis, values)
    names = 6.0 if _stacked(chart) else 10 + max(svg.text_width(row.name) for row in chart.rows)
    ends = max(svg.text_width(_centre(chart, row)) for row in chart.rows)
    return Scale(chart.axis, low, high, names + 6, svg.WIDTH - ends - 12)


def _middle(chart: Strips, x: Scale) -> float:
    half = svg.text_width(chart.axis.label) / 2
    return min(max((x.start + x.end) / 2, half + 2), svg.WIDTH - half - 2)


def _reference(chart: Strips, x: Scale) -> tuple[float, float]:
    half = svg.text_width(chart.reference_name) / 2
    at = x.at(chart.reference or 1.0)
    return min(max(at, half + 2), svg.WIDTH - half - 2), 12


def _axis(chart: Strips, x: Scale) -> list[str]:
    bottom = _height(chart)
    foot = bottom - _BOTTOM
    parts = []
    for tick in x.ticks(across=True):
        parts.append(svg.line(x.at(tick), _TOP, x.at(tick), foot, "grid"))
        parts.append(svg.text(x.at(tick), bottom - 20, x.label(tick), "middle"))
    if chart.reference is not None:
        at = x.at(chart.reference)
        parts.append(svg.line(at, _TOP - 4, at, foot, "line limit"))
        parts.append(svg.text(*_reference(chart, x), chart.reference_name, "middle", "name"))
    parts.append(svg.line(x.start, foot, x.end, foot, "axis"))
    label = svg.text(_middle(chart, x), bottom - 4, chart.axis.label, "middle", "name")
    return [*parts, label]


def _row(chart: Strips, x: Scale, row: Strip, at: float) -> list[str]:
    up = at - 14 if _stacked(chart) else at + 4
    parts = [svg.text(2, up, row.name, kind="row")]
    for point in row.points:
        worse = chart.worse_below and point.x < (chart.reference or 0)
        kind = "p0" if worse else "own"
        if point.low is not None and point.high is not None:
            parts.append(svg.line(x.at(point.low), at, x.at(point.high), at, f"spread {kind}"))
        told = f"{point.note}: {FORMS[chart.axis.form](point.x)}"
        parts.append(svg.mark(1 if worse else 0, x.at(point.x), at, f"mark dot {kind}", told))
    centre = x.at(row.centre)
    if len(row.points) > 1:
        parts.append(svg.line(centre, at - 8, centre, at + 8, "centre"))
    parts.append(svg.text(svg.WIDTH - 2, at + 4, _centre(chart, row), "end", "strong"))
    return parts
