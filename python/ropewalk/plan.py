"""What `ropewalk run` starts: the launcher's command line, and each variable with its reason.

A plan is made from facts alone and starts nothing, so `--dry-run` shows it and tests read it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from . import launchers, nested, openmp
from .batch import Job, is_here
from .installations import Installation
from .preload import LIBRARIES, Preload
from .rank_grid import Placement

MAXIMUM_LANES = 64  # EndpointSet::max_lanes
AUTOMATIC_LANES = 8  # more were never faster in Boyle et al. 2017, figure 6
MPICH_INTERFACES = 16  # more than these cost start-up time and gain nothing


SettingWords = tuple[str, str, str]  # name, value, reason


@dataclass(frozen=True)
class Setting:
    name: str
    value: str
    reason: str
    user: bool = False  # the user's own value, which wins


@dataclass
class Plan:
    command: list[str]
    settings: list[Setting] = field(default_factory=list)
    preload: str = ""  # LD_PRELOAD of the ranks, which the command hands to them alone

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The environment of the launcher: without our libraries, which a rank that starts
        another job hands on."""
        base = nested.outside(base)
        found = {**base, **{one.name: one.value for one in self.settings}}
        entries = found.get("LD_PRELOAD", "").replace(":", " ").split()
        kept = [one for one in entries if os.path.basename(one) not in LIBRARIES.values()]
        if len(kept) < len(entries):
            found["LD_PRELOAD"] = ":".join(kept)
        ours = {one.name: one.value for one in self.settings if not one.user}
        ours.update({name: value for name, value in self.for_ranks.items() if name in ours})
        return {**found, nested.MARK: nested.mark(ours, base)}

    @property
    def for_ranks(self) -> dict[str, str]:
        """What the command line changes for the ranks: hydra's -genv NAME VALUE."""
        words = self.command
        return {
            words[at + 1]: words[at + 2]
            for at, word in enumerate(words[:-2])
            if word == "-genv" and words[at + 1] in launchers.FOR_RANKS
        }


