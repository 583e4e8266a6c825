"""These tests compare every call of torch.distributed with Gloo's."""

import sys

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from cases import make_cases
from forked import join, run

SEED = 20261123


def _compare(rank, size, file, count, seed):
    """Compares our calls with Gloo's, on all ranks and on some of them. Asynchronous calls must
    keep their order among the others. Returns which calls were made."""
    join("gloo", rank, size, file)
    some = [each for each in range(size) if each % 2 == 0]
    groups = [(dist.group.WORLD, dist.new_group(backend="ropewalk"), rank, size)]
    parts = (dist.new_group(some), dist.new_group(some, backend="ropewalk"))
    if rank in some:
        groups.append((*parts, some.index(rank), len(some)))
    made = set()
    for gloo, ours, own, number in groups:
        for case in make_cases(count, seed, own, number):
            expected = case.run(gloo, dense=True)
            found = case.run(ours)
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                if not torch.equal(one, other):  # a plain assert would print all elements
                    raise AssertionError(f"{case}: {(one != other).sum()} elements differ")
            made.add(case.method.__name__)
    dist.destroy_process_group()
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_random_calls_give_what_gloo_gives(size):
    made = run(size, _compare, 150 if size < 4 else 60, SEED + size)
    assert len(made[0]) == 13


def _in_order(rank, size, file):
    """Many calls are started before any is waited for, and some are not started."""
    join("ropewalk", rank, size, file)
    tensors = [torch.full((1000 * (i % 7),), float(rank + i)) for i in range(60)]
    works = []
    for i, tensor in enumerate(tensors):
        work = dist.all_reduce(tensor, async_op=i % 3 != 0)
        works.append(work)
    for work in works:
        if work is not None:
            work.wait()
            assert work.is_completed()
    ranks = sum(range(size))
    for i, tensor in enumerate(tensors):
        assert torch.all(tensor == ranks + size * i)
    dist.destroy_process_group()


def test_started_calls_keep_their_order():
    run(3, _in_order)


def _other_types(rank, size, file):
    """Tries types and operations that Gloo lacks, or that give something else with Gloo."""
    join("ropewalk", rank, size, file)
    for dtype in (torch.complex64, torch.complex128):
        tensor = torch.tensor([1 + 2j, rank * 1j], dtype=dtype)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [size * (1 + 2j), sum(range(size)) * 1j]
        conjugate = torch.tensor([1 + 2j], dtype=dtype).conj()
        dist.group.WORLD.allreduce([conjugate], dist.AllreduceOptions()).wait()
        assert conjugate.tolist() == [size * (1 - 2j)]
    flags = torch.tensor([True, False, rank == 0])
    dist.all_reduce(flags, dist.ReduceOp.SUM)
    assert flags.tolist() == [True, False, True]
    flags = torch.tensor([True, False, rank == 0])
    dist.all_reduce(flags, dist.ReduceOp.MIN)
    assert flags.tolist() == [True, False, False]
    for dtype in (torch.float32, torch.bfloat16):
        for start in (False, True):
            mean = torch.full((3,), 2.0 * rank, dtype=dtype)
            work = dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=start)
            if start:
                work.wait()
            assert mean.tolist() == [size - 1.0] * 3
    by = dist._make_nccl_premul_sum(0.5)
    halves = torch.full((4,), 2.0 * (rank + 1))
    dist.all_reduce(halves, by)
    assert halves.tolist() == [size * (size + 1) / 2] * 4
    large = torch.full((3,), 2**40 + rank, dtype=torch.int64)
    dist.all_reduce(large, dist.ReduceOp.MAX)
    assert large.tolist() == [2**40 + size - 1] * 3
    small = torch.arange(8, dtype=torch.float32).to(torch.float8_e4m3fn)
    dist.broadcast(small, 0)  # this type is moved, not reduced
    with pytest.raises(NotImplementedError, match="float8_e4m3fn cannot be reduced"):
        dist.all_reduce(small)
    with pytest.raises(NotImplementedError, match="BAND"):
        dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND)
    dist.destroy_process_group()


