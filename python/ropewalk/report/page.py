"""This module writes the page: sections, their pictures, and the machines that were measured. It is
one file of HTML that needs neither script nor network."""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

from . import lines, strips
from .charts import Chart, Lines, Section, Table
from .quantities import FORMS
from .rows import Run, machine_facts, short
from .svg import escape


def style() -> str:
    path = os.path.join(os.path.dirname(__file__), "style.css")
    with open(path, encoding="utf-8") as file:
        return file.read()


def page(
    title: str, subtitle: str, sections: Sequence[Section], runs: Sequence[Run], made: str
) -> str:
    """Returns the whole file. `made` says how and when it was made."""
    numbers = itertools.count(1)
    body = "\n".join(_section(section, numbers) for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style()}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="soft">{escape(subtitle)}</p>
</header>
<main>
{_cards(sections)}
{body}
<section id="machine"><h2>What was measured on</h2>
{_machines(runs)}
</section>
</main>
<footer><p>{escape(made)}</p>
<p>Times are medians of rounds; the thin bars and the numbers in brackets are the least and the
99th percentile. Ratios compare within one run, in the same processes and on the same buffers.</p>
</footer>
</body>
</html>
"""


def _cards(sections: Sequence[Section]) -> str:
    """Returns a card of findings for each section, which stand before all pictures."""
    cards = [
        f'<li><h3><a href="#{escape(section.name)}">{escape(section.title)}</a></h3>'
        + "".join(
            f"<p><strong>{escape(one.figure)}</strong> {escape(one.words)}</p>"
            for one in section.findings
        )
        + "</li>"
        for section in sections
        if section.findings
    ]
    return f'<ul class="cards">{"".join(cards)}</ul>' if cards else ""


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:] if not words.startswith("ropewalk") else words


def _section(section: Section, numbers: Iterator[int]) -> str:
    wrong = [note for note in section.notes if "WRONG" in note]
    told = " ".join(note for note in section.notes if note not in wrong)
    notes = f'<p class="soft">{escape(told)}</p>' if told else ""
    notes += "".join(f'<p class="wrong">{escape(note)}</p>' for note in wrong)
    charts = "\n".join(_figure(chart, next(numbers)) for chart in section.charts)
    tables = "\n".join(_table_card(table) for table in section.tables)
    return (
        f'<section id="{escape(section.name)}"><h2>{escape(section.title)}</h2>\n'
        f"<p>{escape(section.meaning)}</p>{notes}\n"
        f'<div class="charts">{charts}</div>\n{tables}</section>'
    )


def _figure(chart: Chart, number: int) -> str:
    draw = lines.draw if isinstance(chart, Lines) else strips.draw
    drawing = draw(chart, f"figure-{number}")  # type: ignore[arg-type]
    return (
        f"<figure><figcaption><h3>{escape(_capital(chart.title))}</h3>"
        f'<p class="meaning">{escape(chart.meaning)}</p></figcaption>\n{drawing}\n'
        f"<details><summary>The numbers</summary>{_html(*_numbers(chart))}</details></figure>"
    )


def _numbers(chart: Chart) -> tuple[Sequence[str], Iterable[Sequence[str]]]:
    """Returns heading and lines of the table with the numbers that a picture shows."""
    if isinstance(chart, Lines):
        return _numbers_of_lines(chart)
    form = FORMS[chart.axis.form]
    heads = ["", "cases", "least", "mean", "most"]
    body = [
        (
            row.name,
            str(len(row.points)),
            *(
                form(value)
                for value in (
                    min(point.x for point in row.points),
                    row.centre,
                    max(point.x for point in row.points),
                )
            ),
        )
        for row in chart.rows
    ]
    return heads, body


def _numbers_of_lines(chart: Lines) -> tuple[Sequence[str], Iterable[Sequence[str]]]:
    across, up = FORMS[chart.x.form], FORMS[chart.y.form]
    places = sorted({point.x for one in chart.series for point in one.points})
    by = [{point.x: point.y for point in one.points} for one in chart.series]
    body = [
        (across(place), *(up(one[place]) if place in one else "–" for one in by))
        for place in places
    ]
    return [chart.x.label, *(one.name for one in chart.series)], body


def _html(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines_ = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in body
    )
    return (
        '<div class="scroll" tabindex="0"><table><thead><tr>'
        f"{heads}</tr></thead><tbody>{lines_}</tbody></table></div>"
    )


def _table_card(table: Table) -> str:
    return (
        f'<div class="table"><h3>{escape(table.title)}</h3>'
        f'<p class="meaning">{escape(table.meaning)}</p>{_html(table.head, table.lines)}</div>'
    )


def _machines(runs: Sequence[Run]) -> str:
    """Returns each file with its machine. Facts that several files share appear once."""
    facts: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for run in runs:
        for machine in run.machines or ({},):
            key = tuple(machine_facts(machine))
            names = facts.setdefault(key, [])
            if short(run.file) not in names:
                names.append(short(run.file))
    return "\n".join(_facts(key, files) for key, files in _joined(facts))


def _joined(
    facts: dict[tuple[tuple[str, str], ...], list[str]],
) -> Iterable[tuple[list[tuple[str, str]], list[tuple[str, str]]]]:
    """Returns [(facts of a machine, [(file, what differs: MPI, settings, command, commit)])]."""
    own = ("MPI", "Settings of the MPI", "Command", "Commit")
    machines: dict[tuple[tuple[str, str], ...], list[tuple[str, str]]] = {}
    for key, files in facts.items():
        shared = tuple(pair for pair in key if pair[0] not in own)
        said = "; ".join(words for name, words in key if name in own)
        machines.setdefault(shared, []).extend((file, said) for file in files)
    return [(list(shared), files) for shared, files in machines.items()]


def _facts(facts: Sequence[tuple[str, str]], files: Sequence[tuple[str, str]]) -> str:
    pairs = [*(facts or [("Machine", "these rows do not say on which machine they were made")])]
    pairs += files
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in pairs)
    return f'<div class="facts"><dl>{body}</dl></div>'
