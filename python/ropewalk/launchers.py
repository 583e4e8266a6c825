"""The launcher of the ranks, which is the MPI's own or the batch system's, and its command line.

LD_PRELOAD is for the ranks alone, so it never stands in the environment of a launcher:
  hydra     -genv: its proxies put it into the environment of the ranks they fork
  Open MPI  -x NAME=VALUE: part of the application's environment, not of the daemons'
  srun      --export=ALL,NAME=VALUE: of the tasks; a comma would end it, then as for the others
  others    `env NAME=VALUE program` as the command of a rank
The first four were looked at in /proc: neither launcher nor proxy nor daemon has it (srun: by its
manual).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import nested
from .batch import Job
from .errors import CommandError
from .installations import Installation
from .loader import Loader

if TYPE_CHECKING:
    from .plan import Request, Setting, SettingWords
    from .rank_grid import Placement

    Words = tuple[list[str], list[str]]  # of the launcher, and before the program of a rank

CHOICES = ("own", "srun", "mpiexec")
FOR_RANKS = ("HYDRA_BINDING",)  # what a rank gets by -genv is another value than the launcher's


@dataclass(frozen=True)
class Launcher:
    kind: str  # hydra, openmpi, srun, pals, osc
    path: str
    reason: str = ""
    mpi_type: str | None = None  # srun's --mpi


# This means the launcher that came with the MPI, whichever that is.
OWN = Launcher("own", "")


def own(installation: Installation) -> Launcher:
    """The launcher that came with the MPI."""
    kind = "openmpi" if installation.family == "openmpi" else "hydra"
    return Launcher(kind, installation.launcher)


def choose(
    installation: Installation,
    job: Job,
    choice: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Launcher:
    """The launcher for an installation inside a job (batch.Job), or as --launcher says."""
    environment = os.environ if environment is None else environment
    path = environment.get("PATH")
    if choice == "own":
        return _own_or_complain(installation)
    if choice == "srun" or (choice is None and job.system == "slurm"):
        found = _srun(installation, environment, path)
        if isinstance(found, Launcher):
            return found
        if choice == "srun":
            raise CommandError(f"--launcher: srun: {found}")
        one = own(installation)
        if one.path:
            return Launcher(one.kind, one.path, f"in a Slurm job, but not srun: {found}")
        raise CommandError(f"no launcher for {installation.library}: {found}")
    if choice == "mpiexec" or (job.system == "pbs" and not installation.launcher):
        batch_system = _batch_mpiexec(path)
        if batch_system is None:
            raise CommandError(
                "no mpiexec of the batch system on PATH; load its module, or give the MPI's with "
                "--mpi PREFIX"
            )
        return batch_system
    return _own_or_complain(installation)


def _own_or_complain(installation: Installation) -> Launcher:
    if installation.launcher:
        return own(installation)
    raise CommandError(
        f"{installation.library} ({installation.origin}) has no mpiexec beside it, and this is no "
        "Slurm or PBS job that could start it; name its prefix or its launcher with --mpi"
    )


def _srun(
    installation: Installation, environment: Mapping[str, str], path: str | None
) -> Launcher | str:
    """The launcher, or why srun cannot start this MPI: a rank that finds no PMI it understands
    runs alone, as rank 0 of 1, without a word (open-mpi/ompi#13523)."""
    srun = shutil.which("srun", path=path)
    if srun is None:
        return "srun is not on PATH"
    if environment.get("SLURM_MPI_TYPE"):
        kind = environment["SLURM_MPI_TYPE"]
        return Launcher("srun", srun, f"in a Slurm job; SLURM_MPI_TYPE={kind} is your own setting")
    if installation.family == "intel" and _pmi_library(environment) is None:
        return "Intel MPI needs Slurm's libpmi2.so for it (I_MPI_PMI_LIBRARY), and none was found"
    offered = _offered(srun, environment)
    # Slurm's MPI guide: Open MPI speaks PMIx, the MPICH family PMI-2; Cray's has a plugin.
    wanted = ("pmix",) if installation.family == "openmpi" else ("cray_shasta", "pmi2")
    for prefix in wanted:
        found = next((one for one in offered if one.startswith(prefix)), None)
        if found == "cray_shasta" and installation.launcher:
            continue  # not Cray's MPI, which has no launcher of its own
        if found:
            return Launcher("srun", srun, f"in a Slurm job, which offers {found}", found)
    return (
        f"it offers no {wanted[-1]}, by which {installation.title} starts"
        f" (srun --mpi=list: {', '.join(offered) or 'nothing'})"
    )


def _pmi_library(environment: Mapping[str, str]) -> str | None:
    """Slurm's PMI library for Intel MPI (Intel's developer reference, I_MPI_PMI_LIBRARY)."""
    if environment.get("I_MPI_PMI_LIBRARY"):
        return environment["I_MPI_PMI_LIBRARY"]
    loader = Loader(environment)
    return loader.find("libpmi2.so") or loader.find("libpmi2.so.0")


def _offered(srun: str, environment: Mapping[str, str]) -> list[str]:
    """The kinds in `srun --mpi=list`, which it prints one a line, after a heading."""
    import subprocess

    try:
        done = subprocess.run(
            [srun, "--mpi=list"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    words = (done.stderr + "\n" + done.stdout).replace(",", " ").replace("srun:", " ").split()
    return [word for word in words if word.startswith(("pmi", "cray", "none", "openmpi"))]


def _batch_mpiexec(path: str | None) -> Launcher | None:
    """mpiexec of HPE's PALS, else of Torque (OSC's), which has the same name."""
    found = shutil.which("mpiexec", path=path)
    if found is None:
        return None
    kind = "pals" if "pals" in os.path.realpath(found).lower() else "osc"
    return Launcher(kind, found, "in a PBS job, whose mpiexec starts this MPI")


def variables(request: Request, environment: Mapping[str, str]) -> Iterator[SettingWords]:
    """(name, value, reason) that the launcher needs."""
    launcher, family = request.launcher, request.installation.family
    if launcher.kind == "srun" and family == "intel":
        library = _pmi_library(environment)
        if library:
            yield "I_MPI_PMI_LIBRARY", library, "Intel MPI starts under srun through it"
    placed = request.per_node or request.hosts
    if launcher.kind == "hydra" and family == "intel" and request.job.system and placed:
        # Intel's developer reference, "Job Schedulers Support": -ppn is passed over without it.
        yield "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT", "0", "ranks are placed by hand, not by the job"
    binding = _hydra_binding(request, environment)
    if binding and _reads_variables(request, environment):
        if binding == "none":
            yield "HYDRA_BINDING", binding, "--no-bind"
        else:
            plural = "core" if request.cores_each == 1 else "cores"
            yield (
                "HYDRA_BINDING",
                binding,
                f"binds each rank to {request.cores_each} {plural}; after the option -bind-to, "
                "MPI_Comm_spawn fails (MPICH 5.0)",
            )
    if launcher.kind == "openmpi" and not request.installation.prte and request.stays_here:
        path = environment.get("PATH")
        if not any(shutil.which(name, path=path) for name in ("ssh", "rsh")):
            yield (
                "OMPI_MCA_plm_rsh_agent",
                "",
                "neither ssh nor rsh is on PATH: one node starts without",
            )


# ---- command lines -------------------------------------------------------------------------------


def command(
    request: Request, environment: Mapping[str, str], settings: Iterable[Setting], preload: str = ""
) -> list[str]:
    """The whole command line: launcher, its options, the number of ranks, the program."""
    make = {
        "hydra": _hydra,
        "openmpi": _openmpi,
        "srun": _srun_options,
        "pals": _pals,
        "osc": _osc,
    }[request.launcher.kind]
    options, rank = make(request, environment, settings, preload)
    return [
        request.launcher.path,
        *options,
        *request.launcher_options,
        "-n",
        str(request.ranks),
        *rank,
        *request.program,
    ]


def _with_env(preload: str) -> list[str]:
    return ["env", f"LD_PRELOAD={preload}"] if preload else []


# The user's own words on binding: ours then stay out.
_BINDING_VARIABLES = {
    "mpich": ("HYDRA_BINDING",),
    "openmpi": (
        "OMPI_MCA_hwloc_base_binding_policy",
        "OMPI_MCA_rmaps_base_mapping_policy",
        "PRTE_MCA_hwloc_default_binding_policy",
        "PRTE_MCA_rmaps_default_mapping_policy",
    ),
    "intel": ("I_MPI_PIN", "I_MPI_PIN_DOMAIN"),
}
_BINDING_OPTIONS = ("bind-to", "map-by", "cpu-bind", "cpu_bind", "ppn", "distribution")


def _asked(request: Request, *options: str) -> bool:
    return any(
        given.lstrip("-").startswith(option)
        for given in request.launcher_options
        for option in options
    )


def leaves_binding_alone(request: Request, environment: Mapping[str, str]) -> bool:
    given = {**environment, **dict(request.variables)}
    names = _BINDING_VARIABLES[request.installation.family]
    return _asked(request, *_BINDING_OPTIONS) or any(name in given for name in names)


def _hydra_binding(request: Request, environment: Mapping[str, str]) -> str | None:
    """What MPICH's hydra binds a rank to; None where it is not told."""
    if request.launcher.kind != "hydra" or request.installation.family != "mpich":
        return None
    if leaves_binding_alone(request, environment):
        return None
    if request.binding and request.ranks_here > 1:
        return f"core:{request.cores_each}"
    return "none" if request.bind is False else None


def _reads_variables(request: Request, environment: Mapping[str, str]) -> bool:
    """Whether HYDRA_BINDING reaches hydra's proxies, which read it from their own environment
    (HYDT_topo_set in hydra's lib/tools/topo/topo.c): not by ssh, and a batch system may hand it on
    or not. The default is no binding, so `none` need not reach them."""
    if request.bind is False:
        return True
    elsewhere = "HYDRA_HOST_FILE" in environment or _asked(request, "f", "host", "machinefile")
    return request.stays_here and request.job.system is None and not elsewhere


def _hydra(
    request: Request, environment: Mapping[str, str], settings: Iterable[Setting], preload: str
) -> Words:
    options = []
    binding = _hydra_binding(request, environment)
    if binding and not _reads_variables(request, environment):
        options += ["-bind-to", binding]
    elif binding and binding != "none":
        # A rank that starts another hydra hands it its own cores instead of the first ones of the
        # node.
        options += ["-genv", "HYDRA_BINDING", "none"]
    if request.placement:
        options += _hydra_placement(request.placement, request.installation)
    elif request.hosts:
        options += ["-hosts", ",".join(request.hosts), "-ppn", str(request.ranks_here)]
    elif request.per_node:
        options += _job_hosts(request, counted=False)
        options += ["-ppn", str(request.per_node)]
    else:
        options += _job_hosts(request, counted=True)
    if preload:
        options += ["-genv", "LD_PRELOAD", preload]
    return options, []


def _hydra_placement(placement: Placement, installation: Installation) -> list[str]:
    """Intel's takes a host again as the same node; MPICH's would take it for another one."""
    if installation.family == "intel":
        return ["-hosts", ",".join(placement.host_of_each), "-ppn", "1"]
    nodes = ",".join(map(str, placement.nodes))
    return ["-hosts", ",".join(placement.hosts), "-rankmap", nodes]


def _job_hosts(request: Request, counted: bool) -> list[str]:
    """Hydra may have been built without PBS; Intel's reads the job's file by itself. Of a box it
    knows nothing."""
    if request.job.system != "box" and (
        request.job.system != "pbs" or request.installation.family == "intel"
    ):
        return []
    hosts = [f"{name}:{places}" if counted else name for name, places in request.job.hosts]
    return ["-hosts", ",".join(hosts)] if hosts else []


def _openmpi(
    request: Request, environment: Mapping[str, str], settings: Iterable[Setting], preload: str
) -> Words:
    options = []
    if not leaves_binding_alone(request, environment):
        options += _openmpi_binding(request)
    elif request.per_node and not _asked(request, "map-by", "ppn"):
        options += ["--map-by", _openmpi_place(request) or "slot"]
    options += _openmpi_hosts(request)
    if request.nodes > 1:  # hydra passes the whole environment on
        for name in (*(one.name for one in settings), nested.MARK):
            options += ["-x", name]
    if preload:
        options += ["-x", f"LD_PRELOAD={preload}"]
    return options, []


def _openmpi_hosts(request: Request) -> list[str]:
    if request.placement:  # `seq`: one rank for each of the names, in their order
        return ["--host", ",".join(request.placement.host_of_each)]
    if request.hosts:
        return ["--host", ",".join(f"{one}:{request.ranks_here}" for one in request.hosts)]
    if request.job.system == "box":
        each = [(name, request.per_node or places) for name, places in request.job.hosts]
        return ["--host", ",".join(f"{name}:{places}" for name, places in each)]
    if request.job.node_file and request.job.hosts and not _asked(request, "hostfile"):
        return ["--hostfile", request.job.node_file]
    return []


def _openmpi_place(request: Request) -> str | None:
    if request.placement:
        return "seq"
    return f"ppr:{request.per_node}:node" if request.per_node else None


def _openmpi_binding(request: Request) -> list[str]:
    place = _openmpi_place(request)
    if not request.binding or request.ranks_here == 1:
        # Its default binds a lone rank, with all its threads.
        return [*(["--map-by", place] if place else []), "--bind-to", "none"]
    if request.cores_each == 1:
        # PRRTE counts cores of running ranks as taken, even for children that it does not bind.
        core = "core:overload-allowed" if request.installation.prte else "core"
        return [*(["--map-by", place] if place else []), "--bind-to", core]
    return ["--map-by", f"{place or 'slot'}:PE={request.cores_each}", "--bind-to", "core"]


def _srun_options(
    request: Request, environment: Mapping[str, str], settings: Iterable[Setting], preload: str
) -> Words:
    options = []
    if request.launcher.mpi_type:
        options.append(f"--mpi={request.launcher.mpi_type}")
    if request.placement:
        # One task for each of the names, in their order. srun refuses --nodes and
        # --ntasks-per-node beside it.
        hosts = ",".join(request.placement.host_of_each)
        options += ["--distribution=arbitrary", f"--nodelist={hosts}"]
    elif request.hosts:
        options += [f"--nodelist={','.join(request.hosts)}", f"--nodes={len(request.hosts)}"]
    if not request.placement and (request.hosts or request.per_node):
        options.append(f"--ntasks-per-node={request.ranks_here}")
    options += _srun_binding(request, environment)
    if not preload or "," in preload:
        return options, _with_env(preload)
    return [*options, f"--export=ALL,LD_PRELOAD={preload}"], []


def _srun_binding(request: Request, environment: Mapping[str, str]) -> list[str]:
    """A task gets one CPU unless it is told otherwise: too little for a rank with threads."""
    if _asked(request, *_BINDING_OPTIONS, "cpus-per-task", "c", "overcommit", "O"):
        return []
    cpus = request.job.cpus_here
    each = cpus // request.ranks_here if cpus else 0
    own_number = environment.get("SLURM_CPUS_PER_TASK", "")
    options = []
    if own_number.isdigit():  # srun itself has not passed it on since Slurm 22.05
        options.append(f"--cpus-per-task={own_number}")
    elif each > 1:
        options.append(f"--cpus-per-task={each}")
    elif cpus and each == 0:
        options.append("--overcommit")
    return [*options, "--cpu-bind=none"] if request.bind is False else options


def _pals(
    request: Request, environment: Mapping[str, str], settings: Iterable[Setting], preload: str
) -> Words:
    options = []
    if request.hosts:
        options += ["--hosts", ",".join(request.hosts)]
    if request.hosts or request.per_node:
        options += ["--ppn", str(request.ranks_here)]
    if not _asked(request, *_BINDING_OPTIONS):
        if request.binding and request.ranks_here > 1:
            options += ["--cpu-bind", "depth", "--depth", str(request.cores_each)]
        elif request.bind is False:
            options += ["--cpu-bind", "none"]
    return options, _with_env(preload)


def _osc(
    request: Request, environment: Mapping[str, str], settings: Iterable[Setting], preload: str
) -> Words:
    options = ["-npernode", str(request.per_node)] if request.per_node else []
    return options, _with_env(preload)
