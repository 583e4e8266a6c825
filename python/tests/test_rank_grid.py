"""`--grid`: blocks of ranks for nodes, what each launcher is told, and in a box where ranks lie and
what leaves a node."""

import itertools
import json
import subprocess
import sys

import pytest

from conftest import elf_file, make_prefix, real_mpis, write_program
from ropewalk import rank_grid, run
from ropewalk.batch import Job
from ropewalk.cluster import box as boxes
from ropewalk.cluster import command as cluster
from ropewalk.cluster.box import Box
from ropewalk.errors import CommandError
from support import dry

TWO = ("a", "b")


@pytest.fixture
def rank(tmp_path, program):
    return program


# ---- placements ----------------------------------------------------------------------------------


def cells_of(extents):
    return list(itertools.product(*map(range, extents)))


def links_between(extents, nodes):
    """Links of a periodic grid, by coordinates."""
    node_at = dict(zip(cells_of(extents), nodes, strict=True))
    crossing = 0
    for cell in node_at:
        for d, extent in enumerate(extents):
            there = (*cell[:d], (cell[d] + 1) % extent, *cell[d + 1 :])
            crossing += node_at[cell] != node_at[there]
    return crossing


@pytest.mark.parametrize(
    ("extents", "nodes", "block", "links", "before"),
    [
        ((2, 4), 2, (2, 2), 4, 8),
        ((4, 2), 2, (2, 2), 4, 4),
        ((2, 2, 2, 2), 4, (1, 1, 2, 2), 32, 32),
        ((2, 2, 8), 4, (2, 2, 2), 16, 64),
        ((2, 3), 2, (1, 3), 6, 6),
        ((8,), 4, (2,), 4, 4),
        ((3, 4), 2, (3, 2), 6, 10),
        ((4, 9), 6, (2, 3), 30, 44),
        ((4, 4), 1, (4, 4), 0, 0),
    ],
)
def test_blocks(extents, nodes, block, links, before):
    found = rank_grid.place(extents, "abcdefgh"[:nodes])
    assert (found.block, found.links, found.links_in_order) == (block, links, before)
    assert links_between(extents, found.nodes) == links
    assert sorted(found.nodes) == sorted(list(range(nodes)) * found.per_node)


def test_of_two_blocks_the_one_that_suits_an_open_grid():
    """A cube of a periodic grid has as many links outwards as a plate of its whole width."""
    hosts = "abcdefgh"
    assert rank_grid.place((4, 4, 4), hosts).block == (2, 2, 2)
    assert rank_grid.place((8, 8, 8), hosts).block == (4, 4, 4)
    found = rank_grid.place((4, 4, 4), hosts)
    assert rank_grid.crossing_links(found.extents, found.nodes, False) == 48


