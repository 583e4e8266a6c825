"""Finds MPI installations and says of which family they are.

Nothing is started to find out: names of files tell the families apart. `version()` alone runs the
launcher.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from .errors import CommandError
from .paths import TREE

FAMILIES = ("mpich", "openmpi", "intel")
TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI"}

# The table has sonames, best first, and the family by which ropewalk calls them (Intel MPI has
# MPICH's).
_LIBRARIES = {
    "openmpi": ("libmpi.so.40",),
    "mpich": ("libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12"),
    "intel": ("libmpi.so.12",),
}
_LAUNCHERS = ("mpiexec", "mpirun", "mpiexec.hydra")
# Only Intel's installations have these files.
_INTEL_MARKS = ("bin/impi_info", "bin/IMB-MPI1", "lib/libmpi_shm_heap_proxy.so")
_OPENMPI_MARKS = ("orterun", "prterun", "ompirun", "openmpi")
# C, Fortran and C++ libraries; Cray's carry the compiler's name (libmpi_gnu_123.so.12).
_OPENMPI_SONAMES = re.compile(r"libmpi(_mpifh|_usempi\w*|_cxx|_java)?\.so\.(20|40)\b")
_MPICH_SONAMES = re.compile(r"libmpi(ch)?(fort|cxx|f90)?(_(?!abi|mpifh|usempi)\w+)?\.so\.12\b")
_INTEL_PREFIXES = ("/opt/intel/oneapi/mpi/latest", "/opt/intel/mpi/latest")


@dataclass(frozen=True)
class Installation:
    """One MPI: where it is, what starts it, which library ranks open."""

    family: str
    prefix: str
    launcher: str  # "": none of its own, only the batch system starts it
    library: str
    origin: str = field(default="", compare=False)  # why it was looked at

    @property
    def title(self) -> str:
        return TITLES[self.family]

    @property
    def library_folder(self) -> str:
        return os.path.dirname(self.library)

    @property
    def standard_library(self) -> str | None:
        """The MPI-5 ABI's library beside the classic one, or None."""
        path = os.path.join(self.library_folder, "libmpi_abi.so.1")
        return path if os.path.exists(path) else None

    @property
    def prte(self) -> bool:
        """Open MPI 5 and later start through PRRTE."""
        if not self.launcher:
            return True
        folder = os.path.dirname(os.path.realpath(self.launcher))
        return any(os.path.exists(os.path.join(folder, name)) for name in ("prterun", "prte"))


def library_family(soname: str) -> str | None:
    """Family of a soname a program is linked to, or None if it is not MPI's. MPICH's stands for
    Intel's, too; `standard` for the MPI-5 ABI, which MPICH and Intel both have."""
    if soname.startswith("libopen-pal.so") or _OPENMPI_SONAMES.match(soname):
        return "openmpi"
    if _MPICH_SONAMES.match(soname):
        return "mpich"
    return "standard" if soname.startswith(("libmpi_abi.so", "libmpifort_abi.so")) else None


def _library_folders(prefix: str) -> Iterable[str]:
    yield os.path.join(prefix, "lib")
    yield os.path.join(prefix, "lib64")
    multiarch = f"{os.uname().machine}-linux-gnu"
    yield os.path.join(prefix, "lib", multiarch)
    yield os.path.join(prefix, "lib", multiarch, "openmpi", "lib")
    yield os.path.join(prefix, "lib", "release")  # Intel before 2021.11


def _find_library(prefix: str, family: str) -> str | None:
    for folder in _library_folders(prefix):
        for soname in _LIBRARIES[family]:
            path = os.path.join(folder, soname)
            if os.path.exists(path):
                return path
    return None


def _launcher_family(launcher: str) -> str | None:
    """What the launcher's real name tells; None if nothing."""
    name = os.path.basename(os.path.realpath(launcher))
    if name.startswith(_OPENMPI_MARKS) or name.endswith(".openmpi"):
        return "openmpi"
    return "mpich" if "hydra" in name or name.endswith(".mpich") else None


def _has_intel_marks(prefix: str) -> bool:
    return any(os.path.exists(os.path.join(prefix, mark)) for mark in _INTEL_MARKS)


def _libraries(prefix: str) -> dict[str, str]:
    """Families whose library lies in `prefix`, with its path."""
    found = {}
    for family in ("openmpi", "mpich"):
        library = _find_library(prefix, family)
        if library:
            found[family] = library
    return found


