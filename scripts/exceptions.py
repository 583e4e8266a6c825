"""exceptions.toml: what stands in the tree although a check of the house forbids it, and why.

A check asks here for each thing it finds. A figure in the list may only go down, and an exception
that no longer applies is told, so that the list shrinks with the tree.
"""

import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator

FILE = pathlib.Path(__file__).resolve().parent / "exceptions.toml"


class Exceptions:
    """One table of exceptions.toml, and which of its entries a run has met."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.entries = tomllib.loads(FILE.read_text()).get(table, {})
        self.met: dict[str, int] = {}
        for name, entry in self.entries.items():
            reason = entry["reason"] if isinstance(entry, dict) else entry
            if not reason.strip():
                sys.exit(f"{FILE.name}: [{table}] {name}: an exception needs a reason")

    def allow(self, name: str) -> bool:
        """Whether this is listed; for tables whose entries have no figure."""
        self.met[name] = 0
        return name in self.entries

    def problem(self, name: str, figure: int, limit: int) -> str | None:
        """What to say of a figure: None where it is within the limit or the exception's figure."""
        if figure <= limit:
            return None
        self.met[name] = max(figure, self.met.get(name, 0))
        if name not in self.entries:
            return f"{name}: {figure} {self.table}, at most {limit}"
        allowed = self.entries[name]["figure"]
        if figure > allowed:
            return f"{name}: {figure} {self.table}, {allowed} when its exception was made"
        return None

    def outdated(self) -> Iterator[tuple[str, int | None]]:
        """Entries that no longer apply (None), or whose figure has gone down (the new one)."""
        for name, entry in self.entries.items():
            if name not in self.met:
                yield name, None
            elif isinstance(entry, dict) and self.met[name] < entry["figure"]:
                yield name, self.met[name]

    def hints(self) -> list[str]:
        """One line for each outdated entry."""
        return [
            f"{FILE.name}: [{self.table}] {name}: "
            + ("no longer needed" if figure is None else f"has gone down to {figure}")
            for name, figure in self.outdated()
        ]


def lower(tables: list[Exceptions]) -> None:
    """Rewrites exceptions.toml: drops what no longer applies, and lowers figures."""
    changes = {(t.table, name): figure for t in tables for name, figure in t.outdated()}
    table = ""
    kept = []
    for line in FILE.read_text().splitlines():
        if header := re.match(r"\[(.+)\]$", line):
            table = header.group(1).strip('"')
        entry = re.match(r'"([^"]+)" = ', line)
        key = (table, entry.group(1)) if entry else None
        if key in changes and changes[key] is None:
            continue
        if key in changes:
            line = re.sub(r"figure = \d+", f"figure = {changes[key]}", line)
        kept.append(line)
    FILE.write_text("\n".join(kept) + "\n")
