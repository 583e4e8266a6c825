"""These tests are about tensors that have no elements of their own, or a gradient to come."""

import warnings

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import _functional_collectives as functional
from torch.distributed._functional_collectives import AsyncCollectiveTensor


def _calls(new, rank, size):
    """Yields each call, its tensors of `new`(number of elements, value), and what they then are."""
    last, group = size - 1, dist.group.WORLD
    total = sum(range(size))

    def several(count):
        return [new(count, rank) for _ in range(size)]

    one = new(4, rank)
    yield lambda: dist.all_reduce(one), [one], [total] * 4
    yield lambda: dist.all_reduce(one, dist.ReduceOp.AVG), [one], [total] * 4
    one = new(4, rank)
    yield lambda: group.allreduce_coalesced([one]), [one], [total] * 4
    root = new(4, rank)
    yield lambda: dist.reduce(root, 0), [root] if rank == 0 else [], [total] * 4 * (rank == 0)
    other = new(4, rank)
    yield lambda: dist.broadcast(other, last), [other], [last] * 4
    lists, given = several(1), new(1, rank)
    yield lambda: dist.all_gather(lists, given), lists, list(range(size))
    whole, part = new(size, -1), new(1, rank)
    yield lambda: dist.all_gather_into_tensor(whole, part), [whole], list(range(size))
    outs = several(1)
    yield (
        lambda: dist.gather(given, outs if rank == 0 else None, 0),
        outs if rank == 0 else [],
        list(range(size)) * (rank == 0),
    )
    out = new(2, -1)
    yield lambda: dist.scatter(out, several(2) if rank == last else None, last), [out], [last] * 2
    summed = new(2, -1)
    yield lambda: dist.reduce_scatter(summed, several(2)), [summed], [total] * 2
    dealt, long = new(2, -1), new(2 * size, rank)
    yield lambda: dist.reduce_scatter_tensor(dealt, long), [dealt], [total] * 2
    swapped, rows = new(size, -1), new(size, rank)
    yield lambda: dist.all_to_all_single(swapped, rows), [swapped], list(range(size))
    swaps = several(1)
    yield lambda: dist.all_to_all(swaps, several(1)), swaps, list(range(size))
    received = new(3, -1)
    ring = [
        dist.P2POp(dist.isend, new(3, rank), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
    yield lambda: dist.batch_isend_irecv(ring), [received], [(rank - 1) % size] * 3


def _finish(works):
    for work in works if isinstance(works, list) else [works]:
        if work is not None:
            work.wait()


def _wrapped(rank, size, file):
    join("ropewalk", rank, size, file)

    def new(count, value):
        return AsyncCollectiveTensor(torch.full((count,), float(value)))

    for call, tensors, expected in _calls(new, rank, size):
        _finish(call())
        assert [each for tensor in tensors for each in tensor.tolist()] == expected
    result = functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
    dist.all_reduce(result)
    assert result.tolist() == [size * size] * 3
    dist.destroy_process_group()
    return "done"


def test_results_of_functional_collectives_are_arguments():
    assert run(2, _wrapped) == ["done"] * 2


def _empty(rank, size, file, kind):
    """Such calls do nothing, as with Gloo, so that ranks may even make different ones."""
    join("ropewalk", rank, size, file)

    def new(count, value):
        if kind == "meta":
            return torch.empty(count, device="meta")
        with FakeTensorMode():
            return torch.full((count,), float(value))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of questions for a fake tensor's address
        for call, _, _ in list(_calls(new, rank, size))[rank:]:
            _finish(call())
        dist.all_reduce(new(3, 0), async_op=True).wait()
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total.tolist() == [size] * 2
    dist.destroy_process_group()
    return "done"


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_tensors_without_elements_are_left_alone(kind):
    assert run(2, _empty, kind) == ["done"] * 2


class Opaque(torch.Tensor):
    """Is a wrapper that nobody knows."""

    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        raise NotImplementedError


def _opaque(rank, size, file):
    join("ropewalk", rank, size, file)
    with pytest.raises(ValueError, match="Opaque without memory of its own"):
        dist.all_reduce(Opaque(torch.ones(2)))
    dist.destroy_process_group()
    return "done"


def test_wrappers_that_nobody_knows_are_refused():
    assert run(2, _opaque) == ["done"] * 2


def _parameters(rank, size, file):
    """They are leaves that require a gradient, and columns come before rows in their memory."""
    join("ropewalk", rank, size, file)

    def new(count, value):
        made = torch.full((1, 2, count, 1), float(value))
        made = made.to(memory_format=torch.channels_last)
        return torch.nn.Parameter(made)

    def flat(count, value):
        return torch.nn.Parameter(torch.full((count, 2), float(value))[:, 0])

    for make in (new, flat):
        one = make(4, rank)
        dist.all_reduce(one)
        assert torch.all(one == sum(range(size)))
        dist.all_reduce(one, dist.ReduceOp.AVG, async_op=True).wait()
        assert torch.all(one == sum(range(size)))
        dist.broadcast(one, 1)
        assert one.grad_fn is None and one.requires_grad
        one.sum().backward()
        assert torch.all(one.grad == 1)
    for call, tensors, expected in _calls(flat, rank, size):
        _finish(call())
        assert [each for tensor in tensors for each in tensor.tolist()] == expected
    dense = torch.nn.Parameter(torch.full((3,), 2.0 * rank))
    dist.all_reduce(dense, dist.ReduceOp.AVG)
    assert dense.tolist() == [size - 1.0] * 3
    dist.destroy_process_group()
    return "done"


def test_parameters_of_any_layout_are_written():
    assert run(2, _parameters) == ["done"] * 2
