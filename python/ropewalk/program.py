"""What a rank will run: the ELF file behind a command, the MPI it brings, and what in it stands in
the way of a preloaded library. Read from files; only Python is asked, where its mpi4py lies.
"""

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import elf
from .installations import library_family
from .loader import Library, Loader

_MOST_INTERPRETERS = 4  # of scripts that name scripts; the kernel follows as many

# Runtimes of sanitizers: their own allocator comes with all but the undefined-behaviour one's.
_SANITIZERS = re.compile(r"lib(?:clang_rt\.)?(asan|tsan|msan|hwasan|lsan|ubsan)\b")
_STATIC_SANITIZERS = ("__asan_init", "__tsan_init", "__msan_init", "__hwasan_init", "__lsan_init")
_ALLOCATORS = re.compile(
    r"lib(jemalloc|tcmalloc\w*|mimalloc\w*|snmalloc\w*|hoard|rpmalloc\w*|tbbmalloc_proxy|scudo)\b"
)


@dataclass(frozen=True)
class Mpi4py:
    """What `import mpi4py.MPI` can load: one library, or any of some binary interfaces."""

    folder: str
    families: tuple[str, ...] = ()  # empty: not known
    library: str | None = None  # the one it would load, where that is certain
    reason: str = ""


@dataclass(frozen=True)
class Program:
    """The facts of one command, as far as starting it depends on them."""

    path: str  # the file that the kernel will load: the program, or its script's interpreter
    script: str | None = None
    python: bool = False
    facts: elf.Elf | None = None
    libraries: tuple[Library, ...] = ()  # loader.Library, transitively
    static_mpi: bool = False
    privileged: str | None = None  # why the loader ignores LD_PRELOAD for it
    allocator: str | None = None  # its own malloc, by name
    sanitizer: str | None = None
    sanitizer_libraries: tuple[
        str, ...
    ] = ()  # paths; empty where the runtime is part of the program
    sanitizer_missing: str | None = None  # a runtime that is needed and was not found
    mpi4py: Mpi4py | None = None

    @property
    def sonames(self) -> tuple[str, ...]:
        return tuple(library.name for library in self.libraries)

    @property
    def mpi_libraries(self) -> tuple[Library, ...]:
        return tuple(one for one in self.libraries if library_family(one.name))

    @property
    def families(self) -> set[str]:
        """Families that the installation must serve: empty where any will do."""
        found = {one for library in self.libraries if (one := library_family(library.name))}
        if found or self.mpi4py is None:
            return found
        return set(self.mpi4py.families) if len(self.mpi4py.families) == 1 else set()

    @property
    def mpi_library(self) -> tuple[str, str] | None:
        """(path, why) of the libmpi that it loads by itself, or None where that is not certain."""
        for one in self.mpi_libraries:
            if one.path and re.match(r"libmpi(ch|_abi|_\w+)?\.so", one.name):
                return one.path, "what the program is linked to"
        if self.mpi4py and self.mpi4py.library:
            return self.mpi4py.library, self.mpi4py.reason
        return None


def mpi_found(program: Program, environment: Mapping[str, str], folder: str) -> str | None:
    """The libmpi that the program loads once `folder` heads LD_LIBRARY_PATH: DT_RPATH is stronger.
    None where it loads none by itself."""
    before = environment.get("LD_LIBRARY_PATH")
    path = f"{folder}:{before}" if before else folder
    libraries = Loader({"LD_LIBRARY_PATH": path}).closure(program.path)
    found = [one for one in libraries if library_family(one.name) and one.path]
    return found[0].path if found else None


# These programs start another in their own place; it stands after their options.
_WRAPPERS = {
    *(
        "env",
        "numactl",
        "taskset",
        "nice",
        "ionice",
        "chrt",
        "time",
        "timeout",
        "stdbuf",
        "setarch",
    ),
    *("gdb", "valgrind", "strace", "ltrace", "perf", "nsys", "hpcrun", "tau_exec"),
}


