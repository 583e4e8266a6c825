"""`ropewalk bench`: starts the benchmark programs, under one MPI or several, and joins their rows.

The programs are ropewalk-bench-NAME; options this file does not know are theirs.
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from . import batch, bench_summary, installations, launch, plan, run
from .errors import CommandError

PREFIX = "ropewalk-bench-"
# The quick suite, in the order people read it, and the ranks a program is made for.
SUITE = ("comms", "collectives", "memory", "pages")
_PLOTS = ("gradient", "overlap", "itt")
_LAYOUTS = ("overlap", "itt")
_WITH_LANES = ("comms", "overlap", "itt")
_DEFAULT_RANKS = {"memory": 1, "pages": 1}

DESCRIPTION = """Measure communication and memory on this machine. Without NAME: the quick suite, in
about a minute. Options that are not listed here are the program's."""


def parser():
    made = argparse.ArgumentParser(
        prog="ropewalk bench",
        description=DESCRIPTION,
        allow_abbrev=False,
        add_help=False,
        usage="ropewalk bench [NAME] [options] [options of the program]",
    )
    made.add_argument("-h", "--help", action="store_true", help="this, and the program's options")
    made.add_argument(
        "-n", "--ranks", type=int, metavar="N", help="ranks (2 where they talk; all of a box)"
    )
    made.add_argument(
        "--mpi",
        action="append",
        default=[],
        metavar="NAME",
        help="mpich, openmpi, intel, system or a prefix; several, as a list or repeated, are "
        "measured one after the other",
    )
    made.add_argument(
        "--against",
        metavar="PEER,...",
        help="collectives: the same sweep under each of mpich, mpich-nodevice, openmpi, "
        "openmpi-ucx, intel (or PEER=PREFIX), and the best of them in each case",
    )
    made.add_argument("--lanes", type=int, metavar="K", help="lanes of each rank")
    made.add_argument(
        "--bind",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="bind ranks to cores (when there are enough)",
    )
    made.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of the ranks"
    )
    made.add_argument(
        "--launcher-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="passed to the launcher as it is",
    )
    made.add_argument("--json", metavar="FILE", help="write all rows of all MPIs as JSON lines")
    made.add_argument(
        "--plot",
        metavar="FILE",
        help="gradient, overlap, itt: draw their figures (.svg, .png, .pdf; matplotlib)",
    )
    made.add_argument(
        "--layouts",
        metavar="RxT,...",
        help="overlap, itt: ranks x threads, one layout after the other, as 4x1,2x2",
    )
    made.add_argument("--dry-run", action="store_true", help="show the commands, start nothing")
    return made


def folders():
    """Where the programs may lie, first to last; only there where ROPEWALK_LIBEXEC says so."""
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("ROPEWALK_LIBEXEC"):
        yield os.environ["ROPEWALK_LIBEXEC"]
        return
    yield os.path.join(here, "libexec")
    source = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # python/
    yield os.path.join(os.path.dirname(source), "build", "release", "bench")


def programs():
    """{name: path} of the programs found."""
    found = {}
    for folder in folders():
        try:
            files = sorted(os.listdir(folder))
        except OSError:
            continue
        for file in files:
            path = os.path.join(folder, file)
            if file.startswith(PREFIX) and os.path.isfile(path) and os.access(path, os.X_OK):
                found.setdefault(file.removeprefix(PREFIX), path)
    return found


def main(arguments):
    name = arguments[0] if arguments and not arguments[0].startswith("-") else None
    options, rest = parser().parse_known_args(arguments[1:] if name else arguments)
    found = programs()
    if options.help:
        return _help(name, found)
    names = _names(name, rest, found)
    _check_files(name, options)
    if options.against is not None:
        from . import bench_against

        return bench_against.main(name, found[names[0]], options, _own(name, rest))
    chosen = [_installation(choice) for choice in _mpis(options)]
    own = [*_own(name, rest), *_lanes(name, options)]
    jobs = [
        Job(one, [found[one], *threads, *own], installation, ranks or options.ranks)
        for one in names
        for installation in chosen
        for ranks, threads in layouts(name, options.layouts)
    ]
    if options.dry_run:
        for job in jobs:
            request = job.request(options)
            print(run.describe(request, plan.make(request)))
        return 0
    if len(jobs) == 1 and options.plot is None:
        return _start_one(jobs[0], options)
    with tempfile.TemporaryDirectory(prefix="ropewalk-bench-") as folder:
        return _measure(jobs, options, folder)


@dataclasses.dataclass
class Job:
    """One start of one program."""

    name: str
    program: list
    installation: installations.Installation
    ranks: int | None

    def request(self, options, *more):
        options = argparse.Namespace(**{**vars(options), "ranks": self.ranks})
        return request_for(options, self.name, [*self.program, *more], self.installation)


def _names(name, rest, found):
    if name is None:
        if rest:
            raise CommandError(f"{rest[0]}: name the bench it is for: {', '.join(sorted(found))}")
        suite = [one for one in SUITE if one in found]
        if suite:
            return suite
    elif name in found:
        return [name]
    if not found:
        raise CommandError(
            "no benchmark programs in " + ", ".join(folders()) + "; build them with `make build`, "
            "or give their folder in ROPEWALK_LIBEXEC",
            status=1,
        )
    raise CommandError(f"NAME: '{name}', expected {', '.join(sorted(found))}")


