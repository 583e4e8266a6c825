"""Random calls of torch.distributed are made on two groups, whose results must be the same.

Numbers are small integers in every type, so that no order of summation rounds.
"""

import itertools
import random

import torch
import torch.distributed as dist

R = dist.ReduceOp
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 3, 4), (1000,), (70_001,)]


def tensor_of(shape, dtype, seed, gaps=False):
    """Returns a tensor of small integers. With `gaps` it is every other column of a larger one."""
    generator = torch.Generator().manual_seed(seed)
    if gaps and shape:
        wide = (*shape[:-1], 2 * shape[-1])
        return torch.randint(0, 3, wide, generator=generator).to(dtype)[..., ::2]
    return torch.randint(0, 3, shape, generator=generator).to(dtype)


class Case:
    """A case is one call. It is the same on all ranks except for the elements of the tensors."""

    def __init__(self, draw, rank, size, seed):
        self.rank, self.size, self.seed = rank, size, seed
        self.method = draw.choice(METHODS)
        self.dtype = draw.choice(FLOATS + INTEGERS)
        self.shape = draw.choice(SHAPES)
        self.gaps = draw.random() < 0.2
        self.waits = draw.random() < 0.6
        self.root = draw.randrange(size)
        bits = [R.BAND, R.BOR, R.BXOR] if self.dtype in INTEGERS else []
        self.op = draw.choice([R.SUM, R.PRODUCT, R.MIN, R.MAX, *bits])
        self.counts = [draw.randrange(4) for _ in range(size * size)]
        self.numbers = itertools.count()
        self.dense = False

    def __str__(self):
        return (
            f"{self.method.__name__} {self.dtype} {self.shape} op {self.op} root {self.root} "
            f"gaps {self.gaps} waits {self.waits} seed {self.seed} size {self.size}"
        )

    def new(self, shape=None, rank=None):
        """Makes the next tensor of the case. Each run of the case gets the same tensors."""
        shape = self.shape if shape is None else shape
        rank = self.rank if rank is None else rank
        seed = self.seed * 1000 + rank * 50 + next(self.numbers)
        made = tensor_of(shape, self.dtype, seed, self.gaps)
        return made.contiguous() if self.dense else made

    def several(self):
        return [self.new() for _ in range(self.size)]

    def run(self, group, dense=False):
        """Makes the call and returns the tensors that hold its results. With `dense` the tensors
        have no gaps. That is for Gloo, which takes the elements in the gaps for the tensor's."""
        self.dense = dense
        self.numbers = itertools.count()
        work, results = self.method(self, group, not self.waits)
        if not self.waits:
            work.wait()
        return results


def allreduce(case, group, start):
    tensor = case.new()
    return dist.all_reduce(tensor, case.op, group, async_op=start), [tensor]


def reduce(case, group, start):
    tensor = case.new()
    root = dist.get_global_rank(group, case.root)
    work = dist.reduce(tensor, root, case.op, group, async_op=start)
    return work, [tensor] if case.rank == case.root else []


def broadcast(case, group, start):
    tensor = case.new()
    root = dist.get_global_rank(group, case.root)
    return dist.broadcast(tensor, root, group, async_op=start), [tensor]


def all_gather(case, group, start):
    outputs = case.several()
    return dist.all_gather(outputs, case.new(), group, async_op=start), outputs


def all_gather_single(case, group, start):
    given = case.new((4, *case.shape)).contiguous()
    output = case.new((4 * case.size, *case.shape)).contiguous()
    return dist.all_gather_into_tensor(output, given, group, async_op=start), [output]


def gather(case, group, start):
    outputs = case.several() if case.rank == case.root else None
    root = dist.get_global_rank(group, case.root)
    return dist.gather(case.new(), outputs, root, group, async_op=start), outputs or []


def scatter(case, group, start):
    output = case.new()
    inputs = case.several() if case.rank == case.root else None
    root = dist.get_global_rank(group, case.root)
    return dist.scatter(output, inputs, root, group, async_op=start), [output]


def reduce_scatter_single(case, group, start):
    given = case.new((3 * case.size, *case.shape)).contiguous()
    output = case.new((3, *case.shape)).contiguous()
    return dist.reduce_scatter_tensor(output, given, case.op, group, async_op=start), [output]


def reduce_scatter(case, group, start):
    output = case.new()
    return dist.reduce_scatter(output, case.several(), case.op, group, async_op=start), [output]


def all_to_all_single(case, group, start):
    rest = case.shape[1:]
    sends = [case.counts[case.rank * case.size + other] for other in range(case.size)]
    receives = [case.counts[other * case.size + case.rank] for other in range(case.size)]
    given = case.new((sum(sends), *rest)).contiguous()
    output = case.new((sum(receives), *rest)).contiguous()
    work = dist.all_to_all_single(output, given, receives, sends, group, async_op=start)
    return work, [output]


def all_to_all(case, group, start):
    outputs = case.several()
    return dist.all_to_all(outputs, case.several(), group, async_op=start), outputs


def messages(case, group, start):
    """Sends to the next rank and receives from the one before, in a ring. Both messages are always
    started before either is waited for."""
    following = dist.get_global_rank(group, (case.rank + 1) % case.size)
    before = dist.get_global_rank(group, (case.rank - 1) % case.size)
    tensor, output = case.new().contiguous(), case.new().contiguous()
    if case.size == 1:
        return _Done(), []
    tag = (0, 5, 40_000, 2**31 - 1)[case.counts[0]]
    sent = dist.isend(tensor, following, group, tag=tag)
    received = dist.irecv(output, before, group, tag=tag)
    sent.wait()
    received.wait()
    return _Done(), [output]


def barrier(case, group, start):
    return dist.barrier(group, async_op=start), []


class _Done:
    def wait(self):
        pass


METHODS = [
    allreduce,
    reduce,
    broadcast,
    all_gather,
    all_gather_single,
    gather,
    scatter,
    reduce_scatter_single,
    reduce_scatter,
    all_to_all_single,
    all_to_all,
    messages,
    barrier,
]


def make_cases(count, seed, rank, size):
    draw = random.Random(seed)
    return [Case(draw, rank, size, seed + number) for number in range(count)]
