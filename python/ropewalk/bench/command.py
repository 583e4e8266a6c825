"""`ropewalk bench`: starts the benchmark programs, under one MPI or several, and joins their rows.

The programs are ropewalk-bench-NAME; options this file does not know are theirs.
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence

from .. import installations, plan, run
from ..errors import CommandError
from ..options import Parser, add_rank_options
from . import jobs, plain, summary
from .budget import Budget
from .jobs import BenchOptions, Job, Row

# The quick suite, in the order people read it.
SUITE = ("comms", "collectives", "memory", "pages")
_PLOTS = ("gradient", "overlap", "itt")
_LAYOUTS = ("overlap", "itt")

DESCRIPTION = """Measure communication and memory on this machine. Without NAME: the quick suite, in
about a minute. Options that are not listed here are the program's; `ropewalk bench NAME --help`
lists them, too."""

EXAMPLES = (
    ("ropewalk bench", "the quick suite"),
    ("ropewalk bench comms -n 2 --mpi mpich,openmpi --quick --json comms.json", ""),
    ("ropewalk bench collectives --against mpich,openmpi", "the best of several MPIs"),
    ("ropewalk bench gradient -n 2 --plot gradient.svg", ""),
    ("ropewalk bench p2p --mechanism all", "messages between two ranks, by each mechanism"),
    ("ropewalk bench itt --layouts 1x1,1x2,2x1 --tables summary", ""),
)

STATUSES = (("N", "of the first program that failed"), ("2", "the command line was wrong"))


def parser() -> Parser:
    made = Parser(
        "ropewalk bench",
        DESCRIPTION,
        "ropewalk bench [NAME] [options] [options of the program]",
        examples=EXAMPLES,
        statuses=STATUSES,
        add_help=False,
    )
    made.add_argument(
        "-h", "--help", action="store_true", help="show this and the program's options, and end"
    )
    made.add_argument("--dry-run", action="store_true", help="show the commands, start nothing")
    add_rank_options(made, "2 where they talk; all of a box", several_mpis=True)
    compared = made.add_argument_group("comparisons")
    compared.add_argument(
        "--against",
        metavar="PEER,...",
        help="collectives, p2p: measure the same under each of mpich, mpich-nodevice, openmpi, "
        "openmpi-ucx, intel (or PEER=PREFIX), and the best of them in each case",
    )
    compared.add_argument(
        "--layouts",
        metavar="RxT,...",
        help="overlap, itt: measure these layouts, ranks x threads, in turn, as 4x1,2x2",
    )
    made.add_argument(
        "--time",
        metavar="TIME",
        help="how long to measure at most in all, as 90s or 5m: fewer rounds of each case, no case "
        "fewer; default: 100 s for each program that is started",
    )
    results = made.add_argument_group("results")
    results.add_argument("--json", metavar="FILE", help="write all rows of all MPIs as JSON lines")
    results.add_argument(
        "--plot",
        metavar="FILE",
        help="gradient, overlap, itt: draw their figures, as .svg, .png or .pdf; needs matplotlib",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["torch"]:  # no program under an MPI
        from . import pytorch

        return pytorch.main(arguments[1:])
    return _main(arguments)


def _main(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments and not arguments[0].startswith("-") else None
    words = arguments[1:] if name else arguments
    options, rest = parser().parse_known_args(words, namespace=BenchOptions())
    found = jobs.programs()
    if options.help:
        return _help(name, found)
    names = _names(name, rest, found)
    _check_files(name, options)
    if options.against is not None:
        from . import against

        return against.main(name, found.get(names[0], ""), options, _own(name, rest))
    chosen = [_installation(choice) for choice in _mpis(options)]
    own = [*_own(name, rest), *_lanes(name, options)]
    starts = [
        Job(one, [*jobs.words_of(one, found), *threads, *own], installation, ranks or options.ranks)
        for one in names
        for installation in chosen
        for ranks, threads in layouts(name, options.layouts)
    ]
    budget = Budget(options.time, len(starts))
    if options.dry_run:
        for job in starts:
            request = job.request(options, *budget.next())
            print(run.describe(request, plan.make(request)))
        return 0
    if len(starts) == 1 and options.plot is None:
        return _start_one(starts[0], options, budget)
    with tempfile.TemporaryDirectory(prefix="ropewalk-bench-") as folder:
        return _measure(starts, options, budget, folder)


def _names(name: str | None, rest: Sequence[str], found: Mapping[str, str]) -> Sequence[str]:
    if name is None:
        if rest:
            raise CommandError(f"{rest[0]}: name the bench it is for: {', '.join(_all(found))}")
        suite = [one for one in SUITE if one in found]
        if suite:
            return suite
    elif name in found or name in jobs.MODULES:
        return [name]
    if not found:
        raise CommandError(
            "no benchmark programs in "
            + ", ".join(jobs.folders())
            + "; build them with `make build`, "
            "or give their folder in ROPEWALK_LIBEXEC",
            status=1,
        )
    raise CommandError(f"NAME: '{name}', expected {', '.join(_all(found))}")


def _all(found: Mapping[str, str]) -> list[str]:
    """The names of all benches."""
    return sorted([*found, *jobs.MODULES, "torch"])


def _mpis(options: BenchOptions) -> Sequence[str | None]:
    return [choice for given in options.mpi for choice in given.split(",") if choice] or [None]


def _installation(choice: str | None) -> installations.Installation:
    if choice and re.fullmatch(r"\d+(\.\d+){1,5}", choice) and not os.path.exists(choice):
        raise CommandError(
            f"--mpi: '{choice}' is a grid of ranks, expected an MPI (mpich, openmpi, intel, system "
            f"or a folder); write --mpi-grid {choice}"
        )
    return installations.choose(choice)


def _lanes(name: str | None, options: BenchOptions) -> list[str]:
    """These have an option of their own, which says more than the ranks' environment."""
    if options.lanes is None or name not in plain.WITH_LANES:
        return []
    return ["--lanes", str(options.lanes)]


