"""The tables of docs/results/ and of README.md are made from rows of JSON, by this script alone.

    scripts/results.py                       writes every table anew
    scripts/results.py --check               fails where a table is not what the rows say
    scripts/results.py take NAME FILE... --command "ropewalk bench ..." [--where KEY=VALUE,...]
                                             keeps what a benchmark wrote as data/NAME.jsonl

A page holds a table between `<!-- table ... -->` and `<!-- end -->`. The first comment says, as
TOML, which rows of which file it shows:

    data = "collectives"                     docs/results/data/collectives.jsonl
    where = {op = ["reduce", "bcast"]}       only these rows; a value or a list of values
    [columns]                                heading = text with fields of the row in braces
    bytes = "{bytes:size}"

A field in braces is a key of the row; dots go into nested ones, and of `time_us` the median is
meant. Behind a colon: size, us, ratio, percent, or spread (median, least and 99th percentile).
Besides:

    across = "bytes:size", cell = "{ratio}"  the values of a field become columns of their own
    group = ["op"], ratio = "ratio", case = "{bytes:size}"
                                             one line a group; its columns may name {mean}, the
                                             geometric mean, {least}, {best} and their cases
                                             {least_case}, {best_case}

Below a table stand its command, machine, MPI, commit and number of rounds, from the first line of
the file (`origin = false` leaves this out, where another table of the page has it), and with
`extremes = "ratio"` its best and its least cell, named by `extremes_case` or `case`.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results"
TABLE = re.compile(r"(<!-- table\n(.*?)-->\n).*?(<!-- end -->)", re.DOTALL)
FIELD = re.compile(r"\{([\w.]+)(?::(\w+))?\}")
COLUMNS = 100

Row = dict[str, Any]

# What no table shows, and what would tell whose machine it was.
LEFT_OUT = {"host", "page_backing", "ranks_on_nodes", "cases", "memory_bytes", "autogroup"}


# ---- numbers as people read them


def significant(value: float) -> str:
    """Three digits, without an exponent: 0.0798, 1.25, 72.1, 110, 1598."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"


def size(value: float) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:g} B"


def spread(value: Any) -> str:
    if not isinstance(value, dict):
        return significant(float(value))
    if "min" not in value:
        return significant(value["median"])
    low, high = significant(value["min"]), significant(value["p99"])
    return f"{significant(value['median'])} ({low} to {high})"


def plain(value: Any) -> str:
    return significant(value) if isinstance(value, float) else str(value)


FORMATS: dict[str | None, Callable[[Any], str]] = {
    None: plain,
    "size": size,
    "us": significant,
    "ratio": lambda value: f"{value:.2f}" if value < 10 else f"{value:.1f}",
    "percent": lambda value: f"{value:.0f} %",
    "spread": spread,
}


# ---- rows


def look_up(row: Row, path: str) -> Any:
    """The value of "time_us.min"; None where the row has none."""
    value: Any = row
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def filled(text: str, row: Row) -> str:
    """The text with the fields of the row; "-" where it has none of them."""

    def one(match: re.Match[str]) -> str:
        value = look_up(row, match.group(1))
        if value is None:
            return "\0"
        if isinstance(value, dict) and match.group(2) != "spread":
            value = value["median"]
        return FORMATS[match.group(2)](value)

    made = FIELD.sub(one, text)
    return "-" if "\0" in made else made


def read(name: str) -> tuple[Row, list[Row]]:
    """The machine's line and the rows of data/NAME.jsonl."""
    path = RESULTS / f"data/{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if not lines or lines[0].get("bench") != "machine":
        sys.exit(f"{path}: its first line is not that of the machine")
    return lines[0], lines[1:]


def chosen(rows: list[Row], where: dict[str, Any]) -> list[Row]:
    def fits(row: Row) -> bool:
        return all(
            look_up(row, key) in (wanted if isinstance(wanted, list) else [wanted])
            for key, wanted in where.items()
        )

    return [row for row in rows if fits(row)]


# ---- tables


def markdown(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    head = list(head)
    made = [head, ["---"] * len(head), *map(list, lines)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in made)


def list_table(spec: Row, rows: list[Row]) -> str:
    columns = spec["columns"]
    return markdown(columns, ([filled(text, row) for text in columns.values()] for row in rows))


def pivot_table(spec: Row, rows: list[Row]) -> str:
    """Rows that differ in the field `across` alone share a line."""
    field, _, form = spec["across"].partition(":")
    heads: dict[Any, str] = {}
    lines: dict[tuple[str, ...], dict[Any, str]] = {}
    for row in rows:
        value = look_up(row, field)
        heads[value] = FORMATS[form or None](value)
        key = tuple(filled(text, row) for text in spec["columns"].values())
        lines.setdefault(key, {})[value] = filled(spec["cell"], row)
    order = sorted(heads) if all(isinstance(v, (int, float)) for v in heads) else list(heads)
    return markdown(
        [*spec["columns"], *(heads[value] for value in order)],
        ([*key, *(cells.get(value, "") for value in order)] for key, cells in lines.items()),
    )


def summary(spec: Row, rows: list[Row]) -> Row:
    """A row that stands for several: its mean, its least and its best."""
    field, case = spec["ratio"], spec["case"]
    rows = [row for row in rows if look_up(row, field)]
    least = min(rows, key=lambda row: look_up(row, field))
    best = max(rows, key=lambda row: look_up(row, field))
    logarithms = [math.log(look_up(row, field)) for row in rows]
    return {
        **rows[0],
        "mean": math.exp(sum(logarithms) / len(logarithms)),
        "least": look_up(least, field),
        "least_case": filled(case, least),
        "best": look_up(best, field),
        "best_case": filled(case, best),
        "cases": len(rows),
    }


def group_table(spec: Row, rows: list[Row]) -> str:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(look_up(row, key) for key in spec["group"]), []).append(row)
    return list_table(spec, [summary(spec, members) for members in groups.values()])


