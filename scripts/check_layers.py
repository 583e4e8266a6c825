"""Dependencies go down only: reads every #include and fails on one that goes up.

The order of the rooms is the list in src/CMakeLists.txt. Besides: nothing in src/ outside mpi/
includes an MPI header, and public headers include public headers only.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MPI_HEADERS = {"mpi.h", "mpi_abi.h", "mpi_proto.h"}
SUFFIXES = {".cc", ".cpp", ".c", ".h", ".hpp", ".inc"}


def rooms() -> list[str]:
    """The rooms from the ground up."""
    text = (ROOT / "src/CMakeLists.txt").read_text()
    found = re.search(r"foreach\(room ([a-z_ \n]+)\)", text)
    if found is None:
        sys.exit("check_layers: src/CMakeLists.txt no longer has `foreach(room ...)`")
    return found.group(1).split()


def includes(folder: str) -> Iterator[tuple[pathlib.Path, int, str, bool]]:
    """Each include below the folder: file, line, what it names, whether it is quoted."""
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                yield path.relative_to(ROOT), number, match.group(2), match.group(1) == '"'


def upward(order: list[str]) -> Iterator[str]:
    """Includes in src/ that break a rule of the house."""
    for path, line, name, _ in includes("src"):
        here = path.parts[1] if len(path.parts) > 2 else None
        there = name.split("/")[0] if "/" in name else None
        if here is not None and here not in order:
            yield f"{path}:{line}: the room {here} is missing in src/CMakeLists.txt"
        elif here and there in order and order.index(there) > order.index(here):
            yield f"{path}:{line}: {here} lies below {there} and may not include {name}"
        if name in MPI_HEADERS and here != "mpi":
            yield f"{path}:{line}: {name}: only src/mpi knows MPI's headers"


def private_in_public() -> Iterator[str]:
    """Quoted includes of public headers that users would not have."""
    for path, line, name, quoted in includes("include"):
        if quoted and not name.startswith("ropewalk/"):
            yield f"{path}:{line}: a public header includes {name}, which is not installed"


def main() -> int:
    problems = [*upward(rooms()), *private_in_public()]
    print("\n".join(problems) if problems else "layers: every include goes down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
