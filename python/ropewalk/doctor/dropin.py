"""Facts of the drop-in for `ropewalk doctor`: the libraries that `ropewalk run` preloads, whether
the loader takes them, what else wants the same calls, and whether Fortran programs are reached.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from .. import elf, preload
from ..installations import Installation

_SECONDS = 20
# These libraries hold an MPI's Fortran binding, best first; the last ones hold all of it.
_FORTRAN = {
    "openmpi": ("libmpi_mpifh.so.40", "libmpi.so.40"),
    "mpich": ("libmpifort.so.12", "libmpichfort.so.12", "libmpi.so.12"),
    "intel": ("libmpifort.so.12", "libmpi.so.12"),
}
_NAME = "mpi_allreduce_"  # stands for all


def facts(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON object of the drop-in."""
    environment = os.environ if environment is None else environment
    found = preload.find(environment)
    return {
        "libraries": {name: found.get(name) for name in preload.LIBRARIES},
        "looked_in": list(preload.folders(environment)),
        "complaint": complaint(list(found.values()), environment),
        "tools": tools(environment, tuple(found.values())),
    }


def complaint(libraries: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What the loader says when they are put into a program that does nothing; None for nothing."""
    program = shutil.which("true")
    if not libraries or program is None:
        return None
    try:
        done = subprocess.run(
            [program],
            env={**environment, "LD_PRELOAD": ":".join(libraries)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__} when {program} was started with them"
    lines = done.stderr.strip().splitlines()
    if lines:
        return lines[0]
    return f"{program} ended with status {done.returncode}" if done.returncode else None


def tools(environment: Mapping[str, str], own: Sequence[str] = ()) -> list[str]:
    """Entries of LD_PRELOAD that take MPI's calls: a PMPI tool such as IPM, mpiP or Score-P."""
    entries = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    return [
        entry
        for entry in entries
        if entry not in own and elf.defined(entry, ("MPI_Init", "MPI_Init_thread", "MPI_Allreduce"))
    ]


def fortran(installation: Installation, library: str | None = None) -> dict[str, Any]:
    """{"library", "intercepted", "detail"} of the MPI's Fortran binding."""
    for name in _FORTRAN[installation.family]:
        path = os.path.join(installation.library_folder, name)
        if os.path.exists(path) and elf.defined(path, (_NAME,)):
            return {"library": path, **_reached(path, library)}
    return {"library": None, "intercepted": None, "detail": "it has no Fortran binding here"}


def _reached(path: str, library: str | None) -> dict[str, Any]:
    if library is None:
        return {"intercepted": False, "detail": "libropewalk-mpi.so is not built"}
    if elf.defined(library, (_NAME,)):
        return {"intercepted": True, "detail": "its names are libropewalk-mpi.so's, too"}
    name = os.path.basename(path)
    calls = elf.undefined(path, ("MPI_Allreduce", "PMPI_Allreduce"))
    if "MPI_Allreduce" in calls:
        return {"intercepted": True, "detail": f"{name} calls MPI_*"}
    where = "calls PMPI_*, past any library before it" if calls else "is part of the MPI itself"
    return {"intercepted": False, "detail": f"{name} {where}"}
