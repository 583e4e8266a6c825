"""Launchers and batch systems: the command line and the environment that made-up launchers get, and
how they are chosen. Neither Slurm nor PBS is needed."""

import json
import os
import subprocess
import sys

import pytest

from conftest import elf_file, make_prefix, write_program
from ropewalk import batch, command, launchers, preload, run
from support import PACKAGES, dry


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    monkeypatch.setattr(run, "usable_cores", lambda: 8)


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    for file in preload.LIBRARIES.values():
        elf_file(tmp_path / "preload" / file, interpreter=False)
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(tmp_path / "preload"))
    return f"{tmp_path}/preload/libropewalk-malloc.so:{tmp_path}/preload/libropewalk-mpi.so"


@pytest.fixture
def rank(tmp_path, no_libraries):
    return elf_file(tmp_path / "rank")


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """slurm(KIND...): inside a job of two nodes, with a srun that offers these kinds and records
    how it was called."""

    def enter(*kinds, **variables):
        listed = "".join(f"\\n\\t{kind}" for kind in kinds)
        write_program(
            tmp_path / "slurm/srun",
            f'#!/bin/sh\n[ "$1" != --mpi=list ] || {{ printf "MPI plugin types are...{listed}\\n"'
            " >&2; exit; }\n"
            f"{sys.executable} -S -c 'import json, os, sys; json.dump([sys.argv[1:], "
            f'dict(os.environ)], open("{tmp_path}/record", "w"))\' "$@"\n',
        )
        monkeypatch.setenv("PATH", f"{tmp_path}/slurm:/usr/bin:/bin")
        given = {
            "SLURM_JOB_ID": "42",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURM_JOB_NODELIST": "node[07-08]",
            "SLURM_CPUS_ON_NODE": "8",
            **variables,
        }
        for name, text in given.items():
            monkeypatch.setenv(name, text)

    return enter


@pytest.fixture
def pbs(tmp_path, monkeypatch):
    def enter(*lines):
        file = tmp_path / "nodes"
        file.write_text("".join(f"{line}\n" for line in lines))
        monkeypatch.setenv("PBS_NODEFILE", str(file))
        monkeypatch.setenv("PBS_JOBID", "42.server")
        return str(file)

    return enter


def words(text):
    return next(line for line in text.splitlines() if line.startswith("/")).split()


# ---- names of nodes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[01-03,7],gpu1", ["n01", "n02", "n03", "n7", "gpu1"]),
        ("r[1-2]n[1-2].x", ["r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x"]),
        ("", []),
        ("n[a-b]", ["na-b"]),
        ("n[1-99999999],m", ["n[1-99999999]", "m"]),  # of a batch system, which means it
    ],
)
def test_expand(text, names):
    assert batch.expand(text) == names


def test_jobs(pbs):
    assert batch.job({}) == batch.Job()
    slurm = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_CPUS_ON_NODE": "64"}
    found = batch.job(slurm)
    assert (found.system, found.nodes, found.names[-1], found.cpus_here) == ("slurm", 4, "n4", 64)
    file = pbs("a", "a", "b")
    found = batch.job({"PBS_NODEFILE": file})
    assert (found.system, found.nodes, found.hosts) == ("pbs", 2, (("a", 2), ("b", 1)))
    assert batch.job({"PBS_NODEFILE": "/none"}).hosts == ()


def test_here():
    assert batch.is_here("n1.cluster", "n1")
    assert batch.is_here("n1", "n1.cluster")
    assert not batch.is_here("n11", "n1")
    assert batch.is_here("localhost", "n1")


# ---- Slurm ---------------------------------------------------------------------------------------


def test_srun_for_mpich(capsys, slurm, prefix, rank, libraries):
    slurm("none", "pmi2")
    text = dry(capsys, "-n", 4, "--mpi", prefix("mpich"), rank)
    called = words(text)
    assert called[0].endswith("/slurm/srun")
    assert called[-3:] == ["-n", "4", str(rank)]
    assert "--mpi=pmi2" in called
    assert f"--export=ALL,LD_PRELOAD={libraries}" in called
    assert "--cpus-per-task=4" in called  # 8 CPUs on a node for 2 ranks
    assert "in a Slurm job, which offers pmi2" in text
    assert "on 2 nodes" in text


def test_srun_for_openmpi_needs_pmix(capsys, slurm, prefix, rank):
    path = prefix("openmpi")
    slurm("none", "pmi2", "pmix_v4")
    assert "--mpi=pmix_v4" in words(dry(capsys, "--mpi", path, rank))
    slurm("none", "pmi2")
    text = dry(capsys, "--mpi", path, rank)
    assert words(text)[0] == f"{path}/bin/mpiexec"
    assert "it offers no pmix, by which Open MPI starts" in text