def extremes(spec: Row, rows: list[Row]) -> str:
    case = spec.get("extremes_case", spec.get("case", ""))
    one = summary({"ratio": spec["extremes"], "case": case}, rows)
    best, least, mean = (FORMATS["ratio"](one[name]) for name in ("best", "least", "mean"))
    return (
        f"Best {best} ({one['best_case']}), least {least} ({one['least_case']}), geometric mean "
        f"{mean} over {one['cases']} cells."
    )


def machine_words(machine: Row) -> str:
    words = [f"{machine['cores']} cores of an {machine['cpu']}"] if "cpu" in machine else []
    for cache in machine.get("caches", []):
        words.append(f"L{cache['level']} {size(cache['bytes'])}")
    if "kernel" in machine:
        words.append(machine["kernel"].split("-")[0])
    if "torch" in machine:
        words.append(f"PyTorch {machine['torch'].split('+')[0]}")
    words += [machine[key] for key in ("mpi", "origin") if machine.get(key)]
    if "commit" in machine:
        words.append(f"commit {machine['commit']}")
    return ", ".join(words)


def rounds(rows: list[Row]) -> str:
    counts = {look_up(row, "time_us.n") for row in rows} - {None}
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    return f" Medians of {low} rounds." if low == high else f" Medians of {low} to {high} rounds."


def provenance(spec: Row, machine: Row, rows: list[Row], folder: pathlib.Path) -> str:
    """The lines below a table: how it came about."""
    words = [extremes(spec, rows)] if "extremes" in spec else []
    if spec.get("origin", True) is False:
        return "".join(f"\n{wrapped(each)}\n" for each in words)
    text = f"`{machine['command']}`; {machine_words(machine)}.{rounds(rows)}"
    data = (RESULTS / f"data/{spec['data']}.jsonl").relative_to(folder)
    words.append(f"{text} [Rows]({data})")
    return "".join(f"\n{wrapped(each)}\n" for each in words)


def wrapped(text: str) -> str:
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def table(text: str, folder: pathlib.Path) -> str:
    spec = tomllib.loads(text)
    machine, rows = read(spec["data"])
    rows = chosen(rows, spec.get("where", {}))
    if not rows:
        sys.exit(f"no row of data/{spec['data']}.jsonl fits {spec.get('where')}")
    kind = group_table if "group" in spec else pivot_table if "across" in spec else list_table
    return kind(spec, rows) + provenance(spec, machine, rows, folder)


def rendered(path: pathlib.Path) -> str:
    """The page with every table made anew."""
    return TABLE.sub(
        lambda match: f"{match.group(1)}{table(match.group(2), path.parent)}{match.group(3)}",
        path.read_text(),
    )


def pages() -> list[pathlib.Path]:
    return [ROOT / "README.md", *sorted(RESULTS.glob("*.md"))]


# ---- taking what a benchmark wrote


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items() if key not in LEFT_OUT}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def take(name: str, files: list[str], command: str, where: dict[str, Any]) -> None:
    """Joins what several runs wrote: one machine's line, which names all MPIs, and the rows."""
    machines, rows = [], []
    for file in files:
        for line in pathlib.Path(file).read_text().splitlines():
            row = json.loads(line)
            (machines if row.get("bench") == "machine" else rows).append(rounded(row))
    if any("peer" in row and "ratios" in row for row in rows):  # of --against: the joined rows
        rows = [row for row in rows if "ratios" in row]
    machine = {**machines[0], "command": command}
    machine["kernel"] = machine.get("kernel", "").split("-")[0]  # the rest names a build
    machine["mpi"] = ", ".join(dict.fromkeys(one["mpi"] for one in machines if one.get("mpi")))
    for key in ("program", "settings", "allowed_cores", "ranks_per_node", "mpi_family", "run"):
        machine.pop(key, None)
    kept = [machine, *chosen(rows, where)]
    path = RESULTS / f"data/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))
    print(f"{path.relative_to(ROOT)}: {len(kept) - 1} rows")


def conditions(text: str) -> dict[str, Any]:
    def value(word: str) -> Any:
        return int(word) if word.isdigit() else word

    pairs = (word.split("=", 1) for word in text.split(",") if word)
    return {key: [value(one) for one in wanted.split("+")] for key, wanted in pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail if stale")
    verbs = parser.add_subparsers(dest="verb")
    taker = verbs.add_parser("take", help="keep what a benchmark wrote")
    taker.add_argument("name")
    taker.add_argument("files", nargs="+")
    taker.add_argument("--command", required=True, help="as a user types it")
    taker.add_argument("--where", default="", help="only rows with KEY=VALUE,KEY=VALUE+VALUE")
    arguments = parser.parse_args()
    if arguments.verb == "take":
        take(arguments.name, arguments.files, arguments.command, conditions(arguments.where))
        return 0
    stale = [path for path in pages() if rendered(path) != path.read_text()]
    for path in stale:
        if not arguments.check:
            path.write_text(rendered(path))
        verdict = "stale: run scripts/results.py" if arguments.check else "written"
        print(f"{path.relative_to(ROOT)}: {verdict}")
    if not stale:
        print("results: every table is what its rows say")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
