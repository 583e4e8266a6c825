"""`ropewalk hugepages --job`: the same on every node of the batch job, one process a node.

The job's own launcher starts them, as in Boyle et al. (2017, section II.C), so nodes need no server
and users no shell there. Python and ropewalk must be at the same path on every node.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from . import batch, hugepages
from .cores import Root
from .errors import CommandError

Row = dict[str, Any]  # what a node answers: node, pools, reserved, changes, error

# Begins the answer of a node: launchers and MPIs may print lines of their own.
_MARK = "ropewalk-hugepages-of-a-node:"
_PATIENCE_SECONDS = 600.0  # the kernel may compact the memory of a large node for minutes


def row_here(
    action: str,
    pages: int | None = None,
    page_bytes: int | None = None,
    root: Root = "/",
    job: str | None = None,
) -> Row:
    """Does `action` on this node, for one job or for all. What fails is told in the row: where a
    process ends with a status, some launchers end those of the other nodes, too."""
    changes: list[hugepages.Change] = []
    error = None
    try:
        if action == "reserve":
            assert pages is not None
            size = page_bytes or hugepages.SIZES["2M"]
            changes = [hugepages.reserve(pages, size, root, job or "")]
        elif action == "release":
            changes = hugepages.release(root, page_bytes, pages, job)
    except CommandError as complaint:
        error = str(complaint)
    except OSError as complaint:
        error = f"{complaint.filename or 'the pool'}: {complaint.strerror}"
    return {
        "node": os.uname().nodename,
        "pools": [{**asdict(pool), "available": pool.available} for pool in hugepages.pools(root)],
        "reserved": hugepages.reserved(root),
        "changes": [asdict(change) for change in changes],
        "error": error,
    }


def rows_of_job(action: str, pages: int | None, page_bytes: int | None) -> list[Row]:
    """The rows of all nodes of this job, by name; an error if a node does not answer."""
    job = batch.job()
    name = batch.job_name() or None
    words = [sys.executable, "-m", __name__, json.dumps([action, pages, page_bytes, name])]
    done = _start(words)
    rows = sorted(answers(done.stdout), key=lambda row: str(row["node"]))
    if len(rows) < job.nodes:
        heard = ", ".join(str(row["node"]) for row in rows) or "none"
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise CommandError(
            f"--job: {len(rows)} of {job.nodes} nodes answered ({heard}); ropewalk must be at the "
            f"same path on all of them. The launcher ended with {done.returncode}"
            + (f" and said: {said[-1]}" if said else ""),
            status=1,
        )
    return rows


def _start(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs the command once on each node, by what `ropewalk run` would start ranks with."""
    from . import plan, run

    options = run.parse(["--plain", "--no-bind", "--ranks-per-node", "1", "--", *words])
    planned = plan.make(run.make_request(options))
    try:
        return subprocess.run(
            planned.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=planned.environment(os.environ),
            timeout=_PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"--job: not all nodes answered within {_PATIENCE_SECONDS:.0f} s", status=1
        ) from None


def answers(text: str) -> list[Row]:
    """The rows in what a launcher has printed; what is between them is of others."""
    rows = []
    for part in text.split(_MARK)[1:]:
        try:
            rows.append(json.JSONDecoder().raw_decode(part)[0])
        except ValueError:
            continue
    return rows


def complete(rows: Sequence[Row]) -> bool:
    """Whether every node did all that was asked."""
    return all(
        row["error"] is None and all(one["done"] == one["asked"] for one in row["changes"])
        for row in rows
    )


# ---- what the command prints ---------------------------------------------------------------------


def lines(rows: Sequence[Row], action: str) -> list[str]:
    """A table of one line a node and page size, then what went wrong where."""
    width = max(len("node"), *(len(row["node"]) for row in rows)) + 2
    verb = {"reserve": "reserved", "release": "given back"}.get(action, "by ropewalk")
    made = [f"{'node':<{width}}{'pages of':<10}{verb:>12}{'total':>8}{'free':>8}"]
    for row in rows:
        made += _lines_of(row, width, action)
    made += _complaints(rows)
    if action == "reserve" and not complete(rows):
        made.append(f"where pages are missing: {hugepages.FRAGMENTED}")
    return made


def _lines_of(row: Row, width: int, action: str) -> list[str]:
    pools = {pool["page_bytes"]: pool for pool in row["pools"]}
    changed = {one["page_bytes"]: f"{one['done']} of {one['asked']}" for one in row["changes"]}
    if action == "status":
        own = {int(size): str(pages) for size, pages in row["reserved"].items()}
        changed = {size: own.get(size, "0") for size in pools}
    name = row["node"]
    return [
        f"{name:<{width}}{hugepages.size_name(size):<10}{text:>12}"
        f"{pools[size]['total']:>8}{pools[size]['free']:>8}"
        for size, text in sorted(changed.items())
        if size in pools
    ] or [f"{name:<{width}}{'-':<10}{'nothing':>12}"]


def _complaints(rows: Sequence[Row]) -> list[str]:
    """Each error once, with the nodes that have it."""
    nodes: dict[str, list[str]] = {}
    for row in rows:
        if row["error"]:
            nodes.setdefault(row["error"], []).append(row["node"])
    return [f"{', '.join(names)}: {error}" for error, names in nodes.items()]


def main(words: Sequence[str]) -> int:
    """On a node: one line, written at once, so that launchers do not mix it with another's."""
    action, pages, page_bytes, job = json.loads(words[0])
    row = row_here(action, pages, page_bytes, job=job)
    os.write(1, f"\n{_MARK}{json.dumps(row)}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
