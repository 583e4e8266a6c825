"""The two libraries that `ropewalk run` puts into each rank, and whether a program can take them.

Which of them go in, and why one does not, is decided from facts alone (program.Program), so that
`--dry-run` shows it and tests read it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import elf
from .paths import PACKAGE, TREE
from .program import Program, preloaded_allocator

# In the order of LD_PRELOAD, each with the folder of its build.
LIBRARIES = {"malloc": "libropewalk-malloc.so", "mpi": "libropewalk-mpi.so"}
_PURPOSE = {
    "malloc": "large allocations come from memory that peers can map (--no-malloc)",
    "mpi": "collectives inside a node go straight between the ranks' buffers (--no-preload)",
}


Line = tuple[str, str]  # (what, reason), for --dry-run


@dataclass(frozen=True)
class Preload:
    """What the ranks' LD_PRELOAD becomes; lines are for --dry-run, warnings for everybody."""

    value: str = ""  # empty: LD_PRELOAD is left as it is
    lines: tuple[Line, ...] = ()
    warnings: tuple[str, ...] = ()


def folders(environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Where the libraries may lie, first to last; only there where ROPEWALK_PRELOAD says so."""
    environment = os.environ if environment is None else environment
    if environment.get("ROPEWALK_PRELOAD"):
        yield environment["ROPEWALK_PRELOAD"]
        return
    yield os.path.join(PACKAGE, "lib")  # an installed package
    yield os.path.join(PACKAGE, "preload")  # a build's package (develop.py)
    yield os.path.join(TREE, "build", "release", "preload")


def find(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """{"malloc": path, "mpi": path} of the libraries that are here."""
    found = {}
    for folder in folders(environment):
        for name, file in LIBRARIES.items():
            for path in (os.path.join(folder, file), os.path.join(folder, name, file)):
                if name not in found and os.path.isfile(path):
                    found[name] = os.path.abspath(path)
    return found


def preload_path(
    environment: Mapping[str, str] | None = None, libraries: Sequence[str] = tuple(LIBRARIES)
) -> str:
    """The value for LD_PRELOAD that puts both libraries, or those named, into a process, for
    launchers of your own. Raises FileNotFoundError where they were not built."""
    found = find(environment)
    missing = [LIBRARIES[name] for name in libraries if name not in found]
    if missing:
        raise FileNotFoundError(
            f"{', '.join(missing)}: not in {', '.join(folders(environment))}; build with `make "
            "build` or `pip install .`, or name the folder in ROPEWALK_PRELOAD"
        )
    return ":".join(found[name] for name in libraries)


def decide(
    program: Program,
    environment: Mapping[str, str],
    malloc: bool = True,
    wanted: bool = True,
    installation: object = None,
) -> Preload:
    """The Preload of a program's ranks in an environment."""
    if not wanted:
        return Preload(lines=(("no preload", "--no-preload"),))
    found = find(environment)
    if not found:
        where = ", ".join(folders(environment))
        lines = (("no preload", f"the libraries are not built (not in {where})"),)
        return Preload(lines=lines, warnings=_not_where_named(environment))
    refused = _refused(program, found)
    if refused:
        return Preload(lines=(("no preload", refused),), warnings=(refused,))
    return _compose(program, environment, found, malloc)


def _not_where_named(environment: Mapping[str, str]) -> tuple[str, ...]:
    folder = environment.get("ROPEWALK_PRELOAD")
    if not folder:
        return ()
    expected = f"expected {' and '.join(LIBRARIES.values())}"
    return (f"ROPEWALK_PRELOAD: '{folder}' has no libraries, {expected}; name theirs, or unset it",)


def _refused(program: Program, found: Mapping[str, str]) -> str | None:
    """Why nothing can be put into the program, or None."""
    name = program.script or program.path
    if program.facts is None:
        return None  # not ours to judge: the kernel says what it is
    if program.facts.interpreter is None:
        return f"{name} is linked statically: no library can be put before its own"
    if program.privileged:
        return (
            f"{program.path}: {program.privileged}, and such a program takes no library from its "
            "user; it runs on the plain MPI"
        )
    if "musl" in program.facts.interpreter:
        return f"{program.path} uses musl's loader ({program.facts.interpreter}), ropewalk glibc's"
    if program.sanitizer_missing:
        return (
            f"{program.sanitizer_missing} has to be the first library of {program.path}, and was "
            "not found; name its folder in LD_LIBRARY_PATH"
        )
    own = next((facts for one in found.values() if (facts := elf.read(one))), None)
    if own and own.machine != program.facts.machine:
        return (
            f"{program.path} is for another machine than {next(iter(found.values()))} "
            f"({_machine(program.facts)}, not {_machine(own)}): build ropewalk for it"
        )
    return None


def _machine(facts: elf.Elf) -> str:
    bits = {1: "32 bits", 2: "64 bits"}.get(facts.machine[0], "unknown")
    names = {3: "x86", 62: "x86-64", 183: "AArch64", 21: "POWER", 243: "RISC-V", 40: "Arm"}
    return f"{names.get(facts.machine[2], f'machine {facts.machine[2]}')}, {bits}"


def _compose(
    program: Program, environment: Mapping[str, str], found: Mapping[str, str], malloc: bool
) -> Preload:
    own = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    first = _first_libraries(program)
    chosen, left_out, warnings = _choose(program, found, own, malloc)
    ours = [*first, *chosen]
    lines = (*first.items(), *left_out, *chosen.items())
    if not chosen:
        return Preload(lines=lines, warnings=warnings)
    refused = _unfit(ours)
    if refused:
        return Preload(lines=(("no preload", refused),), warnings=(refused,))
    kept = [one for one in own if one not in ours]
    lines += tuple((one, "your own LD_PRELOAD, kept") for one in kept)
    return Preload(":".join([*dict.fromkeys(ours), *kept]), lines, warnings)


def _first_libraries(program: Program) -> dict[str, str]:
    """{library: reason} of what has to come before ours."""
    if not program.sanitizer_libraries:
        return {}
    reason = f"the runtime of {_sanitizer_name(program)} has to be the first library"
    return dict.fromkeys(program.sanitizer_libraries, reason)


def _choose(
    program: Program, found: Mapping[str, str], own: Sequence[str], malloc: bool
) -> tuple[dict[str, str], list[Line], tuple[str, ...]]:
    """Of our libraries: {path: purpose} of those that are preloaded, a line for each of the others,
    and what everybody should know."""
    chosen: dict[str, str] = {}
    left_out: list[Line] = []
    warnings: tuple[str, ...] = ()
    for name, file in LIBRARIES.items():
        without = _without(name, program, own, malloc) if name in found else "not built"
        if without is None:
            chosen[found[name]] = _PURPOSE[name]
            continue
        left_out.append((f"without {file}", without))
        if name == "mpi" and name in found:
            warnings = (without,)
    return chosen, left_out, warnings


def _unfit(paths: Sequence[str]) -> str | None:
    """Why the loader, which splits LD_PRELOAD at blanks and colons, cannot take a path, or None."""
    for path in paths:
        if " " in path or ":" in path:
            return f"{path}: LD_PRELOAD takes no path with a blank or a colon; move it"
    return None


def _without(name: str, program: Program, own: Sequence[str], malloc: bool) -> str | None:
    """The reason why a library that exists is left out, or None."""
    if name == "mpi":
        if not program.static_mpi:
            return None
        return (
            f"{program.path} contains its MPI (linked statically), so its calls never leave it: "
            "link with -lropewalk-mpi before -lmpi instead"
        )
    if not malloc:
        return "--no-malloc"
    if program.sanitizer and program.sanitizer != "ubsan":
        return f"{_sanitizer_name(program)} has a malloc of its own"
    allocator = program.allocator or preloaded_allocator(own)
    return f"the program brings its own allocator: {allocator}" if allocator else None


def _sanitizer_name(program: Program) -> str:
    names = {"asan": "AddressSanitizer", "tsan": "ThreadSanitizer", "msan": "MemorySanitizer"}
    return names.get(program.sanitizer or "", program.sanitizer or "a sanitizer")
