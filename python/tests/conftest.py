"""Fixtures: made-up MPI prefixes, and an environment without the caller's own settings."""

import os
import pathlib
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
        "  case $1 in -n|-x|-bind-to|--bind-to|--map-by) shift;; esac; shift\n"
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


@pytest.fixture
def program(tmp_path):
    return write_program(tmp_path / "program")


def real_mpis():
    """Prefixes of the MPIs that set-up made."""
    folders = [pathlib.Path(sys.prefix) / "mpi" / name for name in ("mpich", "openmpi")]
    return [folder for folder in folders if (folder / "bin/mpiexec").exists()]
