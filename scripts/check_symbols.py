"""check_symbols.py BUILD [--write]: what the libraries in the folder BUILD export and need.

packaging/symbols holds a list of the exported symbols for each library. A symbol that goes or
appears fails until the list says so as well (--write), because programs that are linked to the
library depend on it: docs/reference/versions.md says what may change with which version. Of
libropewalk.so the soname is checked too, and of the drop-in that it needs glibc alone.
"""

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "packaging/symbols"
LIBRARIES = {
    "libropewalk.so": "src/libropewalk.so",
    "libropewalk-mpi.so": "preload/mpi/libropewalk-mpi.so",
    "libropewalk-malloc.so": "preload/malloc/libropewalk-malloc.so",
}
OF_GLIBC = re.compile(r"(libc|ld-linux-[\w-]+|libm|libdl|libpthread)\.so\.\d+")
REMEDY = "`python scripts/check_symbols.py {tree} --write` takes it over; see {page}"


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exported(library: pathlib.Path) -> list[str]:
    """Names as C++ writes them, sorted; the constructors of one class count once."""
    lines = output("nm", "-D", "--defined-only", "-C", str(library)).splitlines()
    return sorted({line.split(maxsplit=2)[2] for line in lines})


def dynamic(library: pathlib.Path, tag: str) -> list[str]:
    return re.findall(rf"\({tag}\).*\[(.*)\]", output("readelf", "-d", str(library)))


def soname(name: str, version: str) -> str:
    """The drop-in is named in LD_PRELOAD, not linked to, and so bears no version."""
    return f"{name}.{version.split('.')[0]}" if name == "libropewalk.so" else name


def changes(name: str, now: list[str], promised: list[str]) -> Iterator[str]:
    for symbol in sorted({*now, *promised}):
        if symbol not in now:
            yield f"{name} no longer exports {symbol}"
        elif symbol not in promised:
            yield f"{name} exports {symbol}, which its list does not know"


def problems_of(name: str, library: pathlib.Path, version: str) -> Iterator[str]:
    promised = LISTS / f"{name}.txt"
    yield from changes(name, exported(library), promised.read_text().splitlines())
    if dynamic(library, "SONAME") != [soname(name, version)]:
        yield f"{name} has the soname {dynamic(library, 'SONAME')}, not {soname(name, version)}"
    foreign = [one for one in dynamic(library, "NEEDED") if not OF_GLIBC.fullmatch(one)]
    if foreign and name != "libropewalk.so":
        yield f"{name} needs {', '.join(foreign)}: the drop-in may need glibc alone"


def main(arguments: list[str]) -> int:
    tree = pathlib.Path(arguments[0])
    text = (ROOT / "python/ropewalk/_version.py").read_text()
    version = re.findall(r'^__version__ = "(.*)"', text, re.MULTILINE)[0]
    problems: list[str] = []
    for name, path in LIBRARIES.items():
        if "--write" in arguments:
            LISTS.mkdir(exist_ok=True)
            (LISTS / f"{name}.txt").write_text("\n".join(exported(tree / path)) + "\n")
        problems += problems_of(name, tree / path, version)
    if problems:
        problems.append(REMEDY.format(tree=arguments[0], page="docs/reference/versions.md"))
    print("\n".join(problems) if problems else "symbols: as the lists of packaging/symbols say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
