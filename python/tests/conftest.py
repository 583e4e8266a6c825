"""Fixtures: made-up MPI prefixes, and an environment without the caller's own settings."""

import os
import pathlib
import struct
import sys

import pytest

try:
    import ropewalk  # noqa: F401
except ModuleNotFoundError:  # not installed: test the source
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

_OWN = (
    "ROPEWALK_",
    "MPIR_",
    "OMPI_",
    "PRTE_",
    "I_MPI_",
    "FI_",
    "PSM2_",
    "SLURM_",
    "PBS_",
    "HYDRA_",
    "MPI4PY_",
    "PMI",
    "UCX_",
    "LD_",
    "RDMAV_",
    "IBV_",
)


def write_program(path, text="#!/bin/sh\nexit 0\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_prefix(folder, family):
    """A prefix that looks like an MPI of that family; its launcher runs the program once."""
    launcher = "#!/bin/sh\n" + (
        'if [ "$1" = --version ]; then echo "Version 9.8.7"; exit; fi\n'
        'while [ "${1#-}" != "$1" ]; do\n'
        '  case $1 in -genv) export "$2=$3"; shift 2;;\n'
        '  -x) case $2 in *=*) export "$2";; esac; shift;;\n'
        "  -n|-bind-to|--bind-to|--map-by) shift;; esac; shift\n"
        'done\nexec "$@"\n'
    )
    write_program(folder / "bin/mpiexec", launcher)
    library = {"openmpi": "libmpi.so.40"}.get(family, "libmpi.so.12")
    write_program(folder / "lib" / library, "")
    if family == "openmpi":
        write_program(folder / "bin/prterun")
    if family == "mpich":
        write_program(folder / "lib/libmpi_abi.so.1", "")
    if family == "intel":
        write_program(folder / "bin/impi_info")
        write_program(folder / "lib/libtcp-fi.so", "")
    return folder


def elf_file(
    path, sonames=(), rpath=(), runpath=(), defines=(), uses=(), machine=62, interpreter=True
):
    """The smallest 64-bit ELF that names libraries, where to look for them and symbols: a header,
    segments, tags, one symbol table with its section headers, strings."""
    table = {"": 0}
    strings = bytearray(b"\0")

    def place(text):
        if text not in table:
            table[text] = len(strings)
            strings.extend(text.encode() + b"\0")
        return table[text]

    tags = [(1, place(name)) for name in sonames]
    tags += [(15, place(":".join(rpath)))] if rpath else []
    tags += [(29, place(":".join(runpath)))] if runpath else []
    symbols = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
    symbols += [struct.pack("<IBBHQQ", place(name), 18, 0, 1, 0x400000, 8) for name in defines]
    symbols += [struct.pack("<IBBHQQ", place(name), 18, 0, 0, 0, 0) for name in uses]
    loader = place("/lib64/ld-linux-x86-64.so.2")
    kinds = 3 if interpreter else 2
    start = 64 + kinds * 56
    base = start + 16 * (len(tags) + 2)
    symbol_bytes = b"".join(symbols)
    symbols_at = base + len(strings)
    sections_at = symbols_at + len(symbol_bytes)
    tags += [(5, 0x400000 + base), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    sections = [
        struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, base, len(strings), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, symbols_at, len(symbol_bytes), 1, 1, 8, 24),
    ]
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack(
            "<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, sections_at, 0, 64, 56, kinds, 64, 3, 0
        )
    )
    segments = [
        struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0, sections_at, sections_at, 4096),
        struct.pack("<IIQQQQQQ", 2, 6, start, 0x400000 + start, 0, len(dynamic), len(dynamic), 8),
    ]
    if interpreter:
        segments.append(struct.pack("<IIQQQQQQ", 3, 4, base + loader, 0, 0, 28, 28, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        header + b"".join(segments) + dynamic + strings + symbol_bytes + b"".join(sections)
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def no_libraries(monkeypatch):
    """A machine whose loader knows no libraries of its own."""
    monkeypatch.setattr("ropewalk.loader._CACHE", "/nonexistent")
    monkeypatch.setattr("ropewalk.loader.default_folders", lambda: ())


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(_OWN):
            monkeypatch.delenv(name)


@pytest.fixture
def prefix(tmp_path):
    """prefix(FAMILY): the path of a made-up MPI."""

    def make(family, name=None):
        return make_prefix(tmp_path / (name or family), family)

    return make


# This stands for a benchmark program: it tells its words, and writes one row.
BENCH_PROGRAM = """#!/bin/sh
echo "ran $*"
[ "$1" = --help ] && exit 0
[ "$1" = --fail ] && exit 9
while [ $# -gt 0 ]; do [ "$1" = --json ] && file=$2; shift; done
[ -z "$file" ] || printf '%s\\n' '{"bench":"machine"}' \
  '{"bench":"NAME","mb_per_s":1200,"pages":"huge","verified":true}' >"$file"
exit 0
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    folder = tmp_path / "libexec"
    for name in ("comms", "memory"):
        write_program(folder / f"ropewalk-bench-{name}", BENCH_PROGRAM.replace("NAME", name))
    monkeypatch.setenv("ROPEWALK_LIBEXEC", str(folder))
    monkeypatch.setattr("ropewalk.bench.command.SUITE", ("comms", "memory"))
    return folder


@pytest.fixture
def program(tmp_path):
    return write_program(tmp_path / "program")


def real_mpis():
    """Prefixes of the MPIs that set-up made."""
    folders = [pathlib.Path(sys.prefix) / "mpi" / name for name in ("mpich", "openmpi")]
    return [folder for folder in folders if (folder / "bin/mpiexec").exists()]
