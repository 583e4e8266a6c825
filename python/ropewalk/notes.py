"""What `ropewalk run` warns of before the ranks start."""

import os
from collections.abc import Iterator, Mapping

from . import batch, config, plan
from .exceptions import ArgumentError
from .paths import is_same_file
from .preload import LIBRARIES

# Programs that start ranks themselves.
_LAUNCHERS = ("mpiexec", "mpirun", "prterun", "srun")


def notes(request: plan.Request) -> Iterator[str]:
    """All of them, a text for each."""
    yield from _of_nodes(request)
    if request.threads > request.cores_each:
        yield (
            f"--threads: {request.threads} threads for each rank, which has {request.cores_each} "
            f"core{'s' if request.cores_each > 1 else ''}: they take turns"
        )
    yield from _of_launcher(request)
    yield from _of_library(request)
    yield from _of_settings({**os.environ, **dict(request.variables)})
    yield from _of_stats(request)


def _of_nodes(request: plan.Request) -> Iterator[str]:
    names = request.hosts or request.job.names
    if names and not any(batch.is_here(name) for name in names):
        yield (
            f"no rank runs on this node ({os.uname().nodename}): its cores and its network were "
            f"taken for those of {names[0]}"
        )
    used = -(-request.ranks // request.ranks_here)
    if request.hosts and used < len(request.hosts):
        yield f"{', '.join(request.hosts[used:])}: no rank, {request.ranks} fill the nodes before"


def _of_launcher(request: plan.Request) -> Iterator[str]:
    """Where each rank would start ranks."""
    name = os.path.basename(request.program[0])
    if request.ranks > 1 and name.partition(".")[0] in _LAUNCHERS:
        yield (
            f"PROGRAM: {name} starts ranks itself, and each of the {request.ranks} ranks would "
            "start a job of its own; name the program alone"
        )


def _of_library(request: plan.Request) -> Iterator[str]:
    own, one = request.own_library, request.installation
    kept = os.environ.get("ROPEWALK_MPI_LIBRARY")
    if kept and not request.chosen and not _is_same_folder(kept, one.library):
        yield (
            f"ROPEWALK_MPI_LIBRARY={kept} is your own setting, but the launcher is that of "
            f"{one.title} in {one.prefix}; unset it, or name the MPI with --mpi"
        )
    if own and not is_same_file(os.path.dirname(os.path.realpath(own)), one.library_folder):
        yield (
            f"the program is bound to {own} (DT_RPATH), but the launcher is that of {one.title} in "
            f"{one.prefix}; without --mpi it gets its own"
        )


def _is_same_folder(one: str, other: str) -> bool:
    return is_same_file(os.path.dirname(os.path.realpath(one)), os.path.dirname(other))


def _of_settings(environment: Mapping[str, str]) -> Iterator[str]:
    """Names that nothing reads, values that cannot be understood, and a profile that is not used.
    The drop-in goes on without any of them, and says so with --stats alone."""
    yield from config.unknown_names(environment)
    wrong = config.errors(environment)
    yield from wrong
    if not any(text.startswith("ROPEWALK_PROFILE:") for text in wrong):
        yield from _refused_profile(environment)


def _refused_profile(environment: Mapping[str, str]) -> Iterator[str]:
    """The library, which prints nothing, goes by its defaults then. It looks into the environment
    of this process alone."""
    given = environment.get("ROPEWALK_PROFILE")
    if not given or given != os.environ.get("ROPEWALK_PROFILE"):
        return
    from .tune.predict import REMEDY

    try:
        from . import _core

        why = _core.refused_profile()
    except (ImportError, ArgumentError):  # another setting is malformed, which is told already
        return
    if why:
        yield f"ROPEWALK_PROFILE is not used: {why}; the defaults are; {REMEDY}"


def _of_stats(request: plan.Request) -> Iterator[str]:
    """Only the drop-in counts."""
    file = LIBRARIES["mpi"]
    if not request.stats or file in request.preload.value:
        return
    why = [why for what, why in request.preload.lines if what in ("no preload", f"without {file}")]
    yield f"--stats: nothing counts in these ranks, which are started without {file}: {why[0]}"
