"""`ropewalk report` reads files of rows and writes the page."""

import dataclasses
import datetime
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import CommandError
from ..options import Parser
from ..paths import is_same_file
from . import compare, page, rows, sections
from .charts import Section

DESCRIPTION = """Make one HTML page out of the rows that benches write: the papers' tables and
figures, with peers and limits beside ropewalk. The page needs no script and no network; it is read
on a phone as on a wall, in light and in dark, and prints."""

NOTES = """FILES hold JSON lines, as `ropewalk bench --json FILE` writes them; - is standard input.
Several files make one page."""

EXAMPLES = (
    ("ropewalk bench collectives --against mpich,openmpi --json rows.json", ""),
    ("ropewalk report rows.json -o rows.html", "one page of it"),
    ("ropewalk report *.json", "of all benches; writes report.html"),
    ("ropewalk report --compare before.json after.json", "what has changed, and is it sure?"),
)
STATUSES = (
    ("0", "the page is written"),
    ("1", "a file or a row cannot be read, or the page not written"),
    ("2", "the command line was wrong"),
)


@dataclasses.dataclass
class ReportOptions:
    files: list[str] = dataclasses.field(default_factory=list)
    compare: list[str] | None = None
    output: str = "report.html"
    title: str | None = None
    json: bool = False


def parser() -> Parser:
    made = Parser(
        "ropewalk report",
        DESCRIPTION,
        "ropewalk report [FILES] [options]",
        notes=NOTES,
        examples=EXAMPLES,
        statuses=STATUSES,
    )
    made.add_argument(
        "files", nargs="*", metavar="FILES", help="files with rows of benches; - is standard input"
    )
    made.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="show how B differs from A, case by case, with 95 %% intervals of the ratios",
    )
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the page to write; - is standard output; default: report.html",
    )
    made.add_argument(
        "--title", help="the title of the page; default: made of the name of the machine"
    )
    made.add_argument(
        "--json", action="store_true", help="also write the findings to standard output, as JSON"
    )
    return made


def main(words: Sequence[str]) -> int:
    """Writes the page. Returns the exit status."""
    options = parser().parse_args(words, namespace=ReportOptions())
    if not options.files and options.compare is None:
        raise CommandError(
            "FILES: none is given; write rows with `ropewalk bench collectives --json rows.json`, "
            "then call `ropewalk report rows.json`"
        )
    if options.json and options.output == "-":
        raise CommandError("--json: standard output has the page already; name a file with -o")
    _refuse_input(options)
    runs = [rows.read(file) for file in options.files]
    found: list[Section] = []
    if options.compare is not None:
        a, b = (rows.read(file) for file in options.compare)
        found.append(compare.section(a, b, compare.cases(a, b)))
        runs += [a, b]
    every = [row for run in runs[: len(options.files)] for row in run.rows]
    found += sections.sections(every)
    text = page.page(_title(options, runs), _subtitle(runs), found, runs, _made())
    _write(options.output, text)
    if options.output != "-":
        _tell(options, found, sum(len(run.rows) for run in runs))
    return 0


def _refuse_input(options: ReportOptions) -> None:
    """The page is not written over the rows that it is made of."""
    for file in (*options.files, *(options.compare or ())):
        if "-" not in (file, options.output) and is_same_file(file, options.output):
            raise CommandError(f"-o: '{options.output}' holds rows to read; name another file")


def _title(options: ReportOptions, runs: Sequence[rows.Run]) -> str:
    if options.title:
        return options.title
    what = "ropewalk: what has changed" if options.compare else "ropewalk measured"
    names = list(
        dict.fromkeys(rows.word(machine.get("cpu")) for run in runs for machine in run.machines)
    )
    return f"{what} on {names[0]}" if len(names) == 1 and names[0] else what


def _subtitle(runs: Sequence[rows.Run]) -> str:
    machines = [machine for run in runs for machine in run.machines]
    cores = sorted({machine["cores"] for machine in machines if machine.get("cores")})
    mpis = list(
        dict.fromkeys(
            one.strip()
            for machine in machines
            for one in rows.word(machine.get("mpi")).split(", ")
            if one.strip()
        )
    )
    count = sum(len(run.rows) for run in runs)
    parts = [f"{count} rows of {len(runs)} file{'s' * (len(runs) != 1)}"]
    parts += [f"{' and '.join(map(str, cores))} cores"] if cores else []
    parts += [", ".join(mpis)] if mpis else []
    return "; ".join(parts)


def _made() -> str:
    from .. import __version__

    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made by ropewalk {__version__} report on {day}."


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"-o: {output}: {error.strerror}", status=1) from None


def _tell(options: ReportOptions, found: Sequence[Section], count: int) -> None:
    if options.json:
        print(json.dumps(_findings(options.output, found)))
        return
    for section in found:
        for finding in section.findings:
            print(f"{section.title}: {finding}")
    kilobytes = os.path.getsize(options.output) / 1000
    print(f"{options.output}: {count} rows, {kilobytes:.0f} kB")


def _findings(output: str, found: Sequence[Section]) -> dict[str, Any]:
    return {
        "page": output,
        "sections": [
            {
                "bench": one.name,
                "findings": [str(finding) for finding in one.findings],
                "figures": [chart.title for chart in one.charts],
                "notes": list(one.notes),
            }
            for one in found
        ],
    }
