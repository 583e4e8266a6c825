"""These tests are about what a caller may ask of the process group itself, as of torch's own."""

from datetime import timedelta

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run


def _short(rank, size, file, backend):
    """Makes calls without options. Returns what they give."""
    join(backend, rank, size, file)
    group, op, time = dist.group.WORLD, dist.ReduceOp.MAX, timedelta(seconds=50)

    def new(count=2):
        return torch.arange(float(count)) + rank

    def several():
        return [new() + 10 * each for each in range(size)]

    # Each has one call, because Gloo may make several at the same time.
    one, two, three, four, five, zero = *(new() for _ in range(5)), torch.tensor(3.0 + rank)
    root, outs, out, mine, most = new(), several(), new(), new(), new()
    swapped = torch.zeros(size)
    lists, named, rooted = several(), several(), several()
    gathered = outs if rank == 1 else []
    works = [
        group.broadcast(one, 1),
        group.broadcast(four, root=0, timeout=time),
        group.reduce(root, 1, op, time),
        group.gather(gathered, new(), 1),
        group.gather(rooted if rank == 0 else [], new(), root=0),
        group.scatter(out, several() if rank == 0 else [], 0),
        group.barrier(time),
        group.barrier(timeout=time),
        group.allgather(lists, new()),
        group.allgather(named, new(), timeout=time),
        group.reduce_scatter(mine, several()),
        group.reduce_scatter(most, several(), op=op),
        group.allreduce(two, op=op),
        group.allreduce([three], op, time),
        group.allreduce(zero),
        group.allreduce(tensors=[five], opts=dist.AllreduceOptions()),
        group.alltoall_base(swapped, new(size), [], [], time),
    ]
    for work in works:
        work.wait()
    assert isinstance(group.get_group_store(), dist.Store)
    before = group._get_sequence_number_for_group()
    dist.all_reduce(one)
    assert group._get_sequence_number_for_group() == before + 1
    dist.destroy_process_group()
    roots = [root] if rank == 1 else []
    tensors = [one, two, three, four, five, zero, *roots, *gathered, out, mine, most, swapped]
    return [each.tolist() for each in (*tensors, *lists, *named, *rooted)]


@pytest.mark.parametrize("size", [2, 3])
def test_short_forms_give_what_gloo_gives(size):
    ours = run(size, _short, "ropewalk")
    assert ours == run(size, _short, "gloo")
