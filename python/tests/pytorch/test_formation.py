"""These tests are about what a process group is made of: MPI or the store, and memory."""

import os
import pathlib
import sys

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run

import ropewalk.torch
from support import environment, mpis
from support import run as run_command


def _library(mpi):
    """Returns what mpi4py loads where MPI4PY_LIBMPI names it."""
    return str(next((mpi / "lib").glob("libmpi.so.*")))


def _singletons(rank, size, file, mpi):
    """Each process is alone in the MPI that it imports, as under torchrun."""
    os.environ["MPI4PY_LIBMPI"] = _library(mpi)
    from mpi4py import MPI

    assert MPI.COMM_WORLD.Get_size() == 1
    join("ropewalk", rank, size, file)
    for group in [dist.new_group([each]) for each in range(size)][rank], dist.group.WORLD:
        total = torch.ones(3)
        dist.all_reduce(total, group=group)
        assert total.tolist() == [dist.get_world_size(group)] * 3
    dist.destroy_process_group()
    join("ropewalk", 0, 1, f"{file}-{rank}")  # a group of all ranks that is of one
    total = torch.ones(3)
    dist.all_reduce(total)
    assert total.tolist() == [1.0] * 3
    dist.destroy_process_group()
    return "done"


@mpis
def test_processes_that_import_an_mpi_but_have_none_use_the_store(path):
    assert run(2, _singletons, path) == ["done"] * 2


FEW_THREADS_PROGRAM = """
import sys, warnings
import mpi4py
mpi4py.rc.thread_level = "serialized"
from mpi4py import MPI
import torch.distributed as dist
store = dist.FileStore(sys.argv[1], 1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    dist.init_process_group("ropewalk", store=store, rank=0, world_size=1)
dist.destroy_process_group()
print(*[each.message for each in caught])
"""


@mpis
def test_an_mpi_with_too_few_threads_is_warned_of(path, tmp_path):
    own = {**environment(), "MPI4PY_LIBMPI": _library(path)}
    done = run_command([sys.executable, "-c", FEW_THREADS_PROGRAM, tmp_path / "store"], env=own)
    assert done.returncode == 0, done.stderr
    assert "MPI was initialised below MPI_THREAD_MULTIPLE" in done.stdout


LAZY_PROGRAM = """
from mpi4py import MPI
import numpy as np, torch, ropewalk
comm = ropewalk.Communicator()
conjugate = torch.tensor([1 + 2j, 3 - 1j]).conj()
negated = torch.tensor([1 + 2j, 3 - 1j]).conj().imag[:1]
assert negated.is_neg() and negated.is_contiguous()
assert comm.allreduce(conjugate).tolist() == [1 - 2j, 3 + 1j]
assert comm.allreduce(negated).tolist() == [-2.0]
assert comm.allgather(conjugate).tolist() == [[1 - 2j, 3 + 1j]]
out = torch.zeros(2, dtype=torch.complex64)
comm.allreduce(conjugate, out=out)
assert out.tolist() == [1 - 2j, 3 + 1j]
for refused in conjugate, torch.zeros(2, dtype=torch.complex64).conj():
    try:
        comm.allreduce(out, out=refused)
    except ropewalk.ArgumentError as error:
        assert str(error).startswith("out: a lazily conjugated or negated tensor"), error
    else:
        raise AssertionError("it was taken")
for wrong in conjugate, (conjugate, out), (out, conjugate), negated:
    try:
        ropewalk.ReductionPlan([out, wrong])
    except ropewalk.ArgumentError as error:
        assert "tensors: number 1 is a lazily conjugated or negated tensor" in str(error), error
    else:
        raise AssertionError("it was taken")
with ropewalk.ReductionPlan([out]) as plan:
    try:
        plan.bind(0, conjugate)
    except ropewalk.ArgumentError as error:
        assert "resolve_conj()" in str(error), error
    else:
        raise AssertionError("it was taken")
print("done")
"""


@mpis
def test_communicators_of_arrays_read_lazy_tensors(path):
    """The memory of such tensors holds other numbers than they have."""
    own = {**environment(), "MPI4PY_LIBMPI": _library(path)}
    done = run_command([sys.executable, "-c", LAZY_PROGRAM], env=own)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def _full(rank, size, file):
    """The arena has no room for what the calls need beside the tensors."""
    join("ropewalk", rank, size, file)
    count = 1 << 20
    given = torch.full((count,), float(rank))
    for start in (False, True):
        outputs = [torch.empty(count) for _ in range(size)]
        work = dist.all_gather(outputs, given, async_op=start)
        if start:
            work.wait()
        assert all(torch.all(outputs[each] == each) for each in range(size))
        rows = [torch.full((count,), float(rank)) for _ in range(size)]
        dist.all_to_all(outputs, rows)
        assert all(torch.all(outputs[each] == each) for each in range(size))
        dist.reduce_scatter(outputs[0], rows)
        assert torch.all(outputs[0] == sum(range(size)))
    with pytest.raises(MemoryError):
        ropewalk.torch.empty(16 * count)  # was asked for in communication memory
    dist.destroy_process_group()
    return "done"


def test_lists_are_moved_where_the_arena_is_full():
    # The arena of this process may be there already, with room for all.
    folder = pathlib.Path(__file__).parent
    own = {**environment(), "ROPEWALK_ARENA_BYTES": "8M"}
    own["PYTHONPATH"] += f":{folder}:{folder.parent}"
    program = "import forked, test_formation as test; print(forked.run(2, test._full))"
    done = run_command([sys.executable, "-c", program], env=own)
    assert (done.returncode, done.stdout) == (0, "['done', 'done']\n"), done.stderr
