"""`ropewalk tune` measures which mechanism is fastest on this machine, and writes a profile.

The program ropewalk-bench-tune measures and searches each threshold. This module starts it, shows
what it has found, and makes the profile of its rows.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import tempfile
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import batch, cores, installations, plan
from ..bench import budget, jobs
from ..errors import CommandError
from ..options import Parser, nearest, whole_number
from . import check, profile

_PROGRAM = "tune"
_ON_NODE = ("copies", "channel", "collectives")
_OVER_NODES = ("wire", "lanes", "nodes")
_GROUPS = _ON_NODE + _OVER_NODES
_MOST_LANES = 4  # that the program tries
_SHARE_OF_LANES = 0.15  # of the time, where they are measured
_DEFAULT_OUTPUT = "ropewalk.profile"
_MOST_RANKS = 16  # The default goes no higher: more ranks take longer than two minutes.
_CLOSE = 1.1  # The choice should take at most this many times as long as the fastest mechanism.

Row = dict[str, Any]


def _groups(text: str) -> str:
    for word in text.split(","):
        if word not in _GROUPS:
            expected = f"expected {', '.join(_GROUPS)}{nearest(word, _GROUPS)}"
            raise ArgumentTypeError(f"'{word}', {expected}")
    return text


def parser() -> Parser:
    made = Parser(
        "ropewalk tune",
        "Measure this machine and write a profile: the sizes at which ropewalk should go another "
        "way here, what each rests on, and what each mechanism costs. Takes less than two minutes. "
        "In a job or a box of several nodes it measures what goes between them instead.",
        "ropewalk tune [-n RANKS] [--time TIME] [--output FILE] [--only NAME,...] [--check] "
        "[--json]",
        notes="A default stays unless another value saves more than 3 % and more than the noise. "
        "Programs use the profile with ROPEWALK_PROFILE=FILE, on machines like this one; "
        "`ropewalk explain` shows its measurements. Leave the machine alone meanwhile.",
        examples=[
            ("ropewalk tune", "one rank a core"),
            ("ropewalk tune -n 8 --output node.profile", ""),
            ("ropewalk tune --only channel --time 20s", "messages alone"),
            ("ropewalk tune --check", "what it predicts, beside others"),
            ("ropewalk cluster --nodes 2 --ranks-per-node 2 -- ropewalk tune", "between nodes"),
            ("ROPEWALK_PROFILE=ropewalk.profile ropewalk explain thresholds", "what it changed"),
        ],
        statuses=[("0", "the profile is written"), ("1", "it is not, and no file was changed")],
    )
    made.add_argument(
        "-n",
        "--ranks",
        type=whole_number,
        metavar="RANKS",
        help=f"number of ranks, on all nodes together; default: one a core, 2 to {_MOST_RANKS}, "
        "and in a box its own",
    )
    made.add_argument(
        "--mpi", metavar="NAME", help="mpich, openmpi, intel, system, or the prefix of an MPI"
    )
    made.add_argument(
        "--time",
        metavar="TIME",
        default="90s",
        help="how long to measure at most, as 30s or 2m; default: 90s",
    )
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=_DEFAULT_OUTPUT,
        help=f"the profile to write; default: {_DEFAULT_OUTPUT}",
    )
    made.add_argument(
        "--only",
        type=_groups,
        metavar="NAME,...",
        help="measure these groups alone (copies, channel, collectives; over several nodes wire, "
        "lanes, nodes), and write no others",
    )
    made.add_argument(
        "--check",
        action="store_true",
        help="measure at sizes between those of the profile, show what it predicts beside that, "
        "and write nothing",
    )
    made.add_argument("--json", action="store_true", help="write one JSON object instead of text")
    return made


def main(words: Sequence[str]) -> int:
    """Measures, shows what was found, and writes the profile. Returns the exit status."""
    options = parser().parse_args(words)
    ranks = _ranks(options)
    seconds = budget.seconds(options.time)
    notes = None
    if options.check:
        notes = profile.read(options.output, "--output")
        check.refuse_others(options.output, notes, ranks)
    else:
        _check_output(options.output)
    installation = installations.choose(options.mpi)
    rows = _measured(options, ranks, seconds, installation)
    if notes is not None:
        return check.show(rows, notes, as_json=options.json)
    heading = _heading(words, rows, installation)
    profile.write(options.output, profile.text(rows, heading))
    if options.json:
        found = profile.situation(rows)
        print(json.dumps({"profile": options.output, **found, "rows": rows[1:]}))
    else:
        print(_text(rows, options.output))
    return 0


def _ranks(options: Namespace) -> int | None:
    """The number of ranks, or None where the box says how many."""
    if options.ranks is None:
        if batch.job().system == "box":
            return None
        return max(2, min(cores.usable_cores(), _MOST_RANKS))
    if options.ranks < 2:
        raise CommandError(
            f"--ranks: {options.ranks}, expected 2 or more: what is tuned goes from rank to rank"
        )
    return int(options.ranks)


def _check_output(path: str) -> None:
    """Raises CommandError for a path that cannot be written, before anything is measured for it."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise CommandError(f"--output: there is no folder '{folder}'; make it, or name another")
    if os.path.isdir(path):
        raise CommandError(f"--output: '{path}' is a folder, expected a file; name one in it")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remedy = "see its mode, or name another folder"
        raise CommandError(f"--output: '{folder}': {error.strerror}; {remedy}", 1) from None


