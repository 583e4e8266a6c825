"""Programs are started here as users start them: by torchrun, and by the launcher of an MPI."""

import pathlib
import re
import sys

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

from ropewalk import preload_path
from support import environment, mpis, run

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples/ddp.py"


def test_torchrun_needs_no_mpi_and_no_import(tmp_path):
    assert "import ropewalk" not in EXAMPLE.read_text()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    own = {**environment(), "TMPDIR": str(tmp_path)}  # torchrun leaves a folder there
    done = run([*command, "2", EXAMPLE], env=own)
    assert done.returncode == 0, done.stderr
    error = re.fullmatch(r"2 ranks, mean squared error ([\d.]+)", done.stdout.strip())
    assert error is not None and float(error[1]) < 0.1, done.stdout


@pytest.mark.parametrize("autoload", ["0", "1"])
def test_the_package_may_be_imported_before_torch(autoload):
    program = """
import ropewalk.torch
import torch.distributed as dist
assert "ropewalk" in dist.Backend.backend_list
assert ropewalk.torch.empty(2, 3).shape == (2, 3)
"""
    own = {**environment(), "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload}
    done = run([sys.executable, "-c", program], env=own)
    assert done.returncode == 0, done.stderr


LATE_PROGRAM = """
import os
import time
import torch
from ropewalk.torch.work import COMPLETIONS
COMPLETIONS.start(lambda: (time.sleep(0.3), print("after the end", flush=True)))
child = os.fork()
if child == 0:
    os._exit(COMPLETIONS._running)  # none: the thread is the parent's
print(os.waitpid(child, 0)[1], flush=True)
"""


def test_the_interpreter_waits_for_what_follows_a_future():
    done = run([sys.executable, "-c", LATE_PROGRAM])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0\nafter the end\n"


# Rank 0 comes to its end while the call is under way, and the future with it.
UNDER_WAY_PROGRAM = """
import sys, time
import torch
import torch.distributed as dist
import ropewalk.torch.work
ropewalk.torch.work.Completions._PATIENCE_SECONDS = float(sys.argv[1])
dist.init_process_group("ropewalk")
dist.barrier()
total = torch.ones(3)
if dist.get_rank() == 1:
    time.sleep(2)
    dist.all_reduce(total)
    print("came", flush=True)
else:
    future = dist.all_reduce(total, async_op=True).get_future()
    future.then(lambda told: print("followed", told.value()[0].tolist(), flush=True))
"""


@pytest.mark.parametrize("patience", [10, 0])
def test_a_program_may_end_before_the_call_that_a_future_follows(tmp_path, patience):
    program = tmp_path / "program.py"
    program.write_text(UNDER_WAY_PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = run([*command, "2", program, patience])
    assert done.returncode == 0, done.stderr
    assert "came" in done.stdout
    assert ("followed [2.0, 2.0, 2.0]" in done.stdout) == (patience > 0)


def test_layers_that_are_split_over_ranks_give_the_same_answers(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    example = EXAMPLE.with_name("tensor_parallel.py")
    done = run([*command, "2", example], env={**environment(), "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^2 ranks, \d+ tokens: [\d.]+ ms a pass$", done.stdout, re.M)) == 3
    assert "nanobind" not in done.stderr  # the mesh keeps its process group


ELASTIC_PROGRAM = """
import os
import signal
import sys
import torch
import torch.distributed as dist

steps, state = 12, sys.argv[1]
dist.init_process_group("ropewalk")
rank = dist.get_rank()
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
begun, weights = torch.load(state) if os.path.exists(state) else (0, torch.zeros(1000))
for step in range(begun, steps):
    if (attempt, step, rank) == (0, 7, 1):
        os.kill(os.getpid(), signal.SIGKILL)
    gradient = torch.full((1000,), float(rank + step))
    dist.all_reduce(gradient)
    weights += gradient
    if rank == 0:
        torch.save((step + 1, weights), state + ".new")
        os.replace(state + ".new", state)
assert torch.all(weights == sum(2 * step + 1 for step in range(steps))), weights
dist.destroy_process_group()
if rank == 0:
    print(f"attempt {attempt} went on from step {begun}")
"""


def test_torchrun_restarts_a_group_whose_worker_has_died(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ELASTIC_PROGRAM)
    words = ["--standalone", "--nproc-per-node", "2", "--max-restarts", "1", program]
    own = {**environment(), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "torch.distributed.run", *words, tmp_path / "state"]
    done = run(command, env=own)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "attempt 1 went on from step 7"


UNCHANGED_PROGRAM = """
import torch
import torch.distributed as dist

dist.init_process_group("ropewalk")
gradients = torch.full((1 << 20,), float(dist.get_rank()))
for _ in range(3):
    dist.all_reduce(gradients)
assert torch.all(gradients == 4)
if dist.get_rank() == 0:
    print(dist.group.WORLD._ranks.last_path())
dist.destroy_process_group()
"""


def test_tensors_are_mapped_under_the_malloc_library(tmp_path):
    try:
        preloaded = preload_path(libraries=("malloc",))
    except FileNotFoundError as error:
        pytest.skip(str(error))
    program = tmp_path / "program.py"
    program.write_text(UNCHANGED_PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    for own, mapped in (({}, False), ({"LD_PRELOAD": preloaded}, True)):
        own = {**environment(), "TMPDIR": str(tmp_path), **own}
        done = run([*command, "--nproc-per-node", "2", program], env=own)
        assert done.returncode == 0, done.stderr
        assert (done.stdout.strip() == "mapped") == mapped, done.stdout


MPI_PROGRAM = """
import sys
from mpi4py import MPI
import torch
import torch.distributed as dist

rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
own = size - 1 - rank  # the ranks of the group are those of MPI backwards
store = dist.FileStore(sys.argv[1], size)
dist.init_process_group("ropewalk", store=store, rank=own, world_size=size)
told = torch.empty(size, dtype=torch.int64)
dist.all_gather_into_tensor(told, torch.tensor([rank]))
assert told.tolist() == list(range(size))[::-1], told
some = dist.new_group([1])
if own == 1:
    total = torch.full((100_000,), 5.0)
    dist.all_reduce(total, group=some)
    assert torch.all(total == 5)
total = torch.full((100_000,), float(own))
dist.all_reduce(total)
assert torch.all(total == sum(range(size)))
nodes = dist.group.WORLD._ranks.nodes()
dist.destroy_process_group()
if rank == 0:
    print("nodes", nodes)
"""


@mpis
def test_an_mpi_that_runs_is_used(path, tmp_path):
    # Each MPI has one case only, because torch takes seconds to load.
    nodes = "1,1" if "mpich" in path.name else "auto"
    program = tmp_path / "program.py"
    program.write_text(MPI_PROGRAM)
    launcher = [sys.executable, "-m", "ropewalk", "run", "-n", "2", "--mpi", str(path)]
    words = ["--env", f"ROPEWALK_NODES={nodes}", "--", sys.executable, program, tmp_path / "store"]
    done = run([*launcher, *words])
    assert done.returncode == 0, done.stderr
    assert f"nodes {2 if nodes == '1,1' else 1}" in done.stdout
