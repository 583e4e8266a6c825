"""Dependencies go down only: reads every #include and import, and fails on one that goes up.

The rooms of src/ stand in the order of src/CMakeLists.txt, the benches in that of BENCHES below.
What stands beside src/ may use what MAY_USE says: lattice, bench, examples and python are clients
of the public headers. Besides, only src/mpi knows MPI's headers, no script finds modules by way of
sys.path, and the Python package imports itself in no circle. exceptions.toml has what breaks these
rules today, each with its reason.
"""

import ast
import functools
import pathlib
import re
import sys
from collections.abc import Iterator

import exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MPI_HEADERS = {"mpi.h", "mpi_abi.h", "mpi_proto.h"}
# Besides src/mpi, these hold programs of MPI as users write them, which are run with the drop-in
# and without it.
KNOW_MPI = ["src/mpi", "bench/dropin"]
SUFFIXES = {".cc", ".cpp", ".c", ".h", ".hpp", ".inc"}
# This says what an area may include from. Of the rooms of src/, the malloc library may use those up
# to memory, since it is in programs that have no MPI.
MAY_USE = {
    "include": ["include"],
    "src": ["include", "src"],
    "preload/malloc": ["include", "preload/malloc", "src"],
    "preload/mpi": ["include", "preload/mpi", "src"],
    "lattice/include": ["include", "lattice/include"],
    "lattice/src": ["include", "lattice/include", "lattice/src"],
    "bench": ["include", "lattice/include", "bench"],
    "examples": ["include", "lattice/include"],
    "python": ["include", "python"],
}
HIGHEST_ROOM = {"preload/malloc": "memory"}
# Each uses those before it only.
BENCHES = ["common", "memory", "comms", "collectives", "pages", "itt", "gradient", "overlap"]
BENCHES += ["p2p", "stencil", "amr", "fft", "tune", "attach", "dropin", "malloc"]
# Where a name in an #include is looked for, after the folder of the file itself.
SEARCHED = ["src", "include", "lattice/include", "lattice/src", "bench", "tests"]
# Made by the build.
GENERATED = {"common/commit.hpp"}
PYTHON = ["bench", "examples", "lattice", "preload", "python", "scripts"]


@functools.cache
def rooms() -> list[str]:
    """The rooms from the ground up."""
    text = (ROOT / "src/CMakeLists.txt").read_text()
    found = re.search(r"foreach\(room ([a-z_ \n]+)\)", text)
    if found is None:
        sys.exit("check_layers: src/CMakeLists.txt no longer has `foreach(room ...)`")
    return found.group(1).split()


def included_file(path: pathlib.Path, area: str, name: str) -> pathlib.Path | None:
    """The file of this tree that an include names, relative to its root; None for others."""
    for folder in (path.parent, ROOT / area, *(ROOT / place for place in SEARCHED)):
        if (folder / name).is_file():
            return (folder / name).resolve().relative_to(ROOT)
    return None


def is_below(path: pathlib.Path, folder: str) -> bool:
    return path.is_relative_to(folder)


def room_of(path: pathlib.Path, tree: str) -> str | None:
    """The folder of a file within a tree as src or bench; None for a file outside any."""
    return path.parts[1] if path.parts[0] == tree and len(path.parts) > 2 else None


def breaks_order(order: list[str], tree: str, here: pathlib.Path, there: pathlib.Path) -> bool:
    """Whether one folder of a tree uses another that comes later in its order."""
    first, second = room_of(here, tree), room_of(there, tree)
    return bool(first and second and order.index(second) > order.index(first))


def problem_of_include(area: str, here: pathlib.Path, there: pathlib.Path) -> str | None:
    """Why a file may not include another of this tree."""
    if not any(is_below(there, place) for place in MAY_USE[area]):
        return f"{area} may use only {', '.join(MAY_USE[area])}"
    if breaks_order(rooms(), "src", here, there):
        return f"{here.parts[1]} lies below {there.parts[1]}"
    if breaks_order(BENCHES, "bench", here, there):
        return f"bench/{here.parts[1]} comes before bench/{there.parts[1]}"
    highest, room = HIGHEST_ROOM.get(area), room_of(there, "src")
    if highest and room and rooms().index(room) > rooms().index(highest):
        return f"{area} uses the rooms up to {highest} only"
    return None


