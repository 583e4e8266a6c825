"""`ropewalk config`: every setting of ropewalk, the value it has here and where that comes from.

The table is that of the library (src/settings/table.cc), so the two cannot differ. Starts no MPI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from . import nested
from .errors import CommandError
from .options import Parser

_PREFIX = "ROPEWALK_"
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_COLUMNS = ("name", "value", "origin", "scope")
_LONGEST_VALUE = 24  # columns of the table; `ropewalk config NAME` shows all of it


@dataclass(frozen=True)
class Setting:
    """A row of the table, and what this environment says."""

    name: str
    value: str  # as it was found, else the default; empty: none
    origin: str  # default, environment or `ropewalk run`
    error: str  # why the value cannot be understood; empty where it can
    type: str
    expected: str  # what it takes, in words
    default: str
    default_meaning: str  # what the default comes to, where that is not plain
    scope: str  # rank, all ranks or command
    read_by: str
    page: str  # in docs/
    meaning: str


def parser() -> Parser:
    made = Parser(
        "ropewalk config",
        "Show the environment variables that ropewalk reads: the value each has here, where that "
        "comes from, whether it must be the same on all ranks, and what it means.",
        "ropewalk config [NAME] [--json]",
        examples=[
            ("ropewalk config", "all of them"),
            ("ropewalk config lanes", "ROPEWALK_LANES in full"),
            ("ropewalk run -n 2 -- ropewalk config", "as the ranks of a job have them"),
        ],
        statuses=[("0", "every value is understood"), ("1", "one is not")],
    )
    made.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="show this setting in full; its name with or without ROPEWALK_",
    )
    made.add_argument("--json", action="store_true", help="write one JSON object instead of text")
    return made


def main(words: Sequence[str]) -> int:
    """Prints the table, or one setting; the exit status."""
    options = parser().parse_args(words)
    found = settings(os.environ)
    unknown = unknown_names(os.environ)
    if options.name is not None:
        found, unknown = [_named(found, options.name)], []
    if options.json:
        print(json.dumps({"settings": [asdict(one) for one in found], "unknown": unknown}))
    elif options.name is not None:
        print(_in_full(found[0]))
    else:
        print(_table(found, shutil.get_terminal_size((100, 24)).columns))
    for problem in (*(one.error for one in found if one.error), *unknown):
        sys.stderr.write(f"ropewalk config: {problem}\n")
    return 1 if any(one.error for one in found) else 0


def settings(environment: Mapping[str, str]) -> list[Setting]:
    """All of the table, as this environment has them."""
    try:
        from . import _core
    except ImportError:
        raise CommandError(
            "the compiled part of the package is not here; build it with `make build` or "
            "`pip install .`"
        ) from None
    set_by_run = nested.set_by_run(environment)
    made = []
    for row in _core.settings():
        name = row["name"]
        text = environment.get(name, "")
        value, error = _core.setting(name, _readable(text))
        if name == "ROPEWALK_PROFILE" and text and not error:
            error = _wrong_profile(environment)
        origin = "environment" if text else "default"
        if text and set_by_run.get(name) == text:
            origin = "ropewalk run"
        made.append(Setting(value=value, error=error, origin=origin, **row))
    return made


def _readable(text: str) -> str:
    """With a mark for each byte that is not UTF-8: the table takes nothing else."""
    return os.fsencode(text).decode(errors="replace")


def _wrong_profile(environment: Mapping[str, str]) -> str:
    """Why the profile cannot be understood, "" where it can; read in this process's environment."""
    if environment.get("ROPEWALK_PROFILE") != os.environ.get("ROPEWALK_PROFILE"):
        return ""
    from . import _core
    from .exceptions import ArgumentError

    try:
        _core.refused_profile()
    except ArgumentError as error:
        text = str(error)
        return text if text.startswith("ROPEWALK_PROFILE:") else ""
    return ""


def errors(environment: Mapping[str, str]) -> list[str]:
    """A text for each value that cannot be understood; empty, too, without the compiled part."""
    if not any(name.startswith(_PREFIX) for name in environment):
        return []
    try:
        return [one.error for one in settings(environment) if one.error]
    except CommandError:
        return []


def unknown_names(environment: Mapping[str, str]) -> list[str]:
    """A text for each variable ROPEWALK_... that nothing reads, with the name that may be meant.

    Empty, too, where the compiled part of the package is not here: a start must not depend on it.
    """
    names = sorted(name for name in environment if name.startswith(_PREFIX))
    if not names:
        return []
    try:
        from . import _core
    except ImportError:
        return []
    return [text for name in names if (text := _core.unknown_setting(_readable(name)))]


def _named(found: list[Setting], name: str) -> Setting:
    wanted = name.upper().replace("-", "_")
    wanted = wanted if wanted.startswith(_PREFIX) else _PREFIX + wanted
    for one in found:
        if one.name == wanted:
            return one
    from . import _core

    raise CommandError(
        _core.unknown_setting(_readable(wanted)) or f"{name}: no setting of ropewalk"
    )


def _plain(markdown: str) -> str:
    """Without links and code marks."""
    return _LINK.sub(r"\1", markdown).replace("`", "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _table(found: list[Setting], width: int) -> str:
    rows = [[*_COLUMNS, "meaning"]]
    for one in found:
        value = _cut(one.value, _LONGEST_VALUE) or "-"
        rows.append([one.name, value, one.origin, one.scope, _plain(one.meaning)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    room = max(width - sum(widths) - 2 * len(widths), 20)
    lines = []
    for *cells, meaning in rows:
        padded = (cell.ljust(one) for cell, one in zip(cells, widths, strict=True))
        lines.append("  ".join([*padded, _cut(meaning, room)]))
    return "\n".join(lines)


def _in_full(one: Setting) -> str:
    facts = {
        "value": f"{one.value or 'none'} ({one.origin})",
        "expected": _plain(one.expected),
        "default": ": ".join(p for p in (one.default, _plain(one.default_meaning)) if p) or "none",
        "scope": {"all ranks": "the same on all ranks", "rank": "each rank may have its own"}.get(
            one.scope, "the command's; no rank reads it"
        ),
        "read by": one.read_by,
        "more": f"docs/{one.page}",
    }
    lines = [one.name, *textwrap.wrap(_plain(one.meaning), 96), ""]
    return "\n".join([*lines, *(f"{name:<10}{text}" for name, text in facts.items())])
