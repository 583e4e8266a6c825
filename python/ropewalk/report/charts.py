"""What a picture shows, before it is drawn. Two kinds are enough: lines over an axis, and strips,
where each row has its cases as dots on one axis of ratios or shares."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """`low` and `high` are the spread of y: its least value and its 99th percentile."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""  # shown with the value when a pointer rests on it


# What a series stands for, and so how it looks.
OWN, PEER, LIMIT = "own", "peer", "limit"


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[Point, ...]
    role: str = PEER


@dataclass(frozen=True)
class Axis:
    label: str
    form: str  # of quantities.FORMS
    log: bool = True


@dataclass(frozen=True)
class Lines:
    """`title` says what was found, `meaning` in one sentence what the picture is."""

    title: str
    meaning: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Strip:
    """One row: dots at the x of its points, and `centre`, which stands for all of them."""

    name: str
    points: tuple[Point, ...]
    centre: float
    verdict: str = ""  # in words, where colour says it too


@dataclass(frozen=True)
class Strips:
    title: str
    meaning: str
    axis: Axis
    rows: tuple[Strip, ...]
    reference: float | None = None
    reference_name: str = ""
    worse_below: bool = True  # than the reference: such dots look different


Chart = Lines | Strips


@dataclass(frozen=True)
class Table:
    """Of the papers' kind: a heading, columns and lines of text."""

    title: str
    meaning: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Finding:
    """A number as people read it, and what it is."""

    figure: str
    words: str

    def __str__(self) -> str:
        return f"{self.figure} {self.words}"


@dataclass(frozen=True)
class Section:
    """All of one bench."""

    name: str  # of the bench
    title: str
    meaning: str
    findings: tuple[Finding, ...]
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