def test_srun_for_intel_needs_its_library(capsys, slurm, prefix, rank, monkeypatch):
    path = prefix("intel")
    slurm("pmi2")
    assert words(dry(capsys, "--mpi", path, rank))[0] == f"{path}/bin/mpiexec"
    monkeypatch.setenv("I_MPI_PMI_LIBRARY", "/slurm/libpmi2.so")
    text = dry(capsys, "--mpi", path, rank)
    assert words(text)[0].endswith("srun")
    assert "I_MPI_PMI_LIBRARY=/slurm/libpmi2.so" in text


def test_your_own_kind_and_launcher(capsys, slurm, prefix, rank):
    slurm("pmi2", SLURM_MPI_TYPE="pmix_v5")
    path = prefix("openmpi")
    called = words(dry(capsys, "--mpi", path, rank))
    assert called[0].endswith("srun")
    assert not any(word.startswith("--mpi=") for word in called)
    assert words(dry(capsys, "--launcher", "own", "--mpi", path, rank))[0].endswith("mpiexec")


def test_srun_out_of_a_job(capsys, prefix, rank, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    arguments = ["run", "--launcher", "srun", "--mpi", str(prefix("mpich")), str(rank)]
    assert command.main(arguments) == 2
    assert "--launcher: srun: srun is not on PATH" in capsys.readouterr().err


def test_srun_places_ranks(capsys, slurm, prefix, rank):
    slurm("pmi2")
    path = prefix("mpich")
    called = words(dry(capsys, "--nodes", "node08", "--ranks-per-node", 3, "--mpi", path, rank))
    assert {"--nodelist=node08", "--nodes=1", "--ntasks-per-node=3"} <= set(called)
    assert called[called.index("-n") + 1] == "3"
    called = words(dry(capsys, "-n", 32, "--mpi", path, rank))
    assert "--overcommit" in called
    called = words(dry(capsys, "-n", 2, "--no-bind", "--mpi", path, rank))
    assert "--cpu-bind=none" in called
    slurm("pmi2", SLURM_CPUS_PER_TASK="3")
    assert "--cpus-per-task=3" in words(dry(capsys, "-n", 4, "--mpi", path, rank))


def test_a_comma_would_end_sruns_export(capsys, slurm, prefix, rank, tmp_path, monkeypatch):
    slurm("pmi2")
    elf_file(tmp_path / "a,b" / preload.LIBRARIES["mpi"], interpreter=False)
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(tmp_path / "a,b"))
    called = words(dry(capsys, "--mpi", prefix("mpich"), rank))
    assert called[-3:] == ["env", f"LD_PRELOAD={tmp_path}/a,b/libropewalk-mpi.so", str(rank)]
    assert not any("--export" in word for word in called)


def test_an_mpi_that_only_slurm_starts(capsys, slurm, tmp_path, no_libraries):
    """As Cray's: the library is found from the program, and has no launcher beside it."""
    elf_file(tmp_path / "cray/lib/libmpi_gnu_123.so.12", interpreter=False)
    program = elf_file(tmp_path / "p", ["libmpi_gnu_123.so.12"], runpath=[f"{tmp_path}/cray/lib"])
    slurm("pmi2", "cray_shasta")
    called = words(dry(capsys, program))
    assert called[0].endswith("srun")
    assert "--mpi=cray_shasta" in called


def test_an_mpi_that_nothing_starts(capsys, tmp_path, no_libraries):
    elf_file(tmp_path / "lib/libmpi_gnu_123.so.12", interpreter=False)
    program = elf_file(tmp_path / "p", ["libmpi_gnu_123.so.12"], runpath=[f"{tmp_path}/lib"])
    assert command.main(["run", str(program)]) == 2
    complaint = capsys.readouterr().err
    assert "has no mpiexec beside it" in complaint
    assert "--mpi" in complaint


