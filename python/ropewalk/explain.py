"""`ropewalk explain`: which way a collective or a halo goes, why, and what would change it.

The answer is that of the library (include/ropewalk/tuning.hpp), by the code and the table that
choose at run time. Starts no MPI.
"""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, TypeAlias

from .errors import CommandError
from .options import Parser, nearest, whole_number
from .tune import predict
from .tune.profile import size_text

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]+)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_LARGEST = 1 << 60  # bytes
_DIGITS = 19  # of a number that the library can hold
_LAYOUTS = ("packets", "fields", "buffers")
_STRATEGIES = ("automatic", "sequential", "concurrent", "threaded", "direct", "put")
_NARROWEST = 40  # columns of the last cell of a table

# What the library returns, with the keys of the structs in tuning.hpp.
Answer: TypeAlias = dict[str, Any]


def size_of(text: str) -> int:
    """The type of an option that is a number of bytes: 4096, 64K, 1MiB."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ArgumentTypeError(f"'{text}', expected bytes, as in 4096, 64K or 1M")
    size = int(match.group(1)[:_DIGITS]) * _UNITS[match.group(2).upper()]
    if len(match.group(1)) > _DIGITS or size > _LARGEST:
        raise ArgumentTypeError(f"'{text}', expected at most {size_text(_LARGEST)} bytes")
    return size


def _extents_of(text: str) -> list[int]:
    """'4.2' as [4, 2]."""
    extents = text.split(".")
    if not all(one.isdecimal() for one in extents):
        raise ArgumentTypeError(f"'{text}', expected extents of the grid, as in 4.2 or 2.2.2.2")
    return [whole_number(one) for one in extents]


def parser() -> Parser:
    made = Parser(
        "ropewalk explain",
        "Show which way a collective, or the faces of a halo, would go here: the alternatives in "
        "the order in which they are asked, why each is taken or not, the thresholds that decide, "
        "and the sizes at which it would go another way.",
        "ropewalk explain SUBJECT [-s SIZE] [-n RANKS] [--nodes NODES] [options]",
        notes="ROPEWALK_PROFILE and the other settings count as they do in a program. "
        "docs/reference/thresholds.md has the thresholds and says how a profile replaces them.",
        examples=[
            ("ropewalk explain allreduce -s 1M -n 2", "two ranks of one node"),
            ("ropewalk explain allreduce -s 1M --memory private", "buffers of another allocator"),
            ("ropewalk explain broadcast -s 64K -n 2 --nodes 4", "over nodes of two ranks each"),
            ("ropewalk explain halo -s 256K --layout fields", "how faces travel"),
            ("ropewalk explain halo -n 4 --nodes 2 --grid 4.2", "and what leaves a node"),
            ("ropewalk explain thresholds", "all of them, as they are here"),
            ("ropewalk explain thresholds node.cma_bytes", "one in full"),
        ],
        statuses=[("0", "explained"), ("1", "the profile cannot be understood")],
    )
    made.add_argument(
        "subject",
        metavar="SUBJECT",
        help="a collective, also by its name in MPI; halo; or thresholds",
    )
    made.add_argument(
        "name", nargs="?", metavar="NAME", help="after thresholds: the threshold to show in full"
    )
    _add_call(made)
    _add_ranks(made)
    made.add_argument("--json", action="store_true", help="write one JSON object instead of text")
    return made


def _add_call(made: Parser) -> None:
    group = made.add_argument_group("what is called")
    group.add_argument(
        "-s",
        "--size",
        type=size_of,
        default=size_of("1M"),
        metavar="SIZE",
        help="bytes of the vector, of a block (allgather, alltoall, ...) or of a face; default: 1M",
    )
    group.add_argument(
        "--memory",
        choices=("arena", "private"),
        default="arena",
        help="where the buffers lie: in ropewalk's arenas or elsewhere; default: arena",
    )
    group.add_argument(
        "--layout",
        choices=_LAYOUTS,
        default="packets",
        help="how a halo gets its data; default: packets",
    )
    group.add_argument(
        "--strategy",
        choices=_STRATEGIES,
        default="automatic",
        help="strategy of a halo; default: automatic",
    )
    group.add_argument(
        "--grid",
        type=_extents_of,
        metavar="EXTENTS",
        help="of a halo, periodic, as in 4.2: says how many bytes leave a node",
    )


def _add_ranks(made: Parser) -> None:
    group = made.add_argument_group("who calls")
    for names, default, of in (
        (("-n", "--ranks"), 2, "number of ranks on each node"),
        (("--nodes",), 1, "number of nodes"),
        (("--domains",), 1, "number of cache domains of a node"),
    ):
        group.add_argument(
            *names,
            type=whole_number,
            default=default,
            metavar="N",
            help=f"{of}; default: {default}",
        )
    group.add_argument(
        "--crowded", action="store_true", help="assume more ranks than cores on each node"
    )
    group.add_argument(
        "--no-cma",
        dest="cma",
        action="store_false",
        help="assume that the kernel does not let ranks read each other's memory",
    )
    group.add_argument(
        "--int-counts",
        action="store_true",
        help="assume an MPI without calls of large counts, as Open MPI up to 5",
    )
    group.add_argument(
        "--xpmem", action="store_true", help="assume that every node has the kernel module XPMEM"
    )


def main(words: Sequence[str]) -> int:
    """Prints an explanation, or thresholds; the exit status."""
    options = parser().parse_args(words)
    core = _core()
    subject = options.subject.lower().replace("-", "_")
    known = ["halo", "thresholds", *core.explained_collectives()]
    subject = core.explained_name(subject) or subject
    if subject not in known:
        expected = f"expected {', '.join(known)}{nearest(subject, known)}"
        remedy = "see `ropewalk explain --help`"
        raise CommandError(f"SUBJECT: '{options.subject}', {expected}; {remedy}")
    if options.name is not None and subject != "thresholds":
        raise CommandError(f"NAME: '{options.name}', expected behind `thresholds` only")
    answer = _answer(core, subject, options)
    if options.json:
        print(json.dumps(answer))
    elif subject == "thresholds":
        print(_thresholds(answer["thresholds"], one=options.name is not None) + _refused(answer))
    else:
        print(_text(answer) + _refused(answer))
    return 0


def _core() -> Any:
    try:
        from . import _core as found
    except ImportError:
        raise CommandError(
            "the compiled part of the package is not here; build it with `make build` or "
            "`pip install .`"
        ) from None
    return found


def _situation(options: Namespace) -> dict[str, int | bool]:
    return {
        "ranks": options.ranks,
        "nodes": options.nodes,
        "crowded": options.crowded,
        "private_memory": options.memory == "private",
        "cma": options.cma,
        "xpmem": options.xpmem,
        "domains": options.domains,
        "int_counts": options.int_counts,
    }


def _answer(core: Any, subject: str, options: Namespace) -> Answer:
    from .exceptions import ArgumentError

    situation = _situation(options)
    try:
        refused = core.refused_profile()
        notes = predict.notes_in_force(refused)
        if subject == "thresholds":
            rows = _chosen(core.thresholds(situation), options.name)
            if notes:
                predict.add_measurements(rows, notes)
            return {"thresholds": rows, "refused_profile": refused}
        asked = {"subject": subject, "size": options.size, **situation}
        if subject == "halo":
            asked |= {"layout": options.layout, "strategy": options.strategy}
            found = core.explain_halo(options.layout, options.strategy, options.size, situation)
            if options.grid is not None:
                asked["grid"] = options.grid
                found["traffic"] = core.halo_traffic(options.grid, options.size, situation)
        else:
            asked["size_of"] = core.explained_size(subject)
            found = core.explain_collective(subject, options.size, situation)
        answer = {"asked": asked, **found, "refused_profile": refused}
        if notes:
            predict.add_times(answer, notes)
        return answer
    except ArgumentError as error:
        raise CommandError(str(error), 1 if str(error).startswith("ROPEWALK_") else 2) from None


def _chosen(rows: list[Answer], name: str | None) -> list[Answer]:
    if name is None:
        return rows
    names = [row["name"] for row in rows]
    if name not in names:
        raise CommandError(f"NAME: '{name}', no threshold{nearest(name, names)}")
    return [row for row in rows if row["name"] == name]


# ---- as text -------------------------------------------------------------------------------------


def _value(row: Answer, which: str = "value") -> str:
    return size_text(row[which]) if row["unit"] == "bytes" else str(row[which])


def _from(row: Answer) -> str:
    return str(row["given_by"]) or "default"


def _columns(rows: list[list[str]], width: int) -> str:
    """A table; the last cell of a row is wrapped into what is left of the width."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    before = 2 + sum(widths) + 2 * len(widths)
    room = max(width - before, _NARROWEST)
    lines = []
    for *cells, last in rows:
        head = "  " + "".join(f"{cell:<{one}}  " for cell, one in zip(cells, widths, strict=True))
        first, *rest = textwrap.wrap(last, room, break_on_hyphens=False) or [""]
        lines += [(head + first).rstrip(), *(" " * before + line for line in rest)]
    return "\n".join(lines)


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _heading(answer: Answer) -> str:
    asked = answer["asked"]
    ranks = f"{asked['ranks']} rank{'s' if asked['ranks'] != 1 else ''}"
    where = "on one node" if asked["nodes"] == 1 else f"on each of {asked['nodes']} nodes"
    memory = "private buffers" if asked["private_memory"] else "buffers in the arenas"
    if asked["subject"] == "halo":
        of = f"halo of {asked['layout']}, faces of {size_text(asked['size'])}"
    else:
        of = f"{asked['subject']}, {asked['size_of']} of {size_text(asked['size'])}"
    return f"{of}, {ranks} {where}, {memory}"


