"""FSDP of torch's first kind trains as it does with Gloo."""

import warnings

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def _trained(rank, size, file, backend):
    join(backend, rank, size, file)
    torch.manual_seed(3)
    layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the class's age, and of the CPU
        model = FullyShardedDataParallel(layers, device_id=torch.device("cpu"))
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        torch.manual_seed(10 * step + rank)
        steps.zero_grad()
        model(torch.randn(8, 16)).square().mean().backward()
        steps.step()
    with FullyShardedDataParallel.summon_full_params(model):
        weights = [each.detach().clone() for each in model.parameters()]
    dist.destroy_process_group()
    return [each.tolist() for each in weights]


def test_fully_sharded_training_gives_the_weights_of_gloo():
    ours, theirs = (run(2, _trained, backend) for backend in ("ropewalk", "gloo"))
    for rank in range(2):
        for own, other in zip(ours[rank], theirs[rank], strict=True):
            torch.testing.assert_close(torch.tensor(own), torch.tensor(other))
