"""One start of a benchmark program: where the programs are, what each is started with, its rows."""

import dataclasses
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import autogroup, batch, installations, launch, plan, run
from ..errors import CommandError
from ..options import RankOptions
from ..paths import PACKAGE, TREE
from . import plain

Row = dict[str, Any]  # of a table: the case by its options, then its figures

PREFIX = "ropewalk-bench-"
# These are Python's.
MODULES = {"numpy": "numpy_ranks"}
# The ranks a program is made for, where these are not two.
_DEFAULT_RANKS = {"memory": 1, "pages": 1}


@dataclasses.dataclass
class BenchOptions(RankOptions):
    """The options of `ropewalk bench`, without those of the program."""

    mpi: list[str] = dataclasses.field(default_factory=list)
    against: str | None = None
    time: str | None = None
    json: str | None = None
    plot: str | None = None
    layouts: str | None = None
    dry_run: bool = False
    help: bool = False


def folders() -> Iterator[str]:
    """Where the programs may lie, first to last; only there where ROPEWALK_LIBEXEC says so."""
    if os.environ.get("ROPEWALK_LIBEXEC"):
        yield os.environ["ROPEWALK_LIBEXEC"]
        return
    yield os.path.join(PACKAGE, "libexec")
    yield os.path.join(TREE, "build", "release", "bench")


def programs() -> dict[str, str]:
    """{name: path} of the programs found."""
    found: dict[str, str] = {}
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


def words_of(name: str, found: Mapping[str, str]) -> list[str]:
    """What a bench is started as: its program, or a module of this package."""
    if name in MODULES:
        return [sys.executable, "-m", f"{__package__}.{MODULES[name]}"]
    return [found[name]]


def request_for(
    options: BenchOptions, name: str, program: list[str], installation: installations.Installation
) -> plan.Request:
    """What is started: `program` is the path of the bench and its words."""
    ranks = _DEFAULT_RANKS.get(name) if options.ranks is None else options.ranks
    if ranks is None and batch.job().system != "box":  # else those of the box
        ranks = 2
    wanted = run.RunOptions(
        ranks=ranks,
        lanes=options.lanes,
        bind=options.bind,
        env=options.env,
        launcher_option=options.launcher_option,
        mpi=installation.prefix if options.mpi or options.against else None,
        # The programs compare ropewalk with the plain MPI: nothing may stand between.
        preload=False,
        program=program,
    )
    request = run.make_request(wanted, installation)
    return dataclasses.replace(request, plain=plain.is_plain(name, options, program))


@dataclasses.dataclass
class Job:
    """One start of one program."""

    name: str
    program: list[str]
    installation: installations.Installation
    ranks: int | None

    def request(self, options: BenchOptions, *more: str) -> plan.Request:
        options = dataclasses.replace(options, ranks=self.ranks)
        return request_for(options, self.name, [*self.program, *more], self.installation)


def start(planned: plan.Plan) -> tuple[int, int | None]:
    """As launch.start_one_of(); what a benchmark has raised is put back, however it ended."""
    with autogroup.kept():
        return launch.start_one_of(planned.command, plain.environment(planned, os.environ))


def read_rows(file: str, installation: installations.Installation) -> list[Row]:
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


def write_rows(path: str, rows: Sequence[Row]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    except OSError as error:
        raise CommandError(f"--json: {path}: {error.strerror}", status=1) from None


def machine(name: str, words: Sequence[str]) -> Row:
    """The first row of a bench that Python programs make."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
    return {
        "bench": "machine",
        "host": platform.node(),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": cpu[1] if cpu else "",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "command": shlex.join(["ropewalk", "bench", name, *words]),
    }