def _ways(answer: Answer) -> str:
    rows = []
    for one in answer["alternatives"]:
        mark = "->" if one["taken"] else "?" if one["why"] == "measured" else ""
        text = f"{one['how']}: {one['why']}{predict.time_text(one)}"
        rows.append([mark, one["path"], text])
    return _columns(rows, _width())


def _changes(answer: Answer) -> str:
    rows = []
    for word, changes in (("less", answer["smaller"]), ("more", answer["larger"])):
        for one in changes:
            by = f" ({one['threshold']})" if one["threshold"] else ""
            rows.append([f"{size_text(one['bytes'])} or {word}", one["path"], one["how"] + by])
    return _columns(rows, _width()) if rows else "  no size does"


def _thresholds(rows: list[Answer], *, one: bool = False) -> str:
    if one:
        return _in_full(rows[0])
    table = [["name", "value", "from", "meaning"]]
    table += [[row["name"], _value(row), _from(row), row["meaning"]] for row in rows]
    return _columns(table, _width())


def _refused(answer: Answer) -> str:
    why = answer["refused_profile"]
    if not why:
        return ""
    return f"\n\nROPEWALK_PROFILE is not used: {why}; the defaults are; {predict.REMEDY}"


def _in_full(row: Answer) -> str:
    facts = {
        "value": f"{_value(row)} ({_from(row)})",
        "default": row["default"],
        "bounds": f"{_value(row, 'least')} to {_value(row, 'most')}",
        "asked by": row["asked_by"],
        "origin": row["origin"],
        "machine": row["machine"] or "nowhere measured",
    }
    if row.get("measured"):
        facts["measured"] = row["measured"]
    lines = [row["name"], *textwrap.wrap(row["meaning"], 96), ""]
    return "\n".join([*lines, *(f"{name:<10}{text}" for name, text in facts.items())])


