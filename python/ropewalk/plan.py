"""What `ropewalk run` starts: the launcher's command line, and each variable with its reason.

A plan is made from facts alone and starts nothing, so `--dry-run` shows it and tests read it.
"""

import os
from dataclasses import dataclass, field

from . import launchers
from .batch import Job, is_here
from .preload import LIBRARIES, Preload

MAXIMUM_LANES = 64  # EndpointSet::max_lanes
AUTOMATIC_LANES = 8  # more were never faster in Boyle et al. 2017, figure 6
MPICH_INTERFACES = 16  # more than these cost start-up time and gain nothing


@dataclass(frozen=True)
class Setting:
    name: str
    value: str
    reason: str
    user: bool = False  # the user's own value, which wins


@dataclass
class Plan:
    command: list
    settings: list = field(default_factory=list)
    preload: str = ""  # LD_PRELOAD of the ranks, which the command hands to them alone

    def environment(self, base):
        """The environment of the launcher: without our libraries, which a rank that starts
        another job hands on."""
        found = {**base, **{one.name: one.value for one in self.settings}}
        entries = found.get("LD_PRELOAD", "").replace(":", " ").split()
        kept = [one for one in entries if os.path.basename(one) not in LIBRARIES.values()]
        if len(kept) < len(entries):
            found["LD_PRELOAD"] = ":".join(kept)
        return found


@dataclass(frozen=True)
class Request:
    """What was asked for, and the facts of the machine that a plan depends on."""

    installation: object
    ranks: int
    program: list
    lanes: int = 0  # 0: automatic
    bind: bool | None = None  # None: when every rank can have a core
    variables: tuple = ()  # (name, value) of --env
    launcher_options: tuple = ()
    cores: int = 1
    nodes: int = 1
    root: bool = False
    needed: tuple = ()  # sonames the program is linked to
    python: bool = False
    launcher: launchers.Launcher | None = None  # None: the MPI's own
    job: Job = field(default_factory=Job)
    hosts: tuple = ()  # of --nodes
    per_node: int | None = None  # of --ranks-per-node
    preload: Preload = field(default_factory=Preload)
    stats: bool = False
    fabric: tuple = ()  # (name, value, reason) of fabric.settings
    scalable_endpoints: bool = True  # libfabric's, on the fabric there is
    ucx_netmod: bool = False  # MPICH reaches other nodes through UCX
    own_library: str | None = None  # the libmpi that the program finds by itself

    def __post_init__(self):
        if self.launcher is None:
            object.__setattr__(self, "launcher", launchers.own(self.installation))

    @property
    def ranks_here(self):
        if self.job.system == "box" and not self.hosts and not self.per_node:
            return max(1, max(places for _, places in self.job.hosts))
        return min(self.ranks, self.per_node or -(-self.ranks // self.nodes))

    @property
    def stays_here(self):
        """Whether every rank starts on this node, as far as the options and the job tell."""
        return self.nodes == 1 and all(is_here(name) for name in self.hosts or self.job.names)

    @property
    def oversubscribed(self):
        return self.ranks_here > self.cores

    @property
    def cores_each(self):
        return max(1, self.cores // self.ranks_here)

    @property
    def lanes_wanted(self):
        """Lanes the MPI is prepared for: as asked, else from the cores a rank has to spare."""
        return self.lanes or min(AUTOMATIC_LANES, max(1, self.cores_each - 1))

    @property
    def binding(self):
        wanted = not self.oversubscribed if self.bind is None else self.bind
        return wanted and not self.oversubscribed


def make(request, environment=None):
    """The plan of a request in the user's environment, whose own settings win."""
    environment = os.environ if environment is None else environment
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
        if name in environment and name not in _EXTENDED:
            settings.append(Setting(name, environment[name], "your own setting, kept", user=True))
        else:
            settings.append(Setting(name, value, reason))
    return Plan(launchers.command(request, environment, settings, preload), settings, preload)


# Ours all the same: the first keeps what you had, the others are there only on request.
_EXTENDED = ("LD_LIBRARY_PATH", "ROPEWALK_LANES", "ROPEWALK_STATS")


def _common(request, environment):
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
    if request.stats:
        yield "ROPEWALK_STATS", "1", "what ropewalk did, printed at MPI_Finalize (--stats)"
    if request.lanes_wanted > 1:
        yield "PSM2_MULTI_EP", "1", "Omni-Path: an endpoint of its own for every lane"


def _library(request):
    """The classic library, or the MPI-5 ABI's for a program linked to that one."""
    one = request.installation
    if one.standard_library and any(name.startswith("libmpi_abi.so") for name in request.needed):
        return one.standard_library
    return one.library


def _library_path(request):
    one = request.installation
    if one.library_folder.startswith(("/usr/lib", "/lib")) and one.family != "intel":
        return None  # the loader looks there anyway
    own = request.own_library
    if own and os.path.realpath(own) == os.path.realpath(one.library) and one.family != "intel":
        return None  # the program finds it by itself
    linked = any(name.startswith(("libmpi", "libopen-pal")) for name in request.needed)
    return one.library_folder if linked or request.python or one.family == "intel" else None


def _mpich(request, environment):
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


def _openmpi(request, environment):
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


def _intel(request, environment):
    one = request.installation
    yield "I_MPI_ROOT", one.prefix, "Intel MPI finds its own files here"
    folder = providers(one.prefix)
    if folder:
        yield "FI_PROVIDER_PATH", folder, "its libfabric's providers"
    if request.nodes == 1 and request.lanes_wanted == 1:
        yield "I_MPI_FABRICS", "shm", "one node: shared memory alone, no fabric to start"
    if request.lanes_wanted > 1:
        reason = "a real endpoint for every lane (thread-split)"
        yield "I_MPI_THREAD_SPLIT", "1", reason
        yield "I_MPI_THREAD_RUNTIME", "generic", reason
        yield "I_MPI_THREAD_MAX", str(request.lanes_wanted), reason
    if request.binding and request.ranks_here > 1:
        yield "I_MPI_PIN_DOMAIN", _intel_domain(request), _binding_reason(request)
    elif request.bind is False:
        yield "I_MPI_PIN", "0", "--no-bind"
    if request.oversubscribed:
        yield "I_MPI_PIN", "0", "more ranks than cores: no binding"


def _intel_domain(request):
    return f"core:{request.cores_each}" if request.cores_each == 1 else f"{request.cores_each}"


# Intel's, and those of the wheels on PyPI.
_PROVIDER_FOLDERS = (
    "lib",
    "lib/prov",
    "libfabric/lib/prov",
    "opt/mpi/libfabric/lib/prov",
    "lib/mpich/libfabric",
    "lib/openmpi/libfabric",
    "lib/libfabric",
)


def providers(prefix):
    """Folder of libfabric's provider libraries (lib*-fi.so), or None."""
    for folder in _PROVIDER_FOLDERS:
        path = os.path.join(prefix, folder)
        try:
            if any(name.endswith("-fi.so") for name in os.listdir(path)):
                return path
        except OSError:
            continue
    return None


def _binding_reason(request):
    plural = "core" if request.cores_each == 1 else "cores"
    return f"binds each rank to {request.cores_each} {plural}"