@pytest.mark.parametrize("extents", [(2, 4), (4, 2), (2, 2, 2), (3, 2), (2, 2, 1)])
def test_no_division_in_two_is_better(extents):
    cells = range(len(cells_of(extents)))
    halves = itertools.combinations(cells, len(cells) // 2)
    fewest = min(links_between(extents, [cell in half for cell in cells]) for half in halves)
    assert rank_grid.place(extents, TWO).links == fewest


# ---- the command line ----------------------------------------------------------------------------


def words(text):
    return next(line for line in text.splitlines() if line.startswith("/")).split()


def after(option, given):
    return given[given.index(option) + 1]


def test_mpich_is_told_the_node_of_each_rank(capsys, prefix, rank):
    text = dry(capsys, "--grid=2.4", "--nodes=a,b", "--mpi", prefix("mpich"), rank)
    given = words(text)
    assert after("-hosts", given) == "a,b"
    assert after("-rankmap", given) == "0,0,1,1,0,0,1,1"
    assert after("-n", given) == "8"
    assert "-ppn" not in given
    assert "# grid 2.4: each node has 2.2; 4 links between nodes, 8 with ranks in" in text


def test_intel_and_open_mpi_are_told_the_host_of_each_rank(capsys, prefix, rank, monkeypatch):
    monkeypatch.setattr(run, "usable_cores", lambda: 8)
    hosts = "a,a,b,b,a,a,b,b"
    asked = ("-n", 8, "--grid", "2.4", "--nodes=a,b")
    given = words(dry(capsys, *asked, "--mpi", prefix("intel"), rank))
    assert after("-hosts", given) == hosts
    assert after("-ppn", given) == "1"
    given = words(dry(capsys, *asked, "--mpi", prefix("openmpi"), rank))
    assert after("--host", given) == hosts
    assert after("--map-by", given) == "seq:PE=2"  # 8 cores for 4 ranks of a node
    given = words(dry(capsys, *asked, "--no-bind", "--mpi", prefix("openmpi"), rank))
    assert after("--map-by", given) == "seq"


def test_ranks_per_node_says_how_many_nodes(capsys, prefix, rank):
    asked = ("--grid=2.4", "--nodes=a,b,c", "--ranks-per-node=4", "--mpi", prefix("mpich"), rank)
    assert after("-hosts", words(dry(capsys, *asked))) == "a,b"


def test_one_node_is_started_as_ever(capsys, prefix, rank):
    text = dry(capsys, "--grid=2.2", "--mpi", prefix("mpich"), rank)
    assert "-rankmap" not in text
    assert after("-n", words(text)) == "4"


def test_in_a_slurm_job_the_own_launcher_places(capsys, prefix, rank, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    given = words(dry(capsys, "--grid=2.4", "--mpi", prefix("mpich"), rank))
    assert after("-hosts", given) == "n1,n2"
    assert after("-rankmap", given) == "0,0,1,1,0,0,1,1"


# Places tasks as srun does with --distribution=arbitrary, by its manual: task i on the i-th name.
SRUN = """#!/bin/sh
[ "$1" != --mpi=list ] || { echo pmi2 >&2; exit; }
for word; do
  case $word in
    --distribution=*) way=${word#*=} ;;
    --nodelist=*) names=${word#*=} ;;
    --nodes=* | --ntasks-per-node=*) echo "$word beside the list of names"; exit 1 ;;
  esac
done
echo "$way" "$names"
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    write_program(tmp_path / "slurm/srun", SRUN)
    monkeypatch.setenv("PATH", f"{tmp_path}/slurm:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")


def test_srun_is_told_the_node_of_each_task(capsys, slurm, prefix, rank, tmp_path):
    asked = ("--grid=2.4", "--launcher=srun", "--ranks-per-node=4", "--mpi", prefix("mpich"), rank)
    given = words(dry(capsys, *asked))
    placed = "arbitrary n1,n1,n2,n2,n1,n1,n2,n2\n"
    assert subprocess.run(given, capture_output=True, text=True).stdout == placed
    assert after("-n", given) == "8"
    assert "--cpus-per-task=2" in given
    # An MPI without a launcher of its own, as Cray's.
    elf_file(tmp_path / "cray/lib/libmpi_gnu_123.so.12", interpreter=False)
    program = elf_file(tmp_path / "p", ["libmpi_gnu_123.so.12"], runpath=[f"{tmp_path}/cray/lib"])
    given = words(dry(capsys, "--grid=2.4", program))
    assert subprocess.run(given, capture_output=True, text=True).stdout == placed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--grid=2.x"], "--grid: '2.x', expected the ranks in each dimension"),
        (["--grid=0.2"], "--grid: '0.2', expected"),
        (["--grid="], "--grid: '', expected"),
        (["--grid=2.2", "-n", "6"], "--grid: 2.2 has 4 ranks, expected the 6 of -n"),
        (["--grid=3.3", "--nodes=a,b"], "which cannot be equal parts on 2 nodes"),
        (
            ["--grid=2.4", "--nodes=a,b,c", "--ranks-per-node=3"],
            "which cannot be 3 on each node",
        ),
        (["--grid=4.4", "--nodes=a,b", "--ranks-per-node=4"], "16 ranks are more than 2 nodes"),
        (["--grid=2.2", "--nodes=a,b", "--launcher=mpiexec"], "--grid: the batch system's mpiexec"),
        (
            ["--grid=2.2", "--nodes=a,b", "--launcher-option=--distribution=cyclic"],
            "--grid: --launcher-option places the ranks already (distribution)",
        ),
        (
            ["--grid=2.2", "--nodes=a,b", "--launcher-option=--map-by=node"],
            "--grid: --launcher-option places the ranks already (map-by)",
        ),
    ],
)
def test_errors(capsys, rank, tmp_path, arguments, complaint):
    from ropewalk import command

    path = make_prefix(tmp_path / "mpich", "mpich")
    assert command.main(["run", "--dry-run", "--mpi", str(path), *arguments, str(rank)]) == 2
    assert complaint in capsys.readouterr().err


def test_unequal_nodes():
    job = Job("box", 2, (("n0", 3), ("n1", 1)))
    with pytest.raises(CommandError, match=r"different numbers of ranks \(n0: 3, n1: 1\)"):
        rank_grid.checked((2, 2), job, (), None)
    assert rank_grid.checked((2, 2), job, (), 2).nodes == (0, 0, 1, 1)
    with pytest.raises(CommandError, match="names of the job's 2 nodes are not known"):
        rank_grid.checked((2, 2), Job(nodes=2), (), None)


# ---- in a box ------------------------------------------------------------------------------------

# Each rank sends both its neighbours in each dimension a face, in a grid that MPI has numbered, and
# tells its node and what left that in the meantime.
FACES = """
import json, os, sys
import numpy as np
from mpi4py import MPI

def sent():
    lines = open("/proc/net/dev").read().splitlines()
    return sum(int(line.split()[9]) for line in lines if line.split()[0].startswith("rail"))

extents = [int(one) for one in sys.argv[1].split(".")]
grid = MPI.COMM_WORLD.Create_cart(extents, [True] * len(extents), reorder=False)
face, ghost = np.zeros(1 << 18, "u1"), np.zeros(1 << 18, "u1")
before = sent()
grid.Barrier()
for _ in range(4):
    for dimension in range(len(extents)):
        for direction in (1, -1):
            source, target = grid.Shift(dimension, direction)
            grid.Sendrecv(face, target, 0, ghost, source, 0)
grid.Barrier()
local = grid.Split_type(MPI.COMM_TYPE_SHARED)
told = [grid.rank, os.uname().nodename, local.size, sent() - before]
with open(f"{sys.argv[2]}/{grid.rank}", "w") as file: json.dump(told, file)
"""
BYTES_OF_A_LINK = 2 * 4 << 18  # both ways, four times


@pytest.fixture(scope="module")
def box():
    try:
        made = Box(nodes=2, rate="2gbit", ranks_per_node="4")
    except boxes.NotPermitted as refused:
        pytest.skip(str(refused))
    with made:
        yield made


@pytest.mark.parametrize("path", real_mpis(), ids=lambda path: path.name)
def test_less_leaves_a_node_of_a_compact_block(box, path, tmp_path):
    pytest.importorskip("mpi4py")
    left = {}
    for name, options in {"order": ["-n", "8"], "block": ["--grid", "2.4"]}.items():
        folder = tmp_path / name
        folder.mkdir()
        program = [sys.executable, "-c", FACES, "2.4", str(folder)]
        ours = ["run", *options, "--mpi", str(path), "--plain", "--", *program]
        done = box.run([*cluster.own_command(), *ours], timeout=100)
        assert done.returncode == 0, done.stderr
        told = sorted(json.loads(file.read_text()) for file in folder.iterdir())
        hosts = [host for _, host, _, _ in told]
        expected = "n0 n0 n0 n0 n1 n1 n1 n1" if name == "order" else "n0 n0 n1 n1 n0 n0 n1 n1"
        assert hosts == expected.split()
        assert {size for _, _, size, _ in told} == {4}  # MPI takes the ranks of a node as such
        left[name] = sum({host: sent for _, host, _, sent in told}.values())
    assert left["order"] >= 8 * BYTES_OF_A_LINK
    assert left["block"] >= 4 * BYTES_OF_A_LINK
    assert left["block"] < 0.6 * left["order"]
