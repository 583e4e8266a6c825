"""settings_reference.py [--write]: docs/reference/environment.md against src/settings/table.cc.

The tables of that page are made from the table of the code, between marks; --write makes them anew.
Without it, fails where they are stale, where a row of the table links to a page or heading that is
not there, where the tree has a variable ROPEWALK_... that is not in the table, and where one is
read past it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/environment.md"
BEGIN = re.compile(r"<!-- settings: (.+?) -->\n")
END = "<!-- end of settings -->\n"
COLUMNS = "| variable | values | default | on ranks | meaning |\n|---|---|---|---|---|\n"
WITHOUT_RANKS = "| variable | values | default | meaning |\n|---|---|---|---|\n"

SOURCES = {".cc", ".cpp", ".c", ".h", ".hpp", ".py", ".sh", ".md", ".txt"}
NAME = r"ROPEWALK_[A-Z][A-Z0-9_]*[A-Z0-9]"
# A name in quotes is a variable of the environment in C++ and Python, as are those of a shell, and
# those that are given a value.
USES = re.compile(rf"""["'`]({NAME})["'`=]|\$\{{?({NAME})\b(?=[:}}\s"])|(?<![-D\w])({NAME})=""")
# CMake has variables and definitions of its own; those of the environment are given to tests.
USES_OF_CMAKE = re.compile(rf"(?<![-D\w])({NAME})=(?!\")")
BY_HAND = re.compile(rf'getenv\("({NAME})"\)')
OF_TESTS = "ROPEWALK_TEST_"
LITERALS = ("4096", "512M", "2GiB", "2,1,3", "round:N", "libmpi.so")


@dataclass(frozen=True)
class Row:
    name: str
    kind: str
    words: str
    expected: str
    fallback: str
    automatic: str
    scope: str
    reader: str
    page: str
    meaning: str


def printed(program: str, *sources: str) -> list[str]:
    """The lines that a program of a table's own source prints: nothing needs to be built."""
    with tempfile.TemporaryDirectory() as folder:
        made = f"{folder}/{program.removesuffix('.cc')}"
        command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-Isrc", "-Iinclude"]
        command += [f"scripts/{program}", *sources]
        subprocess.run([*command, "-o", made], cwd=ROOT, check=True)
        text = subprocess.run([made], capture_output=True, text=True, check=True).stdout
    return text.splitlines()


def read_table() -> list[Row]:
    lines = printed("print_settings.cc", "src/settings/table.cc", "src/settings/value.cc")
    return [Row(*line.split("\x1f")) for line in lines]


def values(row: Row) -> str:
    text = row.expected
    if "`" in text or row.kind == "text":
        return text
    literals = [*row.words.split(","), *(LITERALS if row.kind in ("bytes", "nodes") else ())]
    pattern = "|".join(re.escape(one) for one in sorted(literals, key=len, reverse=True) if one)
    return re.sub(rf"(?<![\w-])({pattern})(?![\w-])", r"`\1`", text) if pattern else text


def default(row: Row) -> str:
    shown = f"`{row.fallback}`" if row.fallback else ""
    return ": ".join(part for part in (shown, row.automatic) if part)


def table(rows: list[Row], readers: list[str]) -> str:
    chosen = [row for row in rows if row.reader in readers]
    on_ranks = any(row.scope != "command" for row in chosen)
    text = COLUMNS if on_ranks else WITHOUT_RANKS
    scopes = {"rank": "may differ", "all ranks": "the same"}
    for row in chosen:
        scope = [scopes[row.scope]] if on_ranks else []
        cells = [f"`{row.name}`", values(row), default(row), *scope, row.meaning]
        text += "".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n"
    return text


def made(page: str, rows: list[Row]) -> str:
    """The page with its tables made anew; what lies between them is kept."""
    parts = []
    rest = page
    while match := BEGIN.search(rest):
        readers = match.group(1).split(", ")
        end = rest.index(END, match.end())
        parts += [rest[: match.end()], table(rows, readers), END]
        rest = rest[end + len(END) :]
    return "".join([*parts, rest])


def anchor(heading: str) -> str:
    """What a heading is called in a link."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(row: Row) -> Iterator[str]:
    links = re.findall(r"\]\(([^)]+)\)", row.meaning + row.automatic)
    for base, link in [("docs/reference", one) for one in links] + [("docs", row.page)]:
        name, _, heading = link.partition("#")
        path = (ROOT / base / name).resolve()
        found = path.read_text() if path.is_file() else ""
        headings = {anchor(one) for one in re.findall(r"^#+ (.+)$", found, re.MULTILINE)}
        if not found or (heading and heading not in headings):
            yield f"src/settings/table.cc: {row.name}: {link} is not there"


def sources() -> Iterator[pathlib.Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        path = ROOT / name
        script = path.suffix == "" and path.parent.name in ("scripts", ".ci")
        wanted = (path.suffix in SOURCES or script) and path.name != "CHANGELOG.md"
        if wanted and path.is_file():
            yield path


def not_in_table(rows: list[Row]) -> Iterator[str]:
    known = {row.name for row in rows}
    # These names are misspelt on purpose: tests look at what is then said.
    misspelt = {"tests/settings", "tests/preload/mpi", "python/tests"}
    for path in sources():
        name = path.relative_to(ROOT)
        if str(name.parent) in misspelt:
            continue
        uses = USES_OF_CMAKE if name.suffix == ".txt" else USES
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for match in uses.finditer(line):
                found = next(group for group in match.groups() if group)
                if found not in known and not found.startswith(OF_TESTS):
                    yield f"{name}:{number}: {found} is not in src/settings/table.cc"
            if name.parts[0] in ("src", "preload", "lattice") and BY_HAND.search(line):
                yield f"{name}:{number}: read through settings/value.hpp, not by getenv"


def main() -> int:
    rows = read_table()
    page = PAGE.read_text()
    wanted = made(page, rows)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(wanted)
        page = wanted
    problems = [problem for row in rows for problem in broken_links(row)]
    problems += not_in_table(rows)
    if page != wanted:
        problems.append(
            f"{PAGE.relative_to(ROOT)} is stale: run `python scripts/settings_reference.py --write`"
        )
    print("\n".join(problems) if problems else "settings: the table and its page are complete")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