@dataclass(frozen=True)
class Request:
    """What was asked for, and the facts of the machine that a plan depends on."""

    installation: Installation
    ranks: int
    program: list[str]
    lanes: int = 0  # 0: automatic
    threads: int = 0  # of each rank's program; 0: nobody said
    core_groups: tuple[tuple[int, ...], ...] = ()  # CPUs of each core here; where it matters
    near: frozenset[int] = frozenset()  # those CPUs that are near the adapter between nodes
    bind: bool | None = None  # None: when every rank can have a core
    variables: tuple[tuple[str, str], ...] = ()  # (name, value) of --env
    launcher_options: tuple[str, ...] = ()
    cores: int = 1
    nodes: int = 1
    root: bool = False
    needed: tuple[str, ...] = ()  # sonames the program is linked to
    python: bool = False
    launcher: launchers.Launcher = launchers.OWN
    job: Job = field(default_factory=Job)
    hosts: tuple[str, ...] = ()  # of --nodes
    per_node: int | None = None  # of --ranks-per-node, or of --grid
    placement: Placement | None = None  # of --grid, over several nodes
    preload: Preload = field(default_factory=Preload)
    stats: bool = False
    fabric: tuple[SettingWords, ...] = ()  # of fabric.settings
    scalable_endpoints: bool = True  # libfabric's, on the fabric there is
    ucx_netmod: bool = False  # MPICH reaches other nodes through UCX
    own_library: str | None = None  # the libmpi that the program finds by itself
    chosen: bool = False  # the installation was named: --mpi
    plain: bool = False  # nothing is prepared for lanes: a benchmark of the MPI itself

    def __post_init__(self) -> None:
        if self.launcher == launchers.OWN:
            object.__setattr__(self, "launcher", launchers.own(self.installation))

    @property
    def ranks_here(self) -> int:
        if self.job.system == "box" and not self.hosts and not self.per_node:
            return max(1, max(places for _, places in self.job.hosts))
        return min(self.ranks, self.per_node or -(-self.ranks // self.nodes))

    @property
    def stays_here(self) -> bool:
        """Whether every rank starts on this node, as far as the options and the job tell."""
        return self.nodes == 1 and all(is_here(name) for name in self.hosts or self.job.names)

    @property
    def oversubscribed(self) -> bool:
        return self.ranks_here > self.cores

    @property
    def cores_each(self) -> int:
        return max(1, self.cores // self.ranks_here)

    @property
    def lanes_wanted(self) -> int:
        """Lanes the MPI is prepared for: as asked, else from the cores a rank has to spare."""
        if self.plain:
            return 1
        busy = max(1, self.threads)
        return self.lanes or min(AUTOMATIC_LANES, max(1, self.cores_each - busy))

    @property
    def binding(self) -> bool:
        wanted = not self.oversubscribed if self.bind is None else self.bind
        return wanted and not self.oversubscribed


def make(request: Request, environment: Mapping[str, str] | None = None) -> Plan:
    """The plan of a request in the user's environment, whose own settings win."""
    environment = nested.outer(os.environ if environment is None else environment)
    wanted = list(_common(request, environment))
    wanted += {"mpich": _mpich, "openmpi": _openmpi, "intel": _intel}[request.installation.family](
        request, environment
    )
    wanted += request.fabric
    wanted += launchers.variables(request, environment)
    given = dict(request.variables)
    preload = request.preload.value or given.pop("LD_PRELOAD", "")
    settings = [
        Setting(name, value, "set with --env", user=True)
        for name, value in given.items()
        if name != "LD_PRELOAD"
    ]
    for name, value, reason in wanted:
        if name in given:
            continue
        if _is_of_another_mpi(request, name, value, environment):
            reason = f"{reason} (--mpi; yours is another MPI's: {environment[name]})"
            settings.append(Setting(name, value, reason))
        elif name in environment and name not in _EXTENDED:
            settings.append(Setting(name, environment[name], "your own setting, kept", user=True))
        else:
            settings.append(Setting(name, value, reason))
    return Plan(launchers.command(request, environment, settings, preload), settings, preload)


# Ours all the same: the first keeps what you had, the others are there only on request.
_EXTENDED = ("LD_LIBRARY_PATH", "ROPEWALK_LANES", "ROPEWALK_STATS")


# They say which MPI it is, and --mpi has said so.
_LIBRARY_VARIABLES = ("ROPEWALK_MPI_LIBRARY", "MPI4PY_LIBMPI", "I_MPI_ROOT")


def _is_of_another_mpi(
    request: Request, name: str, value: str, environment: Mapping[str, str]
) -> bool:
    """Whether an explicit --mpi contradicts what the user has exported. The library of the MPI-5
    ABI beside the classic one is of the same MPI."""
    if not request.chosen or name not in _LIBRARY_VARIABLES or name not in environment:
        return False
    return not _is_same_place(name, environment[name], value)


def _is_same_place(name: str, one: str, other: str) -> bool:
    one, other = os.path.realpath(one), os.path.realpath(other)
    if name in ("ROPEWALK_MPI_LIBRARY", "MPI4PY_LIBMPI"):
        one, other = os.path.dirname(one), os.path.dirname(other)
    return one == other


def _common(request: Request, environment: Mapping[str, str]) -> Iterator[SettingWords]:
    one = request.installation
    yield "ROPEWALK_MPI_LIBRARY", _library(request), "the MPI that ropewalk calls"
    folder = _library_path(request)
    if folder:
        before = environment.get("LD_LIBRARY_PATH")
        value = f"{folder}:{before}" if before else folder
        yield "LD_LIBRARY_PATH", value, f"the program finds {one.title}'s libraries here"
    if request.python:
        yield "MPI4PY_LIBMPI", one.library, "mpi4py opens the same MPI"
    if request.lanes:
        yield "ROPEWALK_LANES", str(request.lanes), "lanes of an EndpointSet (--lanes)"
    yield from openmp.variables(request, environment)
    if request.stats:
        yield "ROPEWALK_STATS", "1", "what ropewalk did, printed at MPI_Finalize (--stats)"
    if request.lanes_wanted > 1:
        yield "PSM2_MULTI_EP", "1", "Omni-Path: an endpoint of its own for every lane"


def _library(request: Request) -> str:
    """The classic library, or the MPI-5 ABI's for a program linked to that one."""
    one = request.installation
    if one.standard_library and any(name.startswith("libmpi_abi.so") for name in request.needed):
        return one.standard_library
    return one.library


def _library_path(request: Request) -> str | None:
    one = request.installation
    if one.library_folder.startswith(("/usr/lib", "/lib")) and one.family != "intel":
        return None  # the loader looks there anyway
    own = request.own_library
    if own and os.path.realpath(own) == os.path.realpath(one.library) and one.family != "intel":
        return None  # the program finds it by itself
    linked = any(name.startswith(("libmpi", "libopen-pal")) for name in request.needed)
    return one.library_folder if linked or request.python or one.family == "intel" else None


def _mpich(request: Request, environment: Mapping[str, str]) -> Iterator[SettingWords]:
    # MPICH 5.0.2's UCX netmod with several interfaces never returns from MPI_Init between hosts.
    if request.lanes_wanted > 1 and not request.ucx_netmod:
        interfaces = min(request.lanes_wanted + 1, MPICH_INTERFACES)
        yield (
            "MPIR_CVAR_CH4_NUM_VCIS",
            str(interfaces),
            "a network interface of its own for each lane and one for the caller",
        )
    if request.oversubscribed:
        yield (
            "MPIR_CVAR_DEVICE_COLLECTIVES",
            "none",
            "more ranks than cores: shared-memory collectives would wait 4 ms a call",
        )


def _openmpi(request: Request, environment: Mapping[str, str]) -> Iterator[SettingWords]:
    if request.root:
        reason = "Open MPI refuses to run as root without it"
        yield "OMPI_ALLOW_RUN_AS_ROOT", "1", reason
        yield "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", reason
    if request.launcher.kind == "openmpi":
        reason = "more ranks than cores are allowed, for children of MPI_Comm_spawn, too"
        if request.installation.prte:
            yield "PRTE_MCA_rmaps_default_mapping_policy", ":OVERSUBSCRIBE", reason
        else:
            yield "OMPI_MCA_rmaps_base_oversubscribe", "1", reason
    if request.oversubscribed:
        yield "OMPI_MCA_mpi_yield_when_idle", "1", "more ranks than cores: waiting ranks yield"
    if request.lanes_wanted > 1:
        reason = "a context of its own for every lane"
        contexts = str(request.lanes_wanted + 1)
        if request.scalable_endpoints:
            yield "OMPI_MCA_mtl_ofi_enable_sep", "1", f"libfabric: {reason}"
            yield "OMPI_MCA_mtl_ofi_thread_grouping", "1", f"libfabric: {reason}"
            yield "OMPI_MCA_mtl_ofi_num_ctxts", contexts, f"libfabric: {reason}"
        yield "OMPI_MCA_btl_uct_num_contexts_per_module", contexts, f"UCX: {reason}"


def _intel(request: Request, environment: Mapping[str, str]) -> Iterator[SettingWords]:
    one = request.installation
    yield "I_MPI_ROOT", one.prefix, "Intel MPI finds its own files here"
    folder = providers(one.prefix)
    if folder:
        yield "FI_PROVIDER_PATH", folder, "its libfabric's providers"
    # Only where lanes are asked for: a program whose threads share communicators breaks the rules
    # of the model (mpi/thread_split.hpp), and costs it time.
    splits = request.lanes > 1 and not request.plain
    if request.nodes == 1 and not splits:
        yield "I_MPI_FABRICS", "shm", "one node: shared memory alone, no fabric to start"
    if splits:
        reason = "a real endpoint for every lane (thread-split)"
        yield "I_MPI_THREAD_SPLIT", "1", reason
        yield "I_MPI_THREAD_RUNTIME", "generic", f"{reason}: numbered by ropewalk"
        yield "I_MPI_THREAD_MAX", str(request.lanes + 1), f"{reason}, and one for the caller"
    if request.binding and request.ranks_here > 1:
        yield "I_MPI_PIN_DOMAIN", _intel_domain(request), _binding_reason(request)
    elif request.bind is False:
        yield "I_MPI_PIN", "0", "--no-bind"
    if request.oversubscribed:
        yield "I_MPI_PIN", "0", "more ranks than cores: no binding"


def _intel_domain(request: Request) -> str:
    return f"core:{request.cores_each}" if request.cores_each == 1 else f"{request.cores_each}"


# These are Intel's folders, and those of the wheels on PyPI.
_PROVIDER_FOLDERS = (
    "lib",
    "lib/prov",
    "libfabric/lib/prov",
    "opt/mpi/libfabric/lib/prov",
    "lib/mpich/libfabric",
    "lib/openmpi/libfabric",
    "lib/libfabric",
)


def providers(prefix: str) -> str | None:
    """Folder of libfabric's provider libraries (lib*-fi.so), or None."""
    for folder in _PROVIDER_FOLDERS:
        path = os.path.join(prefix, folder)
        try:
            if any(name.endswith("-fi.so") for name in os.listdir(path)):
                return path
        except OSError:
            continue
    return None


def _binding_reason(request: Request) -> str:
    plural = "core" if request.cores_each == 1 else "cores"
    return f"binds each rank to {request.cores_each} {plural}"