def unwrapped(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The path of the program that `command` comes to, past `numactl -m 0` and the like."""
    if os.path.basename(command[0]) in _WRAPPERS:
        for word in command[1:]:
            path = shutil.which(word, path=environment.get("PATH"))
            if path and os.path.basename(path) not in _WRAPPERS:
                return path
    return command[0]


def look(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Program:
    """The facts of a command whose first word is the program's path."""
    environment = os.environ if environment is None else environment
    path, script = interpreter_of(unwrapped(command, environment), environment)
    facts = elf.read(path)
    loader = Loader(environment)
    libraries = tuple(loader.closure(path))
    python = bool(re.match(r"(python|pypy)[\d.]*$", os.path.basename(path)))
    linked = any(library_family(one.name) for one in libraries)
    symbols = elf.defined(path, ("MPI_Init", "PMPI_Init", "malloc", *_STATIC_SANITIZERS))
    sanitizer, runtimes, missing = _sanitizer(libraries, symbols)
    return Program(
        path=path,
        script=script,
        python=python,
        facts=facts,
        libraries=libraries,
        static_mpi=not linked and bool({"MPI_Init", "PMPI_Init"} & symbols),
        privileged=privileges(path),
        allocator=_allocator(path, libraries, symbols),
        sanitizer=sanitizer,
        sanitizer_libraries=runtimes,
        sanitizer_missing=missing,
        mpi4py=_ask_mpi4py(path, environment, loader) if python and not linked else None,
    )


def interpreter_of(path: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """(the file that runs, the script or None) by the #! lines."""
    script = None
    for _ in range(_MOST_INTERPRETERS):
        words = _first_line(path)
        if not words:
            break
        script = script or path
        found = _named_by_env(words, environment) if _is_env(words[0]) else words[0]
        if found is None or not os.path.isfile(found):
            break
        path = found
    return path, script


def _first_line(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            line = file.readline(4096) if file.read(2) == b"#!" else b""
    except OSError:
        return []
    return os.fsdecode(line).split()


def _is_env(path: str) -> bool:
    return os.path.basename(path) == "env"


def _named_by_env(words: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The program of `/usr/bin/env [-S] [NAME=VALUE ...] NAME`."""
    for word in words[1:]:
        if not word.startswith("-") and "=" not in word:
            return shutil.which(word, path=environment.get("PATH"))
    return None


def privileges(path: str, user: int | None = None) -> str | None:
    """Why the loader runs `path` in secure mode, where it takes no preload from other folders than
    its own; None if it does not."""
    user = os.geteuid() if user is None else user
    try:
        found = os.stat(path)
    except OSError:
        return None
    if found.st_mode & stat.S_ISUID and found.st_uid != user:
        return f"it is setuid (of user {found.st_uid})"
    if found.st_mode & stat.S_ISGID and found.st_gid not in (os.getegid(), *os.getgroups()):
        return f"it is setgid (of group {found.st_gid})"
    if user != 0 and _capabilities(path):
        return "it has file capabilities"
    return None


def _capabilities(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _sanitizer(
    libraries: Sequence[Library], symbols: Collection[str]
) -> tuple[str | None, tuple[str, ...], str | None]:
    """(name, runtime libraries, one not found): the runtime has to be the first library of the
    process."""
    found = [(match[1], one) for one in libraries if (match := _SANITIZERS.match(one.name))]
    if found:
        names = [name for name, _ in found]
        name = next((name for name in names if name != "ubsan"), "ubsan")
        missing = next((one.name for _, one in found if one.path is None), None)
        return name, tuple(one.path for _, one in found if one.path), missing
    static = next((name for name in _STATIC_SANITIZERS if name in symbols), None)
    return (static.strip("_").removesuffix("_init") if static else None), (), None


def _allocator(path: str, libraries: Sequence[Library], symbols: Collection[str]) -> str | None:
    for one in libraries:
        match = _ALLOCATORS.match(one.name)
        if match:
            return one.name
    if "malloc" in symbols and not os.path.basename(path).startswith(("ld-", "ld.")):
        return "malloc of the program itself"
    return None


def preloaded_allocator(entries: Iterable[str]) -> str | None:
    """The allocator among LD_PRELOAD's entries, by its name; None if there is none."""
    names = (os.path.basename(entry) for entry in entries)
    return next((name for name in names if _ALLOCATORS.match(name)), None)


# ---- mpi4py --------------------------------------------------------------------------------------

# Runs in the program's own Python: where mpi4py lies, and the prefixes that it searches.
_ASK = """
import importlib.util, site, sys
spec = importlib.util.find_spec("mpi4py")
if spec and spec.submodule_search_locations:
    print(next(iter(spec.submodule_search_locations)))
    if sys.exec_prefix != sys.base_exec_prefix:
        print(sys.exec_prefix)
    if site.ENABLE_USER_SITE:
        print(site.USER_BASE)
    print(sys.base_exec_prefix)
"""
_SECONDS = 20


def _ask_mpi4py(python: str, environment: Mapping[str, str], loader: Loader) -> Mpi4py | None:
    import subprocess

    try:
        done = subprocess.run(
            [python, "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return mpi4py_in(lines[0], lines[1:], environment, loader) if lines else None


def mpi4py_in(
    folder: str, prefixes: Sequence[str], environment: Mapping[str, str], loader: Loader
) -> Mpi4py | None:
    """What mpi4py in `folder` loads: its build for one MPI names it; one that serves several
    binary interfaces opens MPI4PY_LIBMPI or libmpi of a prefix (mpi4py/_mpiabi.py)."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    builds = [name for name in names if re.match(r"MPI\..*\.?so$", name)]
    interfaces = [name.split(".")[1] for name in builds if name.count(".") >= 3]
    if not interfaces:
        return _single_build(folder, builds, loader)
    families = [
        {"impi": "mpich", "mpiabi": "standard"}.get(name, name)
        for name in dict.fromkeys(interfaces)
    ]
    asked = re.sub("[ _-]", "", environment.get("MPI4PY_MPIABI", "")).lower()
    if asked:
        families = [{"impi": "mpich", "mpiabi": "standard"}.get(asked, asked)]
    named = environment.get("MPI4PY_LIBMPI")
    if named:
        library = _existing(named.split(":"), loader)
        return Mpi4py(folder, tuple(families), library, "what MPI4PY_LIBMPI names")
    library = _existing(
        [os.path.join(prefix, "lib") for prefix in prefixes if prefix != "/usr"], loader
    )
    return Mpi4py(folder, tuple(families), library, "what mpi4py loads")


def _single_build(folder: str, builds: Sequence[str], loader: Loader) -> Mpi4py:
    for name in builds:
        for one in loader.closure(os.path.join(folder, name)):
            family = library_family(one.name)
            if family:
                return Mpi4py(folder, (family,), one.path, "what mpi4py is linked to")
    return Mpi4py(folder)


def _existing(places: Iterable[str], loader: Loader) -> str | None:
    """The first library: of the files and names in `places`, and libmpi in its folders."""
    for place in map(os.path.expanduser, filter(None, places)):
        if os.path.isdir(place):
            for name in ("libmpi.so", "libmpi.so.12", "libmpi.so.40"):
                if os.path.exists(os.path.join(place, name)):
                    return os.path.join(place, name)
        elif os.path.exists(place):
            return place
        elif "/" not in place and loader.find(place):
            return loader.find(place)
    return None