def test_what_srun_gets(slurm, prefix, rank, libraries, tmp_path):
    slurm("pmi2")
    done = subprocess.run(
        [sys.executable, "-m", "ropewalk", "run", "-n", "2", "--stats", "--mpi",
         str(prefix("mpich")), "--", str(rank), "--mpi", "x"],
        env={**os.environ, "PYTHONPATH": PACKAGES},
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    arguments, environment = json.loads((tmp_path / "record").read_text())
    assert arguments[-5:] == ["-n", "2", str(rank), "--mpi", "x"]
    assert f"--export=ALL,LD_PRELOAD={libraries}" in arguments
    assert "LD_PRELOAD" not in environment
    assert environment["ROPEWALK_STATS"] == "1"
    assert environment["ROPEWALK_MPI_LIBRARY"].endswith("libmpi.so.12")
    assert "no rank runs on this node" in done.stderr


# ---- PBS -----------------------------------------------------------------------------------------


def test_own_launchers_get_the_jobs_nodes(capsys, pbs, prefix, rank):
    file = pbs("a", "a", "b", "b")
    called = words(dry(capsys, "-n", 4, "--mpi", prefix("mpich"), rank))
    assert called[called.index("-hosts") + 1] == "a:2,b:2"
    called = words(dry(capsys, "-n", 4, "--mpi", prefix("openmpi"), rank))
    assert called[called.index("--hostfile") + 1] == file
    called = words(dry(capsys, "--ranks-per-node", 1, "--mpi", prefix("mpich"), rank))
    assert called[called.index("-hosts") + 1] == "a,b"
    assert called[called.index("-ppn") + 1] == "1"
    assert called[called.index("-n") + 1] == "2"
    called = words(dry(capsys, "--nodes", "b", "--mpi", prefix("mpich"), rank))
    assert called[called.index("-hosts") + 1] == "b"


@pytest.mark.parametrize(
    ("folder", "options"),
    [("pals", ["--ppn", "2"]), ("torque", ["-npernode", "2"])],
)
def test_mpiexec_of_the_batch_system(
    capsys, pbs, tmp_path, no_libraries, libraries, monkeypatch, folder, options
):
    pbs("a", "b")
    write_program(tmp_path / folder / "mpiexec")
    monkeypatch.setenv("PATH", f"{tmp_path}/{folder}")
    elf_file(tmp_path / "lib/libmpi_gnu_123.so.12", interpreter=False)
    program = elf_file(tmp_path / "p", ["libmpi_gnu_123.so.12"], runpath=[f"{tmp_path}/lib"])
    called = words(dry(capsys, "--ranks-per-node", 2, program))
    assert called[0] == f"{tmp_path}/{folder}/mpiexec"
    assert called[called.index(options[0]) : called.index(options[0]) + 2] == options
    assert called[-5:] == ["-n", "4", "env", f"LD_PRELOAD={libraries}", str(program)]


# ---- nodes by hand -------------------------------------------------------------------------------


def test_nodes_by_hand(capsys, prefix, rank, libraries):
    text = dry(capsys, "--nodes", "n[1-2]", "-n", 6, "--mpi", prefix("mpich"), rank)
    called = words(text)
    assert called[called.index("-hosts") : called.index("-hosts") + 4] == [
        "-hosts", "n1,n2", "-ppn", "3",
    ]  # fmt: skip
    called = words(dry(capsys, "--nodes", "n[1-2]", "-n", 6, "--mpi", prefix("openmpi"), rank))
    assert called[called.index("--host") + 1] == "n1:3,n2:3"
    assert "ROPEWALK_MPI_LIBRARY" in called  # -x: other nodes do not have it
    path = prefix("openmpi")
    called = words(dry(capsys, "--nodes", "a,b", "--ranks-per-node", 4, "--mpi", path, rank))
    assert "ppr:4:node:PE=2" in called
    assert called[called.index("-n") + 1] == "8"
    path = prefix("intel")
    called = words(dry(capsys, "--nodes", "a,b", "--ranks-per-node", 4, "--mpi", path, rank))
    assert called[called.index("-ppn") + 1] == "4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ranks-per-node", "0"], ["--ranks-per-node", "1 or more"]),
        (["-n", "9", "--nodes", "a,b", "--ranks-per-node", "4"], ["-n", "9 ranks", "2 nodes"]),
        (["--nodes", "a,a"], ["--nodes", "twice"]),
        (["--nodes", ""], ["--nodes", "none"]),
    ],
)
def test_errors(capsys, prefix, rank, arguments, message):
    assert command.main(["run", *arguments, "--mpi", str(prefix("mpich")), str(rank)]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    for word in message:
        assert word in complaint


def test_every_kind_has_a_command(tmp_path):
    from ropewalk import installations, plan

    one = installations.recognise(str(make_prefix(tmp_path / "mpich", "mpich")))
    for kind in ("hydra", "openmpi", "srun", "pals", "osc"):
        request = plan.Request(one, 2, ["x"], launcher=launchers.Launcher(kind, "/l"))
        assert plan.make(request, {}).command[-3:] == ["-n", "2", "x"]
