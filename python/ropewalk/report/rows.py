"""This module reads and checks the JSON lines that benches write, and reads the fields that rows
have in common."""

import dataclasses
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import CommandError

Row = dict[str, Any]

# Pictures take these fields as numbers. A row may lack any of them.
_NUMBERS = ("bytes", "ranks", "ratio", "plain_us", "peer_us", "limit_us", "floats", "mb_per_s")
_OF_MACHINES = ("cores", "memory_bytes")
_TIMES = ("time_us", "plain_time_us")


@dataclasses.dataclass(frozen=True)
class Run:
    """A run is what one file holds: the machines that were measured, and the rows."""

    file: str
    machines: tuple[Row, ...]
    rows: tuple[Row, ...]


def read(file: str) -> Run:
    """Returns the rows of a file, or of stdin for "-". An error names file, line and field."""
    machines: list[Row] = []
    rows: list[Row] = []
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        row = _row(line, f"{file}:{number}")
        (machines if row["bench"] == "machine" else rows).append(row)
    if not rows:
        raise CommandError(
            f"{file}: no rows of a bench in it; write some with `ropewalk bench collectives "
            f"--json FILE`",
            status=1,
        )
    return Run(file, tuple(machines), tuple(rows))


def _lines(file: str) -> list[str]:
    try:
        if file == "-":
            return sys.stdin.read().splitlines()
        with open(file, encoding="utf-8") as text:
            return text.read().splitlines()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}", status=1) from None
    except UnicodeDecodeError:
        raise CommandError(f"{file}: no text; {_EXPECTED}", status=1) from None


_EXPECTED = "expected the JSON lines that `ropewalk bench --json FILE` writes"


def _row(line: str, where: str) -> Row:
    try:
        row = json.loads(line, parse_constant=_no_number)
    except RecursionError:
        raise CommandError(f"{where}: nested too deeply; {_EXPECTED}", status=1) from None
    except ValueError as error:
        reason = f"{error}; {_EXPECTED}. A bench that was stopped may leave half a line: delete it"
        raise CommandError(f"{where}: not JSON: {reason}", status=1) from None
    if not isinstance(row, dict) or not isinstance(row.get("bench"), str):
        raise CommandError(f"{where}: no row of a bench: {line[:60]}; {_EXPECTED}", status=1)
    for field, expected in _wrong_fields(row):
        found = json.dumps(row[field])[:60]
        raise CommandError(f"{where}: {field}: {found}, expected {expected}", status=1)
    return row


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _wrong_fields(row: Row) -> Iterator[tuple[str, str]]:
    is_machine = row["bench"] == "machine"
    for field in (*_NUMBERS, *(_OF_MACHINES if is_machine else ())):
        if field in row and row[field] is not None and number(row, field) is None:
            yield field, "a number"
    for field in _TIMES:
        if field in row and number(row, field) is None:
            yield field, 'a number of microseconds or {"median": ..., "min": ..., "p99": ...}'
    if not isinstance(row.get("ratios", {}), dict):
        yield "ratios", "an object of peers and numbers"
    if is_machine and not _are_caches(row.get("caches")):
        yield "caches", 'a list of {"level": ..., "bytes": ...}'


def _are_caches(caches: Any) -> bool:
    if caches is None:
        return True
    return isinstance(caches, list) and all(
        isinstance(one, dict) and (one.get("bytes") is None or number(one, "bytes") is not None)
        for one in caches
    )


# ---- fields --------------------------------------------------------------------------------------


def number(row: Mapping[str, Any], path: str) -> float | None:
    """Returns the number at a path such as "time_us.min", or its median; None if there is none."""
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = value.get("median")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def positive(row: Mapping[str, Any], path: str) -> float | None:
    """Returns the same number, but None for one that no logarithmic axis can show."""
    value = number(row, path)
    return value if value is not None and value > 0 else None


def spread(row: Mapping[str, Any], path: str) -> tuple[float | None, float | None]:
    """Returns the least value and the 99th percentile."""
    return positive(row, f"{path}.min"), positive(row, f"{path}.p99")


def differing(rows: Sequence[Row], fields: Iterable[str]) -> list[str]:
    """Returns those fields in which the rows differ."""
    return [field for field in fields if len({word(row.get(field)) for row in rows}) > 1]


def word(value: Any) -> str:
    return "" if value is None else str(value)


def grouped(rows: Iterable[Row], fields: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    """Returns the rows by the values of the fields, in the order in which they come."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(word(row.get(field)) for field in fields), []).append(row)
    return groups


# ---- facts ---------------------------------------------------------------------------------------


def machine_facts(machine: Row) -> list[tuple[str, str]]:
    """Returns the machine that was measured, as pairs of a name and words."""
    from .quantities import size

    pages, caches = machine.get("pages"), machine.get("caches")
    caches = caches if isinstance(caches, list) else []
    facts = {
        "Processor": word(machine.get("cpu")),
        "Cores": word(machine.get("cores")),
        "Caches": ", ".join(
            f"L{one.get('level')} {size(one['bytes'])}" for one in caches if one.get("bytes")
        ),
        "Memory": size(machine["memory_bytes"]) if machine.get("memory_bytes") else "",
        "Kernel": word(machine.get("kernel")),
        "Huge pages": _page_words(pages if isinstance(pages, dict) else {}),
        "Host": word(machine.get("host")),
        "MPI": word(machine.get("mpi")),
        "Settings of the MPI": word(machine.get("settings")),
        "Commit": word(machine.get("commit")),
        "Command": word(machine.get("command")),
    }
    return [(name, words) for name, words in facts.items() if words]


def _page_words(pages: Row) -> str:
    names = (("thp", "THP"), ("shmem", "shared memory"), ("hugetlb_2m", "hugetlb pool"))
    return ", ".join(f"{title} {pages[name]}" for name, title in names if pages.get(name))


def page_backing(rows: Sequence[Row]) -> str:
    """Returns a sentence on the pages that the buffers got; "" where the rows do not say."""
    found = [row["page_backing"] for row in rows if isinstance(row.get("page_backing"), dict)]
    if not found:
        named = sorted({word(row["pages"]) for row in rows if row.get("pages")})
        return f"Pages of the buffers: {', '.join(named)}." if named else ""
    huge = [one for one in found if one.get("all_huge")]
    ways = sorted({word(one.get("method") or one.get("source")) for one in huge} - {""})
    by = f" (by {', '.join(ways)})" if ways else ""
    if len(huge) == len(found):
        return f"All buffers lay on 2 MiB pages{by}."
    lost = sorted({word(one.get("downgrade")) for one in found} - {""})
    why = f"; {'; '.join(lost)}" if lost else ""
    return f"{len(huge)} of {len(found)} rows had buffers on 2 MiB pages alone{by}{why}."


def unverified(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.get("verified") is False]


def short(file: str) -> str:
    return "standard input" if file == "-" else os.path.basename(file)
