"""This module has parts of SVG: marks, scales, and text whose width is known without a browser.

Colours are given as classes. The page's style sheet says what they are in light and in dark.
"""

import html
import itertools
import math
from collections.abc import Sequence

from .charts import Axis
from .quantities import FORMS, linear_ticks, log_ticks

WIDTH = 360.0  # in units of the drawing; a phone is about as many pixels wide
FONT = 11.0  # the height of letters in these units
LINE = 14.0  # the distance of two lines of text

# The widths of letters, as parts of the font's height, are those of DejaVu Sans, the widest font
# that a browser takes where a machine has no other.
_NARROW = dict.fromkeys("ijlI.,:;'|! \N{NO-BREAK SPACE}", 0.33) | dict.fromkeys("frt/()-[]", 0.42)
_WIDE = dict.fromkeys("mM", 0.98) | dict.fromkeys("wW%", 0.96) | dict.fromkeys("+×=<>~≥", 0.84)
_USUAL, _CAPITAL = 0.64, 0.74


def text_width(text: str, font: float = FONT) -> float:
    """Returns the width in units that the text has at most."""
    known = {**_NARROW, **_WIDE}
    parts = (known.get(one, _CAPITAL if one.isupper() else _USUAL) for one in text)
    return font * sum(parts)


def n(value: float) -> str:
    """Returns a coordinate as text, to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def escape(text: str) -> str:
    return html.escape(text, quote=True)


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{n(x)}" y="{n(y)}"{anchored}{named}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{n(x1)} {n(y1)}L{n(x2)} {n(y2)}"/>'


def polyline(points: Sequence[tuple[float, float]], kind: str) -> str:
    way = "L".join(f"{n(x)} {n(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{way}"/>'


# Marks tell series apart without their colours. Each is about 7 units across.
_MARKS = (
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "m-3 -3h6v6h-6z",
    "m0 -4l4 7h-8z",
    "m0 -4.2l4.2 4.2l-4.2 4.2l-4.2-4.2z",
    "m0 4l4-7h-8z",
    "m-1.3 -4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
    "m-4 -1.5h8v3h-8z",
    "m-1.5 -4h3v8h-3z",
)


def mark(shape: int, x: float, y: float, kind: str, words: str = "") -> str:
    """Returns a mark at (x, y). `words` appear while a pointer rests on it."""
    way = f"M{n(x)} {n(y)}{_MARKS[shape % len(_MARKS)]}"
    told = f"<title>{escape(words)}</title>" if words else ""
    return f'<path class="{kind}" d="{way}">{told}</path>'


def drawing(height: float, name: str, what: str, parts: Sequence[str]) -> str:
    """Returns a drawing. `name` must be unique on the page; `what` is for those who do not see."""
    return (
        f'<svg viewBox="0 0 {n(WIDTH)} {n(height)}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{escape(what)}</title>{"".join(parts)}</svg>'
    )


class Scale:
    """A scale maps the values of an axis to units of a drawing, from `start` to `end`."""

    def __init__(self, axis: Axis, low: float, high: float, start: float, end: float) -> None:
        self.axis, self.low, self.high, self.start, self.end = axis, low, high, start, end

    def at(self, value: float) -> float:
        change = math.log if self.axis.log else float
        low, high = change(self.low), change(self.high)
        share = (change(value) - low) / ((high - low) or 1.0)
        return self.start + share * (self.end - self.start)

    def label(self, tick: float) -> str:
        return FORMS[self.axis.form](tick)

    def ticks(self, across: bool, values: Sequence[float] = ()) -> list[float]:
        """Returns as many ticks as have room for their labels, across or one above the other. On an
        even axis they are these values, if those have room."""
        if values and not self.axis.log and self._fit(sorted(set(values)), across):
            return sorted(set(values))
        make = (
            log_ticks(self.low, self.high, self.axis.form)
            if self.axis.log
            else (linear_ticks(self.low, self.high))
        )
        for ticks in make:
            if len(ticks) >= 2 and self._fit(ticks, across):
                return ticks
        return [make[-1][0]] if make and make[-1] else []

    def _fit(self, ticks: list[float], across: bool) -> bool:
        places = [self.at(tick) for tick in ticks]
        if not across:
            return all(abs(a - b) >= 1.6 * FONT for a, b in itertools.pairwise(places))
        halves = [text_width(self.label(tick)) / 2 + 3 for tick in ticks]
        return all(
            abs(places[k + 1] - places[k]) >= halves[k] + halves[k + 1]
            for k in range(len(ticks) - 1)
        )


def span(axis: Axis, values: Sequence[float], zero: bool = True) -> tuple[float, float]:
    """Returns the ends of an axis that shows these values. With `zero` an even one shows 0 too."""
    low, high = min(values), max(values)
    if not axis.log:
        return (
            (min(0.0, low), high * 1.05 or 1.0) if zero else (low, high if high > low else low + 1)
        )
    room = max((high / low) ** 0.06, 1.12)
    return low / room, high * room
