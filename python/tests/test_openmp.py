"""`ropewalk run --threads`: the variables of a plan, and what ranks of an MPI get of them."""

import os
import sys

import pytest

from conftest import real_mpis, write_program
from ropewalk import command, run
from support import dry, settings_of
from support import run as run_command

OPENMP = ("OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "ROPEWALK_LANES")
FAMILIES = ("mpich", "openmpi", "intel")


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in (*OPENMP, "GOMP_CPU_AFFINITY", "KMP_AFFINITY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(run, "usable_cores", lambda: 16)


def openmp_of(text):
    found = settings_of(text)
    return {name: found[name] for name in OPENMP if name in found}


@pytest.mark.parametrize("family", FAMILIES)
def test_cores_are_divided_between_threads_and_lanes(capsys, prefix, program, family):
    text = dry(capsys, "-n", 2, "--threads", 6, "--mpi", prefix(family), program)
    assert openmp_of(text) == {
        "OMP_NUM_THREADS": "6",
        "OMP_PLACES": "cores(6)",
        "OMP_PROC_BIND": "close",
        "ROPEWALK_LANES": "2",  # 8 cores a rank
    }


def test_the_mpi_is_prepared_for_these_lanes(capsys, prefix, program):
    text = dry(capsys, "-n", 2, "--threads", 5, "--mpi", prefix("mpich"), program)
    assert settings_of(text)["MPIR_CVAR_CH4_NUM_VCIS"] == "4"  # 3 lanes and the caller
    text = dry(capsys, "-n", 2, "--threads", 5, "--lanes", 1, "--mpi", prefix("mpich"), program)
    assert openmp_of(text)["ROPEWALK_LANES"] == "1"
    assert "MPIR_CVAR_CH4_NUM_VCIS" not in settings_of(text)


def test_nothing_is_said_without_the_option(capsys, prefix, program):
    assert openmp_of(dry(capsys, "-n", 2, "--mpi", prefix("mpich"), program)) == {}


@pytest.fixture
def two_nodes(monkeypatch):
    """two_nodes(NEAR): eight cores, those in NEAR near the adapter."""

    def make(near):
        monkeypatch.setattr(run, "usable_cores", lambda: 8)
        monkeypatch.setattr(run, "core_groups", lambda: [[core] for core in range(8)])
        monkeypatch.setattr("ropewalk.fabric.adapter_cpus", lambda: list(near))
        return ("--nodes=a,b", "--mpi")

    return make


def test_threads_leave_the_cores_near_the_adapter_to_lanes(capsys, prefix, program, two_nodes):
    options = ("--threads", 5, *two_nodes(range(4)), prefix("mpich"), program)
    assert openmp_of(dry(capsys, "-n", 2, *options)) == {
        "OMP_NUM_THREADS": "5",
        "OMP_PLACES": "{4},{5},{6},{7},{0}",  # the library takes 3, 2, 1 for three lanes
        "OMP_PROC_BIND": "close",
        "ROPEWALK_LANES": "3",
    }
    # No rank has cores of both kinds: it has them from the first on.
    options = ("--threads", 3, *options[2:])
    assert openmp_of(dry(capsys, "-n", 4, *options))["OMP_PLACES"] == "cores(3)"
    options = ("--threads", 2, *two_nodes(range(3)), prefix("mpich"), program)
    found = openmp_of(dry(capsys, "-n", 4, *options))
    assert found["OMP_PROC_BIND"] == "false"
    assert "OMP_PLACES" not in found


def test_all_cores_near_the_adapter_are_alike(capsys, prefix, program, two_nodes):
    for near in (range(8), ()):
        options = ("--threads", 5, *two_nodes(near), prefix("mpich"), program)
        assert openmp_of(dry(capsys, "-n", 2, *options))["OMP_PLACES"] == "cores(5)"


@pytest.mark.parametrize(
    "options",
    [
        ["--no-bind"],
        ["--launcher-option=-bind-to=hwthread"],
        ["-n", "17"],  # more ranks than cores
        ["--threads", "9"],  # more threads than the 8 cores of a rank
        ["--env", "HYDRA_BINDING=socket"],
    ],
)
def test_threads_that_share_cores_are_not_bound(capsys, prefix, program, options):
    text = dry(capsys, "-n", 2, "--threads", 4, *options, "--mpi", prefix("mpich"), program)
    assert openmp_of(text)["OMP_PROC_BIND"] == "false"
    assert "OMP_PLACES" not in openmp_of(text)


def test_a_lone_rank_has_all_cores(capsys, prefix, program):
    text = dry(capsys, "-n", 1, "--threads", 12, "--mpi", prefix("openmpi"), program)
    assert openmp_of(text)["OMP_PLACES"] == "cores(12)"
    assert openmp_of(text)["ROPEWALK_LANES"] == "4"


def test_more_threads_than_cores_are_noted(capsys, prefix, program):
    text = dry(capsys, "-n", 4, "--threads", 5, "--mpi", prefix("mpich"), program)
    assert "note: --threads: 5 threads for each rank, which has 4 cores" in text


@pytest.mark.parametrize("by_option", [False, True])
def test_your_own_number_wins(capsys, prefix, program, monkeypatch, by_option):
    options = ["--env", "OMP_NUM_THREADS=3,2"] if by_option else []
    if not by_option:
        monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    text = dry(capsys, "-n", 2, "--threads", 6, *options, "--mpi", prefix("mpich"), program)
    assert openmp_of(text)["OMP_NUM_THREADS"] == "3,2"
    assert openmp_of(text)["ROPEWALK_LANES"] == "5"
    assert openmp_of(text)["OMP_PLACES"] == "cores(3)"


@pytest.mark.parametrize(
    "name", ["OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"]
)
def test_your_own_places_win(capsys, prefix, program, monkeypatch, name):
    monkeypatch.setenv(name, "yours")
    text = dry(capsys, "-n", 2, "--threads", 6, "--mpi", prefix("mpich"), program)
    assert openmp_of(text) == {"OMP_NUM_THREADS": "6", "ROPEWALK_LANES": "2"}


def test_your_own_lanes_win(capsys, prefix, program, monkeypatch):
    monkeypatch.setenv("ROPEWALK_LANES", "4")
    text = dry(capsys, "-n", 2, "--threads", 6, "--mpi", prefix("mpich"), program)
    assert openmp_of(text)["ROPEWALK_LANES"] == "4"
    monkeypatch.setenv("ROPEWALK_LANES", "many")  # for the library to refuse
    text = dry(capsys, "-n", 2, "--threads", 6, "--mpi", prefix("mpich"), program)
    assert "ROPEWALK_LANES" not in openmp_of(text)


def test_srun_is_not_known_to_bind(capsys, prefix, program, monkeypatch, tmp_path):
    write_program(tmp_path / "bin/srun", "#!/bin/sh\necho pmi2\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    path = prefix("mpich")
    text = dry(capsys, "-n", 2, "--threads", 4, "--launcher", "srun", "--mpi", path, program)
    assert openmp_of(text)["OMP_PROC_BIND"] == "false"


@pytest.mark.parametrize("value", ["0", "-2", "few"])
def test_a_wrong_number(capsys, value):
    assert command.main(["run", f"--threads={value}", "true"]) == 2
    assert "--threads" in capsys.readouterr().err


@pytest.mark.parametrize("path", real_mpis(), ids=lambda path: path.name)
def test_ranks_get_them(path, tmp_path):
    code = (
        "import os; open(f'FOLDER/{os.getpid()}', 'w').write(os.environ['OMP_NUM_THREADS'] + ' ' "
        "+ os.environ['OMP_PROC_BIND'] + ' ' + os.environ['ROPEWALK_LANES'])"
    ).replace("FOLDER", str(tmp_path))
    words = [sys.executable, "-m", "ropewalk", "run", "-n", 2, "--no-bind", "--threads", 3]
    done = run_command([*words, "--lanes", 2, "--mpi", path, "--", sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    assert [one.read_text() for one in tmp_path.iterdir()] == ["3 false 2"] * 2
