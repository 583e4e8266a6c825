"""thresholds_reference.py [--write]: docs/reference/thresholds.md against src/tuning/table.cc.

The tables of that page are made from the table of the code, between marks that name the part of a
row's name before its point; --write makes them anew. Without it, fails where they are stale.
"""

import re
import sys
from dataclasses import dataclass

import settings_reference

PAGE = settings_reference.ROOT / "docs/reference/thresholds.md"
BEGIN = re.compile(r"<!-- thresholds: (\w+) -->\n")
END = "<!-- end of thresholds -->\n"
COLUMNS = "| name | default | asked by | meaning | origin |\n|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    default: str
    least: str
    most: str
    serves: str
    meaning: str
    origin: str
    machine: str


def rows() -> list[Row]:
    lines = settings_reference.printed("print_thresholds.cc", "src/tuning/table.cc")
    return [Row(*line.split("\x1f")) for line in lines]


def table(part: str) -> str:
    text = COLUMNS
    for row in rows():
        if not row.name.startswith(f"{part}."):
            continue
        origin = f"{row.origin} ({row.machine})" if row.machine else row.origin
        text += f"| `{row.name}` | {row.default} | {row.serves} | {row.meaning} | {origin} |\n"
    return text


def made(page: str) -> str:
    """The page with its tables made anew; what lies between them is kept."""
    parts = []
    rest = page
    while match := BEGIN.search(rest):
        end = rest.index(END, match.end())
        parts += [rest[: match.end()], table(match.group(1)), END]
        rest = rest[end + len(END) :]
    return "".join([*parts, rest])


def main() -> int:
    page = PAGE.read_text()
    wanted = made(page)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(wanted)
        page = wanted
    shown = re.findall(r"^\| `(\w+\.\w+)`", wanted, re.MULTILINE)
    missing = [row.name for row in rows() if row.name not in shown]
    problems = [f"{PAGE.name} has no table with {name}" for name in missing]
    if page != wanted:
        remedy = "run `python scripts/thresholds_reference.py --write`"
        problems.append(f"{PAGE.name} is stale: {remedy}")
    print("\n".join(problems) if problems else "thresholds: the table and its page are complete")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
