"""torch.compile breaks its graph at calls of the backend, as at those of Gloo."""

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run
from torch import nn


def _started(given):
    given = given + 0
    dist.all_reduce(given, async_op=True).wait()
    return given + 1


def _broadcast(given):
    given = given + 0
    dist.broadcast(given, 0)
    return given + 1


def _message(given):
    given = given + 0
    if dist.get_rank() == 0:
        dist.send(given, 1)
    elif dist.get_rank() == 1:
        dist.recv(given, 0)
    return given + 1


def _gathered(given):
    parts = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, given)
    return sum(parts)


def _compiled(rank, size, file, early):
    """`early`: torch.compile has been used before there is a group."""
    if early:
        torch.compile(torch.sin, backend="eager")(torch.ones(1))
    join("ropewalk", rank, size, file)
    given = torch.arange(4.0) + rank
    for function in (_started, _broadcast, _message, _gathered):
        expected = function(given)
        torch._dynamo.reset()
        assert torch.equal(torch.compile(function, backend="aot_eager")(given), expected)
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
    for _ in range(2):
        torch.compile(model, backend="aot_eager")(given.repeat(1, 2)).sum().backward()
    dist.destroy_process_group()
    return "done"


@pytest.mark.parametrize("early", [False, True])
def test_compiled_functions_make_calls(early):
    assert run(2, _compiled, early) == ["done"] * 2