def test_types_and_operations_beyond_gloo():
    run(3, _other_types)


def _coalesced(rank, size, file):
    join("ropewalk", rank, size, file)
    with dist._coalescing_manager(async_ops=True) as manager:
        tensors = [torch.full((n,), float(rank)) for n in (1, 10, 1000)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in tensors:
        assert torch.all(tensor == sum(range(size)))
    outputs = [torch.empty(size * n) for n in (2, 30)]
    inputs = [torch.full((n,), float(rank)) for n in (2, 30)]
    with dist._coalescing_manager():
        for output, given in zip(outputs, inputs, strict=True):
            dist.all_gather_into_tensor(output, given)
    for output in outputs:
        assert output.view(size, -1)[:, 0].tolist() == list(range(size))
    outputs = [torch.empty(n) for n in (2, 30)]
    inputs = [torch.arange(float(size * n)) for n in (2, 30)]
    with dist._coalescing_manager():
        for output, given in zip(outputs, inputs, strict=True):
            dist.reduce_scatter_tensor(output, given)
    for output, given in zip(outputs, inputs, strict=True):
        assert torch.equal(output, size * given.view(size, -1)[rank])
    # This call is in place, because the input is this rank's part of the output.
    whole = torch.zeros(5 * size)
    part = whole[5 * rank : 5 * rank + 5]
    part.fill_(rank + 1.0)
    dist.all_gather_into_tensor(whole, part)
    assert whole[::5].tolist() == [each + 1.0 for each in range(size)]
    dist.destroy_process_group()


def test_coalesced_calls_and_calls_in_place():
    run(2, _coalesced)


def _objects(rank, size, file):
    join("ropewalk", rank, size, file)
    told = [None] * size
    dist.all_gather_object(told, {"rank": rank, "text": "x" * (100 * rank)})
    assert [each["rank"] for each in told] == list(range(size))
    given = [f"from {rank}", rank]
    dist.broadcast_object_list(given, src=size - 1)
    assert given == [f"from {size - 1}", size - 1]
    if rank == 0:
        tensor = torch.empty(3)
        sources = {dist.recv(tensor) for _ in range(size - 1)}
        assert sources == set(range(1, size))
    else:
        dist.send(torch.full((3,), float(rank)), 0)
    work = dist.all_reduce(torch.ones(2), async_op=True)
    future = work.get_future()
    assert future.wait()[0].tolist() == [size, size]
    dist.destroy_process_group()


def test_objects_any_source_and_futures():
    run(3, _objects)


def _isend_then_barrier(rank, size, file):
    """A message moves although its sender is busy with something else."""
    join("ropewalk", rank, size, file)
    tensor = torch.full((3_000_000,), float(rank))
    if rank == 0:
        sent = dist.isend(tensor, 1)
        dist.barrier()
        sent.wait()
    else:
        dist.recv(tensor, 0)
        assert torch.all(tensor == 0)
        dist.barrier()
    dist.destroy_process_group()


def test_a_message_needs_no_wait_of_its_sender():
    run(2, _isend_then_barrier)


def _lazy(rank, size, file):
    """The memory holds other numbers than these tensors: torch negates when it reads."""
    join("ropewalk", rank, size, file)
    negated = torch.tensor([complex(1, rank + 1)]).conj().imag
    assert negated.is_neg() and negated.is_contiguous()
    dist.all_reduce(negated, dist.ReduceOp.MAX)
    assert negated.tolist() == [-1.0]
    received = torch.zeros(1, dtype=torch.complex64).conj().imag
    whole = torch.zeros(size, dtype=torch.complex64).conj().imag
    dist.all_gather_into_tensor(whole, torch.tensor([rank + 5.0]))
    assert whole.tolist() == [5.0 + each for each in range(size)]
    if rank == 0:
        dist.send(torch.tensor([3.0]), 1)
    elif rank == 1:
        dist.recv(received, 0)
        assert received.tolist() == [3.0]
    # The factor would make a number of another type, so each rank refuses.
    for call in (dist.all_reduce, lambda given, op: dist.reduce(given, 0, op)):
        with pytest.raises(RuntimeError):
            call(torch.ones(4, dtype=torch.int64), dist._make_nccl_premul_sum(0.5))
    group = dist.group.WORLD
    with pytest.raises(ValueError, match=r"float64, expected torch\.float32"):
        mixed = [torch.ones(1, dtype=torch.float64), *[torch.ones(1)] * (size - 1)]
        group.alltoall(mixed, [torch.ones(1)] * size, dist.AllToAllOptions())
    # The input lies where another rank's part comes to lie.
    shared = torch.zeros(2 * size)
    given = shared[2 * ((rank + 1) % size) :][:2]
    given.fill_(rank + 1.0)
    outputs = list(shared.split(2))
    dist.all_gather(outputs, given)
    assert shared.tolist() == [1.0 + each // 2 for each in range(2 * size)]
    dist.destroy_process_group()


def test_what_memory_alone_does_not_tell():
    run(2, _lazy)


def _nested(rank, size, file):
    """What follows a future makes another call of the group, and waits for it."""
    join("ropewalk", rank, size, file)

    def again(future):
        total = future.value()[0].clone()
        dist.all_reduce(total, async_op=True).get_future().wait()
        return total

    for _ in range(20):
        first = dist.all_reduce(torch.ones(3), async_op=True).get_future()
        assert first.then(again).wait().tolist() == [size * size] * 3
    held = torch.ones(10)
    references = sys.getrefcount(held)
    for _ in range(3):
        dist.all_reduce(held, async_op=True).wait()
    dist.destroy_process_group()
    assert sys.getrefcount(held) <= references
    return "done"


def test_what_follows_a_call_may_make_another():
    assert run(2, _nested) == ["done"] * 2


def _odd_calls(rank, size, file, backend):
    """Makes valid calls with tensors and arguments that programs seldom have. Returns what they
    give, as lists."""
    join(backend, rank, size, file)
    whole = torch.arange(12.0).reshape(3, 4) + rank
    for call, part in (
        (dist.all_reduce, whole[1:, 1:3].t()),  # has an offset, gaps, and columns before rows
        (lambda tensor: dist.broadcast(tensor, size - 1), whole[:, 3]),
    ):
        # Gloo takes the elements in the gaps for the tensor's.
        given = part.clone(memory_format=torch.contiguous_format) if backend == "gloo" else part
        call(given)
        part.copy_(given)
    flipped = (torch.arange(4.0) + rank).reshape(1, 2, 2, 1).to(memory_format=torch.channels_last)
    dist.all_reduce(flipped)
    leaf = torch.full((2,), 1.0 + rank, requires_grad=True)
    gathered = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(gathered, leaf)
    dist.all_reduce(torch.empty(3, 0))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "list": [1] * rank})
    listed = ["first", rank] if rank == 0 else [None, None]
    dist.broadcast_object_list(listed, 0)
    dealt = [None]
    dist.scatter_object_list(dealt, [(each,) for each in range(size)] if rank == 0 else None, 0)
    received = torch.zeros(3)
    ring = [
        dist.P2POp(dist.isend, torch.full((3,), float(rank)), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    alone = [dist.new_group([each]) for each in range(size)][rank]
    single = torch.full((2,), 3.0 + rank)
    dist.all_reduce(single, group=alone)
    pair = torch.full((2,), 5.0 + rank)
    if rank < 2:
        group = dist.new_group([0, 1], use_local_synchronization=True)
        dist.all_reduce(pair, group=group)
    dist.barrier(device_ids=[0])
    tensors = [whole, flipped, *gathered, received, single, pair]
    assert dist.get_backend() == backend
    dist.destroy_process_group()
    with pytest.raises((AssertionError, ValueError)):
        dist.destroy_process_group()
    return [each.tolist() for each in tensors], objects, listed, dealt


@pytest.mark.parametrize("size", [2, 3])
def test_odd_calls_give_what_gloo_gives(size):
    assert run(size, _odd_calls, "ropewalk") == run(size, _odd_calls, "gloo")