def _measured(
    options: Namespace,
    ranks: int | None,
    seconds: float,
    installation: installations.Installation,
) -> list[Row]:
    """Returns the program's rows. Raises CommandError if it failed, and then leaves nothing."""
    found = jobs.programs()
    if _PROGRAM not in found:
        raise CommandError(
            f"no program {jobs.PREFIX}{_PROGRAM} in {', '.join(jobs.folders())}; build it with "
            "`make build`, or give its folder in ROPEWALK_LIBEXEC",
            status=1,
        )
    words = ["--between"] if options.check else []

    def start(groups: Sequence[str], share: float, lanes: int | None = None) -> list[Row]:
        """Starts the program once, for so much of the time."""
        with tempfile.TemporaryDirectory(prefix="ropewalk-tune-") as folder:
            file = os.path.join(folder, "rows.json")
            program = [found[_PROGRAM], "--only", ",".join(groups), "--time", f"{share:g}", *words]
            job = jobs.Job(_PROGRAM, [*program, "--json", file], installation, ranks)
            bench = jobs.BenchOptions(mpi=[options.mpi] if options.mpi else [], lanes=lanes)
            with _to_stderr(options.json):
                status, passed = jobs.start(plan.make(job.request(bench)))
            rows = jobs.read_rows(file, installation)
        if status:
            why = "was interrupted" if passed is not None else f"ended with status {status}"
            raise CommandError(f"the measurement {why}; {options.output} was not written", status=1)
        return rows

    groups = options.only.split(",") if options.only else _groups_here(installation, ranks)
    others = [one for one in groups if one != "lanes"]
    if "lanes" not in groups or options.check:
        return start(others, seconds)
    # Lanes need other settings of the MPI than the rest is to be measured with.
    share = _SHARE_OF_LANES if others else 1
    rows = start(others, seconds * (1 - share)) if others else []
    more = start(["lanes"], seconds * share, _MOST_LANES)
    known = ("machine", "situation") if rows else ()
    return rows + [row for row in more if row.get("what", "machine") not in known]


def _groups_here(installation: installations.Installation, ranks: int | None) -> tuple[str, ...]:
    """The groups that can be measured where the ranks will be."""
    request = jobs.Job(_PROGRAM, ["true"], installation, ranks).request(jobs.BenchOptions())
    return _OVER_NODES if request.nodes > 1 else _ON_NODE


@contextmanager
def _to_stderr(wanted: bool) -> Iterator[None]:
    """Sends to stderr what the program prints, where stdout is to have one JSON object alone."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _heading(
    words: Sequence[str], rows: list[Row], installation: installations.Installation
) -> list[str]:
    now = datetime.datetime.now(datetime.UTC)
    commit = rows[0].get("commit", "unknown") if rows else "unknown"
    return [
        " ".join(["ropewalk tune", *words]),
        f"{now:%Y-%m-%d %H:%M} UTC, {installation.title}, commit {commit}",
    ]


# ---- as text -------------------------------------------------------------------------------------


def _value(row: Row, which: str) -> str:
    return profile.size_text(row[which]) if row["unit"] == "bytes" else str(row[which])


def _thresholds(rows: list[Row]) -> str:
    table = [["threshold", "default", "before", "now", "saves", "noise"]]
    for row in rows:
        changed = row["value"] != row["before"]
        table.append(
            [
                row["name"],
                _value(row, "default"),
                _value(row, "before"),
                "-" if row["skipped"] else _value(row, "value"),
                f"{100 * row['gain']:.0f} %" if changed else "",
                f"{100 * row['noise']:.0f} %" if changed else "",
            ]
        )
    return "\n".join(profile.columns(table))


def _skipped(rows: list[Row]) -> list[str]:
    return [f"  {row['name']}: not measured: {row['skipped']}" for row in rows if row["skipped"]]


def _choices(rows: list[Row]) -> str:
    table = [["memory", "bytes", "chosen", "us", "fastest", "us", "chosen/fastest", "plain MPI us"]]
    for row in rows:
        table.append(
            [
                row["memory"],
                profile.size_text(row["bytes"]),
                row["path"],
                f"{row['us']:.3g}",
                row["best"],
                f"{row['best_us']:.3g}",
                f"{row['mechanism_us'] / row['best_us']:.2f}",
                f"{row['plain_us']:.3g}",
            ]
        )
    return "\n".join(profile.columns(table))


def _of(rows: list[Row], what: str) -> list[Row]:
    return [row for row in rows if row.get("what") == what]


def _text(rows: list[Row], output: str) -> str:
    thresholds, choices = _of(rows, "threshold"), _of(rows, "choice")
    parts = []
    if thresholds:
        parts.append(
            f"\nthresholds; what another value saves of the time where it differs:\n"
            f"{_thresholds(thresholds)}"
        )
        parts += _skipped(thresholds)
    if choices:
        close = sum(row["mechanism_us"] <= _CLOSE * row["best_us"] for row in choices)
        parts.append(
            f"\nmessages by this profile, beside each mechanism by itself:\n{_choices(choices)}\n"
            f"  mechanism within 10 % of the fastest one: {close} of {len(choices)}"
        )
    name = re.sub(r"^(?=[^/])", "./", output) if "/" not in output else output
    parts.append(f"\n{output} is written; use it with ROPEWALK_PROFILE={name}")
    return "\n".join(parts)