def recognise(prefix: str, origin: str = "", launcher: str | None = None) -> Installation | None:
    """The installation in `prefix`, or None if there is no launcher or no library."""
    prefix = os.path.abspath(prefix)
    launcher = launcher or next(
        (
            path
            for path in (os.path.join(prefix, "bin", name) for name in _LAUNCHERS)
            if os.access(path, os.X_OK)
        ),
        None,
    )
    if launcher is None:
        return None
    libraries = _libraries(prefix)
    told = _launcher_family(launcher)
    family = told if told in libraries else next(iter(libraries), None)
    if family is None:
        return None
    library = libraries[family]
    if family == "mpich" and _has_intel_marks(prefix):
        family = "intel"
    return Installation(family, prefix, launcher, library, origin)


def _of_launcher(launcher: str, origin: str) -> Installation | None:
    """The installation that a launcher on PATH belongs to."""
    # /bin is a link to /usr/bin in most systems, and Open MPI does not start from the prefix "/".
    launcher = os.path.join(os.path.realpath(os.path.dirname(launcher)), os.path.basename(launcher))
    for path in (launcher, os.path.realpath(launcher)):
        if os.path.dirname(os.path.dirname(path)) == "/":
            continue
        found = recognise(os.path.dirname(os.path.dirname(path)), origin, launcher)
        if found:
            return found
    return None


def of_library(library: str, origin: str = "") -> Installation | None:
    """The installation that a libmpi belongs to: the folder above it that has a launcher of its
    family, else one without a launcher. None if the file is no MPI's."""
    real = os.path.realpath(library)
    family = library_family(os.path.basename(real)) or library_family(os.path.basename(library))
    if family is None:
        return None
    families = ("mpich", "intel") if family in ("mpich", "standard") else (family,)
    # /lib is a link to /usr/lib in most systems, and Open MPI does not start from the prefix "/".
    folder = os.path.realpath(os.path.dirname(os.path.abspath(library)))
    for start in dict.fromkeys((folder, os.path.dirname(real))):
        prefix = start
        for _ in range(_MOST_FOLDERS_UP):
            prefix = os.path.dirname(prefix)
            if prefix == "/":
                break
            for launcher in (None, *_named_launchers(prefix, families[0])):
                found = recognise(prefix, origin, launcher)
                if found and found.family in families and _is_same(found, real):
                    return found
    return Installation(families[0], os.path.dirname(folder), "", os.path.abspath(library), origin)


_MOST_FOLDERS_UP = 4  # as in prefix/lib/x86_64-linux-gnu/openmpi/lib


def _named_launchers(prefix: str, family: str) -> Iterator[str]:
    """Launchers of systems that keep several MPIs in one prefix, as Debian does."""
    for name in (f"mpiexec.{family}", f"mpirun.{family}"):
        path = os.path.join(prefix, "bin", name)
        if os.access(path, os.X_OK):
            yield path


def _is_same(found: Installation, library: str) -> bool:
    """The MPI-5 ABI's library counts as the classic one beside it."""
    if os.path.realpath(found.library) == library:
        return True
    return os.path.dirname(os.path.realpath(found.library)) == os.path.dirname(library) and (
        os.path.basename(library).startswith("libmpi_abi")
    )


def _environments() -> Iterator[tuple[str, str]]:
    """Prefixes beside and in the current virtual environment, with their names."""
    beside = os.path.join(sys.prefix, "mpi")
    names = [name for name in FAMILIES if os.path.isdir(os.path.join(beside, name))]
    for name in names:
        yield os.path.join(beside, name), "the environment made by set-up"
    yield sys.prefix, "in the Python environment"


def _on_path(path: str) -> Iterator[str]:
    seen = set()
    for name in (
        "mpiexec",
        "mpirun",
        "mpiexec.openmpi",
        "mpirun.openmpi",
        "mpiexec.mpich",
        "mpiexec.hydra",
    ):
        launcher = shutil.which(name, path=path)
        if launcher and os.path.realpath(launcher) not in seen:
            seen.add(os.path.realpath(launcher))
            yield launcher


def system(environment: Mapping[str, str] | None = None) -> Iterator[Installation]:
    """Installations on PATH, in its order."""
    environment = os.environ if environment is None else environment
    path = environment.get("PATH", os.defpath)
    own = os.path.realpath(os.path.join(sys.prefix, "bin"))
    for launcher in _on_path(path):
        if os.path.realpath(os.path.dirname(launcher)) == own and sys.prefix != sys.base_prefix:
            continue  # the wheel in this environment, listed as such
        found = _of_launcher(launcher, f"{os.path.basename(launcher)} on PATH")
        if found:
            yield found