def _traffic(answer: Answer, faces: str, size: str) -> str:
    rows = [
        [one["order"], f"{one[faces]} of {one['faces']} faces, {size_text(one[size])}"]
        for one in answer["traffic"]
    ]
    return _columns(rows, _width())


def _text(answer: Answer) -> str:
    detail = f" ({answer['detail']})" if answer["detail"] else ""
    way = f"{answer['path']}: {answer['how']}{detail}, because {answer['why']}"
    parts = [
        _heading(answer),
        f"\n{textwrap.fill(way, _width(), break_on_hyphens=False)}",
        f"\nalternatives, in the order in which they are asked:\n{_ways(answer)}",
    ]
    if "traffic" in answer:
        grid = " x ".join(map(str, answer["asked"]["grid"]))
        parts.append(
            f"\nover the wire of a node, in one exchange on a periodic grid of {grid} ranks, by "
            f"the order of the ranks:\n{_traffic(answer, 'leaving', 'bytes')}"
        )
        if answer["asked"]["domains"] > 1:
            parts.append(
                f"\nto another cache domain of the same node:\n"
                f"{_traffic(answer, 'crossing', 'crossing_bytes')}"
            )
    if answer["asked"]["subject"] != "halo":
        parts.append(f"\nother sizes go another way:\n{_changes(answer)}")
    if answer["thresholds"]:
        parts.append(f"\nthresholds that are asked:\n{_thresholds(answer['thresholds'])}")
    assumed = [[line] for line in answer["assumed"]]
    parts.append(f"\nassumed:\n{_columns(assumed, _width())}")
    return "\n".join(parts)