def includes(area: str) -> Iterator[tuple[pathlib.Path, int, str, bool]]:
    """Each include of an area: file, line, what it names, whether it is quoted."""
    for path in sorted((ROOT / area).rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                yield path, number, match.group(2), match.group(1) == '"'


def unknown_folders() -> Iterator[str]:
    """Folders that have no place in the order of their tree."""
    for tree, order, where in (
        ("src", rooms(), "src/CMakeLists.txt"),
        ("bench", BENCHES, "BENCHES of scripts/check_layers.py"),
    ):
        for folder in sorted((ROOT / tree).iterdir()):
            has_sources = any(file.suffix in SUFFIXES for file in folder.rglob("*"))
            if folder.is_dir() and has_sources and folder.name not in order:
                yield f"{tree}/{folder.name} is missing in {where}"


def problems_of_area(area: str, allowed: exceptions.Exceptions) -> Iterator[str]:
    """Includes of an area that break a rule of the house."""
    for path, line, name, quoted in includes(area):
        here = path.relative_to(ROOT)
        there = included_file(path, area, name)
        if name in MPI_HEADERS and not any(is_below(here, place) for place in KNOW_MPI):
            yield f"{here}:{line}: {name}: only src/mpi knows MPI's headers"
        elif there is None:
            if quoted and name not in GENERATED:
                yield f"{here}:{line}: there is no {name}"
        else:
            problem = problem_of_include(area, here, there)
            if problem and not allowed.allow(f"{here} includes {there}"):
                yield f"{here}:{line}: {problem}: {there}"


def python_files(folder: str) -> Iterator[tuple[pathlib.Path, ast.Module]]:
    """Each Python source below a folder, read."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield path.relative_to(ROOT), ast.parse(path.read_text())


def changes_of_path(allowed: exceptions.Exceptions) -> Iterator[str]:
    """Sources that change sys.path, and so import what is none of theirs."""
    for folder in PYTHON:
        for path, tree in python_files(folder):
            changed = any(
                isinstance(node, ast.Attribute) and ast.unparse(node).startswith("sys.path.")
                for node in ast.walk(tree)
            )
            if changed and not allowed.allow(f"{path} changes sys.path"):
                yield f"{path}: changes sys.path; import from its own folder or the package"


def imports_of(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All that run: not those for a type checker alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from imports_of(node)


def imports(package: pathlib.Path) -> dict[str, set[str]]:
    """For each module of the package, the modules of it that it imports anywhere."""
    sources = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): tree
        for path, tree in python_files(str(package))
    }
    sources = {name.removesuffix(".__init__"): tree for name, tree in sources.items()}
    found: dict[str, set[str]] = {}
    for name, tree in sources.items():
        named = set()
        for node in imports_of(tree):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            else:
                module = node.module or ""
                if node.level:
                    is_package = (ROOT / package.parent / name.replace(".", "/")).is_dir()
                    above = name.split(".")[: None if is_package else -1]
                    above = above[: len(above) - node.level + 1]
                    module = ".".join([*above, *filter(None, [module])])
                inner = {f"{module}.{alias.name}" for alias in node.names}
                # `from . import _core` names a compiled module, not the package.
                whole = {module} if node.module else set()
                named |= inner & set(sources) or whole
        found[name] = (named & set(sources)) - {name}
    return found


def circles(allowed: exceptions.Exceptions) -> Iterator[str]:
    """Imports of the Python package that lie on a circle."""
    arrows = imports(pathlib.Path("python/ropewalk"))
    reached: dict[str, set[str]] = {}
    for start in arrows:
        seen, waiting = set(), [start]
        while waiting:
            new = arrows[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    for here, targets in sorted(arrows.items()):
        for there in sorted(targets):
            if here in reached[there] and not allowed.allow(f"{here} imports {there}"):
                yield f"{here} imports {there}, which imports it back"


def main() -> int:
    allowed = exceptions.Exceptions("layers")
    problems = [*unknown_folders(), *changes_of_path(allowed), *circles(allowed)]
    for area in MAY_USE:
        problems += problems_of_area(area, allowed)
    if hints := allowed.hints():
        print("\n".join(hints))
    rest = f", but for {len(allowed.entries)} exceptions" if allowed.entries else ""
    print("\n".join(problems) if problems else f"layers: every include goes down{rest}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