def _mpis(options):
    return [choice for given in options.mpi for choice in given.split(",") if choice] or [None]


def _installation(choice):
    if choice and re.fullmatch(r"\d+(\.\d+){1,5}", choice) and not os.path.exists(choice):
        raise CommandError(
            f"--mpi: '{choice}' is a grid of ranks, expected an MPI (mpich, openmpi, intel, system "
            f"or a folder); write --mpi-grid {choice}"
        )
    return installations.choose(choice)


def _lanes(name, options):
    """These have an option of their own, which says more than the ranks' environment."""
    if options.lanes is None or name not in _WITH_LANES:
        return []
    return ["--lanes", str(options.lanes)]


def _check_files(name, options):
    """Before anything is measured for them."""
    from . import bench_plots

    for option, path in (("--json", options.json), ("--plot", options.plot)):
        folder = os.path.dirname(path or "") or "."
        if not os.path.isdir(folder):
            raise CommandError(f"{option}: there is no folder '{folder}'; make it, or name another")
    if options.plot is None:
        return
    if name not in _PLOTS:
        raise CommandError(f"--plot: it is for {', '.join(_PLOTS)}, not for {name or 'the suite'}")
    bench_plots.check(options.plot)


def _draw(name, path, rows):
    from . import bench_plots, bench_plots_lattice

    if name == "overlap":
        bench_plots_lattice.draw_overlap(path, rows)
    elif name == "itt":
        bench_plots_lattice.draw_itt(path, rows)
    else:
        bench_plots.draw(path, rows)


def layouts(name, text):
    """[(ranks, options of the program)]; one of neither where none are asked for."""
    if text is None:
        return [(None, [])]
    if name not in _LAYOUTS:
        known = ", ".join(_LAYOUTS)
        raise CommandError(f"--layouts: it is for {known}, not for {name or 'the suite'}")
    made = []
    for word in text.split(","):
        ranks, _, threads = word.partition("x")
        if not (ranks.isdecimal() and threads.isdecimal() and int(ranks) and int(threads)):
            raise CommandError(f"--layouts: '{word}', expected ranks x threads, such as 2x2")
        made.append((int(ranks), ["--threads", threads]))
    return made


def _own(name, rest):
    """The program's options; those of the suite are quick."""
    rest = rest[1:] if rest[:1] == ["--"] else rest
    return rest if name else ["--quick"]


def request_for(options, name, program, installation):
    # The programs compare ropewalk with the plain MPI: nothing may stand between.
    words = ["--no-preload"]
    ranks = _DEFAULT_RANKS.get(name) if options.ranks is None else options.ranks
    if ranks is None and batch.job().system != "box":
        ranks = 2
    if ranks is not None:  # otherwise those of the box
        words += ["-n", str(ranks)]
    if options.lanes is not None:
        words += ["--lanes", str(options.lanes)]
    if options.bind is not None:
        words.append("--bind" if options.bind else "--no-bind")
    words += [f"--env={text}" for text in options.env]
    words += [f"--launcher-option={text}" for text in options.launcher_option]
    parsed = run.parser().parse_args([*words, "--mpi", installation.prefix, "--", *program])
    return run.make_request(parsed, installation)


def _start_one(job, options):
    """A single program writes its rows itself."""
    planned = plan.make(job.request(options, *(["--json", options.json] if options.json else [])))
    return launch.start(planned.command, planned.environment(os.environ))


def _measure(jobs, options, folder):
    """Runs several jobs and joins their rows; the first failure is the status, a signal ends
    all."""
    first_failure, rows, begun = 0, [], time.monotonic()
    for index, job in enumerate(jobs):
        _progress(index, len(jobs), job, begun)
        file = os.path.join(folder, f"{index}.json")
        planned = plan.make(job.request(options, "--json", file))
        status, passed = launch.start_one_of(planned.command, planned.environment(os.environ))
        rows += read_rows(file, job.installation)
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
        write_rows(options.json, rows)
    if options.plot and not first_failure:
        _draw(jobs[0].name, options.plot, rows)
    print("\n".join(bench_summary.lines(rows, time.monotonic() - begun)))
    return first_failure


def _progress(index, count, job, begun):
    seconds = f", {time.monotonic() - begun:.0f} s" if index else ""
    sys.stderr.write(
        f"-- {index + 1}/{count}: {job.name} under {job.installation.title}{seconds}\n"
    )
    sys.stderr.flush()


def read_rows(file, installation):
    """The rows a program wrote, each with the MPI it was measured under; [] if it wrote none."""
    rows = []
    try:
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                row.setdefault("mpi", installation.title)
                row["mpi_family"] = installation.family
                rows.append(row)
    except (OSError, ValueError):
        pass
    return rows


def write_rows(path, rows):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    except OSError as error:
        raise CommandError(f"--json: {path}: {error.strerror}", status=1) from None


def _help(name, found):
    print(parser().format_help())
    if name is None:
        print("benches: " + (", ".join(sorted(found)) or "none found; build them with `make`"))
        return 0
    path = found[_names(name, [], found)[0]]
    print(f"options of {name}:", flush=True)
    return subprocess.run([path, "--help"], stdin=subprocess.DEVNULL).returncode