def every(environment: Mapping[str, str] | None = None) -> Iterator[Installation]:
    """All installations, best first, each once."""
    environment = os.environ if environment is None else environment
    seen = set()

    def once(found: Installation | None) -> TypeGuard[Installation]:
        if found is None or (found.family, os.path.realpath(found.library)) in seen:
            return False
        seen.add((found.family, os.path.realpath(found.library)))
        return True

    for prefix, origin in _environments():
        found = recognise(prefix, origin)
        if once(found):
            yield found
    for found in system(environment):
        if once(found):
            yield found
    roots = [environment.get("I_MPI_ROOT"), *_INTEL_PREFIXES]
    for prefix in filter(None, roots):
        found = recognise(prefix, "an Intel MPI installation")
        if once(found):
            yield found


def remedy() -> str:
    """What to do where there is no MPI. Only a tree of the sources has a Makefile."""
    pip = "`pip install mpich` in this Python environment"
    if os.path.isfile(os.path.join(TREE, "Makefile")):
        pip = "`make` sets up MPICH and Open MPI, or `pip install mpich` in one of its own"
    debian = "Debian's `apt install libopenmpi-dev openmpi-bin`"
    return f"install one: {pip}, or {debian}; or name one with --mpi PREFIX"


def _of_prefix(choice: str, origin: str) -> Installation:
    prefix = os.path.expanduser(choice)
    if os.path.isfile(prefix):  # a launcher: its installation is two folders up
        found = _of_launcher(os.path.abspath(prefix), origin)
    else:
        found = recognise(prefix, origin)
    if found:
        return found
    if not os.path.exists(prefix):
        raise CommandError(
            f"{origin}: '{choice}' is neither mpich, openmpi, intel, system nor an existing folder"
        )
    raise CommandError(
        f"{origin}: no MPI in {prefix}, expected bin/mpiexec and lib/libmpi.so.*; give the prefix "
        "an MPI was installed to"
    )


def _of_name(choice: str, origin: str, environment: Mapping[str, str]) -> Installation:
    found = next((found for found in every(environment) if found.family == choice), None)
    if found is None:
        raise CommandError(f"{origin}: no {TITLES[choice]} found; {remedy()}")
    return found


def choose(
    choice: str | None = None,
    program_families: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    own_library: tuple[str, str] | None = None,
) -> Installation:
    """The installation to use: `choice` (a family, `system` or a prefix), else ROPEWALK_MPI, else
    the one of `own_library` (path, why), which the program would load by itself, else the first
    one found that suits a program linked to `program_families`."""
    environment = os.environ if environment is None else environment
    origin = "--mpi"
    if not choice:
        choice, origin = environment.get("ROPEWALK_MPI"), "ROPEWALK_MPI"
    if choice in FAMILIES:
        return _of_name(choice, origin, environment)
    if choice == "system":
        found = next(system(environment), None)
        if found is None:
            raise CommandError(f"{origin}: no MPI on PATH; {remedy()}")
        return found
    if choice:
        return _of_prefix(choice, origin)
    own = of_library(*own_library) if own_library else None
    if own:
        return own
    return _suitable(list(every(environment)), program_families)


def _suitable(found: Sequence[Installation], program_families: Iterable[str]) -> Installation:
    if not found:
        raise CommandError(f"no MPI found; {remedy()}")
    return next((one for one in found if suits(one, program_families)), found[0])


def suits(installation: Installation, program_families: Iterable[str]) -> bool:
    """Whether a program linked to libraries of these families runs on the installation."""
    for family in program_families:
        if family == "standard" and installation.standard_library:
            continue
        if family == ("mpich" if installation.family == "intel" else installation.family):
            continue
        return False
    return True


def version(installation: Installation) -> str:
    """Version as its launcher prints it, '' if it does not."""
    import subprocess

    if not installation.launcher:
        return ""
    environment = dict(os.environ)
    if installation.family == "intel":
        environment["I_MPI_ROOT"] = installation.prefix
    try:
        done = subprocess.run(
            [installation.launcher, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"\d+\.\d+(\.\d+)*\w*", done.stdout + done.stderr)
    return found.group(0) if found else ""
