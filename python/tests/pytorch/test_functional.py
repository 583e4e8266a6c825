"""These tests compare every functional collective, an operator of torch, with Gloo's."""

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives  # imported here, since else each rank would do it
from forked import join, run

OPS = torch.ops._c10d_functional
OF_AUTOGRAD = torch.ops._c10d_functional_autograd
# A torch without it has no operator either that it would serve (ropewalk/torch/functional.py).
needs_kernels = pytest.mark.skipif(
    not hasattr(torch.library, "get_kernel"), reason="torch has no torch.library.get_kernel"
)


def _tensor(rank, add=0):
    return torch.arange(12.0).view(6, 2) + 10 * rank + add


def _into_given(rank, size, name):
    """Returns the calls whose result goes into a tensor of the caller's."""

    def gathered(out):
        return [OPS.all_gather_into_tensor_out(_tensor(rank), size, name, out=out), out]

    def scattered():
        out = torch.zeros(6 // size, 2)
        return [OPS.reduce_scatter_tensor_out(_tensor(rank), "sum", size, name, out=out), out]

    def in_place(operator, *arguments):
        tensor = _tensor(rank)
        return [operator(tensor, *arguments, name), tensor]

    def coalesced():
        tensors = [_tensor(rank), _tensor(rank, 1)]
        return [*OPS.all_reduce_coalesced_(tensors, "sum", name), *tensors]

    return [
        lambda: gathered(torch.zeros(6 * size, 2)),
        lambda: gathered(torch.zeros(6 * size, 4)[:, ::2]),
        scattered,
        lambda: in_place(OPS.all_reduce_, "sum"),
        lambda: in_place(OPS.broadcast_, 1),
        coalesced,
    ]


def _made(rank, size, name):
    """Returns the calls that make the tensor of their result."""
    pair = [_tensor(rank), _tensor(rank, 1)]
    sends, receives = ([2, 2], [2, 4]) if rank == 0 else ([4, 4], [2, 4])
    given, halves = torch.arange(float(sum(sends))), [3] * size
    return [
        lambda: [OPS.all_reduce(pair[0], "sum", name)],
        lambda: [OPS.all_reduce(pair[0], "max", name)],
        lambda: OPS.all_reduce_coalesced(pair, "sum", name),
        lambda: [OPS.all_gather_into_tensor(pair[0], size, name)],
        lambda: OPS.all_gather_into_tensor_coalesced(pair, size, name),
        lambda: [OPS.reduce_scatter_tensor(pair[0], "sum", size, name)],
        lambda: OPS.reduce_scatter_tensor_coalesced(pair, "sum", size, name),
        lambda: [OPS.all_to_all_single(given, receives, sends, name)],
        lambda: [OPS.broadcast(pair[0], 1, name)],
        lambda: [OF_AUTOGRAD.all_gather_into_tensor(pair[0], size, name)],
        lambda: [OF_AUTOGRAD.reduce_scatter_tensor(pair[0], "sum", size, name)],
        lambda: [OF_AUTOGRAD.all_to_all_single(pair[0], halves, halves, name)],
        lambda: [torch.ops._dtensor.shard_dim_alltoall(pair[0], 0, 1, name)],
    ]


def _messages(rank, size, name):
    other, zeros = 1 - rank, torch.zeros(6, 2)

    def alone():
        if rank == 0:
            return [OPS.isend(_tensor(rank), 1, 3, name)]
        return [OPS.irecv(zeros, 0, 3, name), zeros]

    def together():
        given = [_tensor(rank), zeros]
        return [*OPS.batch_p2p_ops(["isend", "irecv"], [other] * 2, [5, 5], given, name), zeros]

    return [alone, together]


def _compare(rank, size, file, of):
    join("gloo", rank, size, file)
    expected = of(rank, size, dist.group.WORLD.group_name)
    # From here on there are kernels of ropewalk, which must leave Gloo's group to torch.
    ours = dist.new_group(backend="ropewalk")
    found = of(rank, size, ours.group_name)
    for number, (gloo, call) in enumerate(zip(expected, found, strict=True)):
        one, other = ([OPS.wait_tensor(each) for each in made()] for made in (gloo, call))
        assert [each.tolist() for each in other] == [each.tolist() for each in one], number
    dist.destroy_process_group()


@needs_kernels
def test_results_into_given_tensors_are_those_of_gloo():
    run(2, _compare, _into_given)


def test_made_results_are_those_of_gloo():
    run(2, _compare, _made)


@needs_kernels
def test_messages_are_those_of_gloo():
    run(2, _compare, _messages)


def _compiled(rank, size, file):
    """The group itself may be an argument, and the operator may be traced."""
    join("ropewalk", rank, size, file)
    group = dist.group.WORLD
    expected = torch.cat([_tensor(each) for each in range(size)]).tolist()
    out = torch.zeros(6 * size, 2)
    given = [_tensor(rank), size]
    OPS.wait_tensor(OPS.all_gather_into_tensor_out(*given, group.boxed(), out=out))
    assert out.tolist() == expected

    @torch.compile(backend="aot_eager", fullgraph=True)
    def gather(tensor, out):
        made = OPS.all_gather_into_tensor_out(tensor, size, group.group_name, out=out)
        return OPS.wait_tensor(made) * 2

    assert (gather(_tensor(rank), torch.zeros(6 * size, 2)) / 2).tolist() == expected
    with pytest.raises(ValueError, match="output: 4 elements"):
        OPS.all_gather_into_tensor_out(*given, group.group_name, out=torch.zeros(2, 2))
    dist.destroy_process_group()


@needs_kernels
def test_gathers_into_given_tensors_are_traced():
    run(2, _compiled)
