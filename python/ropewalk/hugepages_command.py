"""The verb `ropewalk hugepages`: of this node, or of every node of a job."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import hugepages, hugepages_job
from .errors import CommandError
from .options import Parser

EXAMPLES = (
    ("ropewalk hugepages status", ""),
    ("ropewalk hugepages reserve 1G", "64: so many pages"),
    ("ropewalk hugepages reserve 2 --page-size 1G", ""),
    ("ropewalk hugepages reserve 1G --job", "on every node of this batch job"),
    ("ropewalk hugepages release", "what was reserved"),
)
STATUSES = (
    ("0", "the kernel did what was asked"),
    ("1", "it gave fewer pages, or it is the administrator's to do; with --job: on some node"),
    ("2", "the command line was wrong"),
)


@dataclass
class PoolOptions:
    action: str = ""
    n: str | None = None
    page_size: str | None = None
    job: bool = False
    json: bool = False


def parser() -> Parser:
    made = Parser(
        "ropewalk hugepages",
        "The kernel's pool of huge pages. `status` shows the pools and what ropewalk added to "
        "them; `reserve` adds N pages (64) or a size (64M, 1G), as root; `release` gives back "
        "what `reserve` added, or N pages.",
        "ropewalk hugepages status [--job] [--json]\n"
        "       ropewalk hugepages reserve N [--page-size SIZE] [--job] [--json]\n"
        "       ropewalk hugepages release [N] [--page-size SIZE] [--job] [--json]",
        examples=EXAMPLES,
        statuses=STATUSES,
    )
    made.add_argument(
        "action",
        choices=("status", "reserve", "release"),
        help="status shows the pools; reserve and release change one",
    )
    made.add_argument(
        "n", nargs="?", metavar="N", help="number of pages (64), or a size of whole pages (128M)"
    )
    made.add_argument("--page-size", metavar="SIZE", help="2M or 1G; default: 2M")
    made.add_argument(
        "--job",
        action="store_true",
        help="on every node of this batch job, by the launcher that `ropewalk run` would take",
    )
    made.add_argument("--json", action="store_true", help="write one JSON object instead of text")
    return made


def main(words: Sequence[str]) -> int:
    options = parser().parse_args(words, namespace=PoolOptions())
    size = _page_bytes(options.page_size) if options.page_size else None
    if options.action == "status" and (options.n or size):
        raise CommandError("status: takes nothing; it shows the pools of all sizes")
    pages = hugepages.pages_of(options.n, size or hugepages.SIZES["2M"]) if options.n else None
    if options.action == "reserve" and pages is None:
        raise CommandError("N: none given, expected pages (64) or a size (64M, 1G)")
    if options.job or options.json:
        return _by_rows(options, pages, size)
    if options.action == "status":
        print("\n".join(hugepages.status_lines()))
        return 0
    if options.action == "release":
        print("\n".join(hugepages.release_lines(hugepages.release("/", size, pages))))
        return 0
    assert pages is not None
    change = hugepages.reserve(pages, size or hugepages.SIZES["2M"])
    print("\n".join(hugepages.reserve_lines(change)))
    return 0 if change.done == change.asked else 1


def _by_rows(options: PoolOptions, pages: int | None, size: int | None) -> int:
    """A row for each node: with --job of all nodes, else of this one."""
    ask = hugepages_job.rows_of_job if options.job else _row_alone
    rows = ask(options.action, pages, size)
    if options.json:
        print(json.dumps({"nodes": rows}, indent=2))
    else:
        print("\n".join(hugepages_job.lines(rows, options.action)))
    # What is given back as surplus is no failure, as without --job.
    failed = any(row["error"] for row in rows)
    return int(failed or (options.action == "reserve" and not hugepages_job.complete(rows)))


def _row_alone(action: str, pages: int | None, size: int | None) -> list[dict[str, Any]]:
    return [hugepages_job.row_here(action, pages, size)]


def _page_bytes(text: str) -> int:
    if text.upper() not in hugepages.SIZES:
        raise CommandError(f"--page-size: '{text}', expected {' or '.join(hugepages.SIZES)}")
    return hugepages.SIZES[text.upper()]
