"""This module draws lines over an axis, each with its name at its end."""

from collections.abc import Sequence

from . import svg
from .charts import LIMIT, OWN, Lines, Point, Series
from .quantities import FORMS
from .svg import Scale

HEIGHT = 250.0
_TOP, _BOTTOM = 24.0, 36.0
_MARK = 14.0  # from the end of the axis to a name, with the mark between them
_COLOURS = 6  # The style sheet has so many colours for peers.
_MOST = int((HEIGHT - _TOP - _BOTTOM) // svg.LINE) + 1  # Names have room up to this number.


def shown(chart: Lines) -> tuple[Series, ...]:
    """Returns the series for which a picture has room. ropewalk and the limit come before peers."""
    order = sorted(
        chart.series,
        key=lambda one: (OWN, LIMIT).index(one.role) if one.role in (OWN, LIMIT) else 2,
    )
    kept = order[:_MOST]
    return tuple(one for one in chart.series if one in kept)


def kinds(series: Sequence[Series]) -> list[tuple[str, int]]:
    """Returns the class and the mark of each series. The mark -1 is none."""
    found, peers, own = [], 0, 0
    for one in series:
        if one.role == OWN:
            found.append((f"own own{own % 3}", 0))
            own += 1
        elif one.role == LIMIT:
            found.append(("limit", -1))
        else:
            found.append((f"p{peers % _COLOURS}", 1 + peers))
            peers += 1
    return found


def draw(chart: Lines, name: str) -> str:
    """Returns the chart as SVG. `name` must be unique on the page."""
    series = shown(chart)
    x, y = _scales(chart, series)
    parts = [*_axes(series, x, y), *_series(series, x, y), *_names(series, x, y)]
    return svg.drawing(HEIGHT, name, f"{chart.title}. {chart.meaning}", parts)


def _scales(chart: Lines, series: Sequence[Series]) -> tuple[Scale, Scale]:
    points = [point for one in series for point in one.points]
    heights = [
        value
        for point in points
        for value in (point.y, point.low, point.high)
        if value is not None and (value > 0 or not chart.y.log)
    ]
    low, high = svg.span(chart.y, heights)
    y = Scale(chart.y, low, high, HEIGHT - _BOTTOM, _TOP)
    left = 10 + max((svg.text_width(y.label(tick)) for tick in y.ticks(False)), default=0)
    right = svg.WIDTH - _MARK - 4 - max(svg.text_width(one.name) for one in series)
    low, high = svg.span(chart.x, _across(series), zero=False)
    return Scale(chart.x, low, high, left + 8 * (not chart.x.log), right), y


def _across(series: Sequence[Series]) -> list[float]:
    return [point.x for one in series for point in one.points]


def _inside(x: Scale, tick: float) -> float:
    """Returns the middle of a tick's label, moved so that the label stays in the drawing."""
    half = svg.text_width(x.label(tick)) / 2
    return min(max(x.at(tick), half), svg.WIDTH - half)


def _x_title(x: Scale) -> tuple[float, float]:
    half = svg.text_width(x.axis.label) / 2
    middle = (x.start + x.end) / 2
    return min(max(middle, half + 2), svg.WIDTH - half - 2), HEIGHT - 4


def _axes(series: Sequence[Series], x: Scale, y: Scale) -> list[str]:
    parts = [svg.text(2, 12, y.axis.label, kind="name")]
    for tick in y.ticks(across=False):
        parts.append(svg.line(x.start, y.at(tick), x.end, y.at(tick), "grid"))
        parts.append(svg.text(x.start - 6, y.at(tick) + 4, y.label(tick), "end"))
    for tick in x.ticks(True, _across(series)):
        parts.append(svg.line(x.at(tick), y.start, x.at(tick), y.start + 4, "axis"))
        parts.append(svg.text(_inside(x, tick), HEIGHT - 20, x.label(tick), "middle"))
    parts.append(svg.line(x.start, y.start, x.end, y.start, "axis"))
    parts.append(svg.text(*_x_title(x), x.axis.label, "middle", "name"))
    return parts


def _series(series: Sequence[Series], x: Scale, y: Scale) -> list[str]:
    parts = []
    # ropewalk's series are drawn last, so that they lie on top.
    for one, (kind, shape) in sorted(
        zip(series, kinds(series), strict=True), key=lambda pair: pair[0].role == OWN
    ):
        places = [(x.at(point.x), y.at(point.y)) for point in one.points]
        if len(places) > 1 or one.role == LIMIT:
            parts.append(
                svg.polyline(
                    places if len(places) > 1 else [(x.start, places[0][1]), (x.end, places[0][1])],
                    f"line {kind}",
                )
            )
        for point, (across, up) in zip(one.points, places, strict=True):
            if point.low is not None and point.high is not None and one.role == OWN:
                parts.append(
                    svg.line(across, y.at(point.low), across, y.at(point.high), f"spread {kind}")
                )
            if shape >= 0:
                parts.append(svg.mark(shape, across, up, f"mark {kind}", _told(one, point, x, y)))
    return parts


def _told(series: Series, point: Point, x: Scale, y: Scale) -> str:
    words = f"{series.name}, {x.label(point.x)}: {y.label(point.y)}"
    if point.low is not None and point.high is not None:
        form = FORMS[y.axis.form]
        words += f" ({form(point.low)} to {form(point.high)})"
    return f"{words}, {point.note}" if point.note else words


def _places(series: Sequence[Series], y: Scale) -> list[float]:
    """Returns the heights of the names: those of the lines' ends, but a line of text apart."""
    wanted = [y.at(one.points[-1].y) for one in series]
    order = sorted(range(len(series)), key=lambda k: wanted[k])
    low, high = _TOP + 2, HEIGHT - _BOTTOM - 2
    places = dict.fromkeys(order, 0.0)
    at = low - svg.LINE
    for k in order:  # Going down, each is at least a line below the last.
        at = max(at + svg.LINE, wanted[k])
        places[k] = at
    limit = high + svg.LINE
    for k in reversed(order):  # Going up, all move above the lower edge.
        limit = min(limit - svg.LINE, places[k])
        places[k] = limit
    return [places[k] for k in range(len(series))]


def _names(series: Sequence[Series], x: Scale, y: Scale) -> list[str]:
    parts = []
    for one, (kind, shape), at in zip(series, kinds(series), _places(series, y), strict=True):
        end = one.points[-1]
        parts.append(svg.line(x.at(end.x) + 4, y.at(end.y), x.end + 3, at, f"lead {kind}"))
        if shape >= 0:
            parts.append(svg.mark(shape, x.end + 7, at, f"mark {kind}"))
        else:
            parts.append(svg.line(x.end + 2, at, x.end + 12, at, f"line {kind}"))
        weight = "strong" if one.role == OWN else ""
        parts.append(svg.text(x.end + _MARK, at + 4, one.name, kind=weight))
    return parts
