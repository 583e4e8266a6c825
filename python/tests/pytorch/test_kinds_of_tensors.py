"""These tests are about tensors that Gloo does not take, or takes in another form than dense
memory: 8-bit floating point, and sparse tensors."""

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run

from ropewalk import ArgumentError, UnsupportedError

SHORT_FLOATS = [
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
]


def _every_byte(dtype, rank):
    """Returns a tensor of all 256 bit patterns, of which some are no numbers, in an order that
    depends on the rank. It is every other column of a larger tensor."""
    wide = torch.zeros(16, 32, dtype=torch.uint8)
    wide[:, ::2] = (torch.arange(256) + 37 * rank).to(torch.uint8).view(16, 16)
    return wide.view(dtype)[:, ::2]


def _same(found, dtype, rank):
    """Compares bits, since what is no number equals nothing."""
    wanted = _every_byte(dtype, rank).contiguous().view(torch.uint8)
    return torch.equal(found.contiguous().view(torch.uint8).reshape(16, 16), wanted)


def _moved(rank, size, file):
    join("ropewalk", rank, size, file)
    before, following = (rank - 1) % size, (rank + 1) % size
    for dtype in SHORT_FLOATS:
        own = _every_byte(dtype, rank)
        outputs = [torch.empty(16, 16, dtype=dtype) for _ in range(size)]
        dist.all_gather(outputs, own)
        assert all(_same(outputs[each], dtype, each) for each in range(size))
        whole = torch.empty(16 * size, 16, dtype=dtype)
        dist.all_gather_into_tensor(whole, own.contiguous())
        assert all(_same(whole[16 * each :][:16], dtype, each) for each in range(size))
        given = _every_byte(dtype, rank)
        dist.broadcast(given, size - 1)
        assert _same(given, dtype, size - 1)
        outputs = [torch.empty(16, 16, dtype=dtype) for _ in range(size)]
        dist.gather(own, outputs if rank == 1 else None, 1)
        assert rank != 1 or all(_same(outputs[each], dtype, each) for each in range(size))
        output = torch.empty(16, 16, dtype=dtype)
        parts = [_every_byte(dtype, 5 + each) for each in range(size)]
        dist.scatter(output, parts if rank == 0 else None, 0, async_op=True).wait()
        assert _same(output, dtype, 5 + rank)
        received = torch.empty(16 * size, 16, dtype=dtype)
        dist.all_to_all_single(received, own.contiguous().repeat(size, 1))
        assert all(_same(received[16 * each :][:16], dtype, each) for each in range(size))
        message = torch.empty(16, 16, dtype=dtype)
        works = [dist.irecv(message, before), dist.isend(own.contiguous(), following)]
        for work in works:
            work.wait()
        assert _same(message, dtype, before)
        with pytest.raises(UnsupportedError, match="convert the tensor"):
            dist.all_reduce(own.contiguous())
    dist.destroy_process_group()
    return "done"


def test_short_floats_are_moved_bit_by_bit_but_not_reduced():
    assert run(3, _moved) == ["done"] * 3


def _sparse_of(rank, seed):
    """Returns a sparse tensor, in which an element may occur several times, and its dense form.
    Ranks have different numbers of elements, and some have none."""
    generator = torch.Generator().manual_seed(seed * 10 + rank)
    count = 0 if seed % 3 == rank else int(torch.randint(1, 40, (1,), generator=generator))
    indices = torch.stack([torch.randint(n, (count,), generator=generator) for n in (5, 7)])
    values = torch.randint(-4, 5, (count, 2), generator=generator).double()
    made = torch.sparse_coo_tensor(indices, values, (5, 7, 2))
    return made, made.to_dense()


def _sparse(rank, size, file):
    join("ropewalk", rank, size, file)
    for seed in range(12):
        total = sum(_sparse_of(each, seed)[1] for each in range(size))
        given = _sparse_of(rank, seed)[0]
        if seed % 2:
            dist.all_reduce(given)
        else:
            dist.all_reduce(given, async_op=True).wait()
        assert given.is_sparse
        assert torch.equal(given.to_dense(), total)
        given = _sparse_of(rank, seed)[0]
        dist.all_reduce(given, dist.ReduceOp.AVG)
        torch.testing.assert_close(given.to_dense(), total / size)
    empty = torch.sparse_coo_tensor(size=(3, 4))
    dist.all_reduce(empty)
    assert empty.shape == (3, 4)
    assert torch.count_nonzero(empty.to_dense()) == 0
    with pytest.raises(UnsupportedError, match="expected SUM or AVG"):
        dist.all_reduce(_sparse_of(rank, 0)[0], dist.ReduceOp.MAX)
    with pytest.raises(ArgumentError, match="same shape"):
        dist.all_reduce(torch.sparse_coo_tensor(size=(3, 4 + rank)))
    dist.destroy_process_group()
    return "done"


def test_sparse_tensors_are_added_up():
    assert run(3, _sparse) == ["done"] * 3