def _check_files(name: str | None, options: BenchOptions) -> None:
    """Before anything is measured for them."""
    from . import plots

    for option, path in (("--json", options.json), ("--plot", options.plot)):
        folder = os.path.dirname(path or "") or "."
        if not os.path.isdir(folder):
            raise CommandError(f"{option}: there is no folder '{folder}'; make it, or name another")
    if options.plot is None:
        return
    if name not in _PLOTS:
        raise CommandError(f"--plot: it is for {', '.join(_PLOTS)}, not for {name or 'the suite'}")
    plots.check(options.plot)


def _draw(name: str, path: str, rows: Sequence[Row]) -> None:
    from . import plots, plots_lattice

    if name == "overlap":
        plots_lattice.draw_overlap(path, rows)
    elif name == "itt":
        plots_lattice.draw_itt(path, rows)
    else:
        plots.draw(path, rows)


def layouts(name: str | None, text: str | None) -> list[tuple[int | None, list[str]]]:
    """[(ranks, options of the program)]; one of neither where none are asked for."""
    if text is None:
        return [(None, [])]
    if name not in _LAYOUTS:
        known = ", ".join(_LAYOUTS)
        raise CommandError(f"--layouts: it is for {known}, not for {name or 'the suite'}")
    made: list[tuple[int | None, list[str]]] = []
    for word in text.split(","):
        ranks, _, threads = word.partition("x")
        if not (ranks.isdecimal() and threads.isdecimal() and int(ranks) and int(threads)):
            raise CommandError(f"--layouts: '{word}', expected ranks x threads, such as 2x2")
        made.append((int(ranks), ["--threads", threads]))
    return made


def _own(name: str | None, rest: list[str]) -> list[str]:
    """The program's options; those of the suite are quick."""
    rest = rest[1:] if rest[:1] == ["--"] else rest
    return rest if name else ["--quick"]


def _start_one(job: Job, options: BenchOptions, budget: Budget) -> int:
    """A single program writes its rows itself."""
    if job.name in jobs.MODULES:  # Python and an MPI take a second to load
        _progress(0, 1, job, time.monotonic())
    json = ["--json", options.json] if options.json else []
    return jobs.start(plan.make(job.request(options, *budget.next(), *json)))[0]


def _measure(starts: Sequence[Job], options: BenchOptions, budget: Budget, folder: str) -> int:
    """Runs several jobs and joins their rows; the first failure is the status, a signal ends
    all."""
    first_failure, begun = 0, time.monotonic()
    rows: list[Row] = []
    for index, job in enumerate(starts):
        _progress(index, len(starts), job, begun)
        file = os.path.join(folder, f"{index}.json")
        planned = plan.make(job.request(options, *budget.next(), "--json", file))
        status, passed = jobs.start(planned)
        rows += jobs.read_rows(file, job.installation)
        if status:
            first_failure = first_failure or status
            if passed is not None:
                break
            sys.stderr.write(
                f"ropewalk bench: {job.name} under {job.installation.title} ended with status "
                f"{status}\n"
            )
        print(flush=True)
    if options.json:
        jobs.write_rows(options.json, rows)
    if options.plot and not first_failure:
        _draw(starts[0].name, options.plot, rows)
    print("\n".join(summary.lines(rows, time.monotonic() - begun)))
    return first_failure


def _progress(index: int, count: int, job: Job, begun: float) -> None:
    seconds = f", {time.monotonic() - begun:.0f} s" if index else ""
    sys.stderr.write(
        f"-- {index + 1}/{count}: {job.name} under {job.installation.title}{seconds}\n"
    )
    sys.stderr.flush()


_NONE_FOUND = "none found; build them with `make`"
_COLUMNS = 100  # of the help, at most


def _help(name: str | None, found: Mapping[str, str]) -> int:
    parser().print_help()
    print()
    if name is None:
        known = ", ".join(_all(found)) if found else _NONE_FOUND
        print(textwrap.fill(f"benches: {known}", _COLUMNS, subsequent_indent=" " * 9))
        return 0
    words = jobs.words_of(_names(name, [], found)[0], found)
    print(f"options of {name}:", flush=True)
    return subprocess.run([*words, "--help"], stdin=subprocess.DEVNULL).returncode
