"""These classes hold what a picture shows, before it is drawn. Two kinds are enough: lines over an
axis, and strips, where each row has its cases as dots on one axis of ratios or shares."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """`low` and `high` are the spread of y, its least value and its 99th percentile. In strips they
    are the 95 % interval of x."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""  # shown with the value while a pointer rests on it


# The role of a series says what it stands for, and decides how it looks.
OWN, PEER, LIMIT = "own", "peer", "limit"


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[Point, ...]
    role: str = PEER


@dataclass(frozen=True)
class Axis:
    label: str
    form: str  # a key of quantities.FORMS
    log: bool = True


@dataclass(frozen=True)
class Lines:
    """`title` says what was found, and `meaning` says in one sentence what the picture is."""

    title: str
    meaning: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Strip:
    """A strip is one row, with dots at the x of its points. `centre` stands for all of them."""

    name: str
    points: tuple[Point, ...]
    centre: float
    verdict: str = ""  # in words, so that colour is not the only sign


@dataclass(frozen=True)
class Strips:
    title: str
    meaning: str
    axis: Axis
    rows: tuple[Strip, ...]
    reference: float | None = None
    reference_name: str = ""
    worse_below: bool = True  # Dots below the reference are worse, and look different.


Chart = Lines | Strips


@dataclass(frozen=True)
class Table:
    """A table, as the papers print them, has a heading, columns and lines of text."""

    title: str
    meaning: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Finding:
    """A finding is a number as people read it, with words that say what it is."""

    figure: str
    words: str

    def __str__(self) -> str:
        return f"{self.figure} {self.words}"


@dataclass(frozen=True)
class Section:
    """A section shows all that is known of one bench."""

    name: str  # of the bench
    title: str
    meaning: str
    findings: tuple[Finding, ...]
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
