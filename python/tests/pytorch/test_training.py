"""These tests train with what PyTorch builds on a process group. The weights must be Gloo's."""

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch._dynamo  # imported here, since else each rank would import it
import torch.distributed as dist
from forked import join, run
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from ropewalk.torch.hooks import Bfloat16, average_as_bfloat16


def _model():
    torch.manual_seed(7)
    layers = [torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64)]
    return torch.nn.Sequential(*layers, torch.nn.Tanh(), torch.nn.Linear(64, 3))


class _Numbers(torch.utils.data.Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 48

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(1000 * self.rank + index)
        return torch.randn(20, generator=generator), torch.randn(3, generator=generator)


def _train(model, optimizer, rank, workers=0):
    loader = torch.utils.data.DataLoader(
        _Numbers(rank), batch_size=8, num_workers=workers, multiprocessing_context=_fork(workers)
    )
    for given, wanted in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(given), wanted).backward()
        optimizer.step()


def _fork(workers):
    return "fork" if workers else None


def _weights(model):
    """Returns the weights of the whole model on every rank."""
    return [
        each.full_tensor().detach() if isinstance(each, DTensor) else each.detach()
        for each in model.parameters()
    ]


# These objects live as long as their process. Gloo's group waits for its threads when the last
# model that uses it is destroyed, and the threads may wait for the interpreter's lock.
_alive = []


def _ddp(rank, size, file, backend, workers):
    join(backend, rank, size, file)
    model = DistributedDataParallel(_model(), bucket_cap_mb=0.01, gradient_as_bucket_view=True)
    if backend == "gloo":
        _alive.append(model)
    _train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank, workers)
    weights = _weights(model)
    dist.destroy_process_group()
    return weights


def _zero(rank, size, file, backend):
    join(backend, rank, size, file)
    model = DistributedDataParallel(_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    if backend == "gloo":
        _alive.append((model, optimizer))
    _train(model, optimizer, rank)
    weights = _weights(model)
    dist.destroy_process_group()
    return weights


def _fsdp(rank, size, file, backend):
    join(backend, rank, size, file)
    mesh = init_device_mesh("cpu", (size,))
    model = _model()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    _train(model, torch.optim.Adam(model.parameters(), lr=0.01), rank)
    weights = _weights(model)
    dist.destroy_process_group()
    return weights


def _same_weights(body, size, *arguments):
    ours = run(size, body, "ropewalk", *arguments)
    expected = run(size, body, "gloo", *arguments)
    for weights in ours[1:]:
        assert all(torch.equal(one, other) for one, other in zip(weights, ours[0], strict=True))
    for one, other in zip(ours[0], expected[0], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    start = _model().parameters()
    assert not any(torch.equal(one, old) for one, old in zip(ours[0], start, strict=True))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ddp(size):
    _same_weights(_ddp, size, 0)


def test_ddp_beside_a_data_loader_that_forks():
    _same_weights(_ddp, 2, 2)


def test_zero_redundancy_optimizer():
    _same_weights(_zero, 3)


def test_fsdp2():
    _same_weights(_fsdp, 2)


class _Constant(torch.nn.Module):
    """The gradient of this model is the same in every step, and bfloat16 cannot hold it exactly."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1000))

    def forward(self, gradient):
        return (self.weight * gradient).sum()


def _compressed(rank, size, file):
    join("ropewalk", rank, size, file)
    model = DistributedDataParallel(_Constant())
    model.register_comm_hook(Bfloat16(), average_as_bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    # Each element comes from one of the ranks, so that their sum rounds nothing.
    whole = torch.linspace(1.001, 1.9, 1000)
    gradient = torch.where(torch.arange(1000) % size == rank, whole, 0)
    steps = 65
    for _ in range(steps):
        optimizer.zero_grad()
        model(gradient).backward()
        optimizer.step()
    error = (model.module.weight * size + steps * whole).abs() / whole
    assert not torch.equal(gradient.bfloat16().float(), gradient)
    dist.destroy_process_group()
    return float(error.max())


def test_gradients_as_bfloat16_lose_nothing_for_good():
    # The sum of all steps lacks what was kept back at last, which is half a unit of bfloat16 at 1,
    # and a little for sums in float32. If nothing were kept back, some elements would lack 65 times
    # as much.
    assert max(run(2, _compressed)) < 2 * 2**-8


def _infinite(rank, size, file):
    """The gradient has an infinity and no number in one step, as a scaler of gradients may make
    them, and none in the steps after."""
    join("ropewalk", rank, size, file)
    model = DistributedDataParallel(_Constant())
    model.register_comm_hook(Bfloat16(), average_as_bfloat16)
    found = []
    for step in range(4):
        gradient = torch.full((1000,), 1.5)
        if step == 1 and rank == 0:
            gradient[:3] = torch.tensor([float("inf"), -float("inf"), float("nan")])
        model.zero_grad()
        model(gradient).backward()
        found.append(model.module.weight.grad.clone())
    dist.destroy_process_group()
    return found


def test_an_infinite_gradient_is_not_kept():
    for found in run(2, _infinite):
        whole = torch.full((1000,), 1.5)
        assert torch.equal(found[0], whole)
        assert not torch.isfinite(found[1][:3]).any()  # they are told, so that the step is skipped
        assert torch.equal(found[1][3:], whole[3:])
        assert all(torch.equal(later, whole) for later in found[2:])


def _dtensor(rank, size, file):
    join("ropewalk", rank, size, file)
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
    torch.manual_seed(3)
    left, right = torch.randn(16, 12), torch.randn(12, 8)
    one = distribute_tensor(left, mesh, [Shard(0), Replicate()])
    other = distribute_tensor(right, mesh, [Replicate(), Shard(1)])
    torch.testing.assert_close((one @ other).full_tensor(), left @ right)
    inner = distribute_tensor(left, mesh, [Replicate(), Shard(1)])
    outer = distribute_tensor(right, mesh, [Replicate(), Shard(0)])
    torch.testing.assert_close((inner @ outer).full_tensor(), left @ right)
    moved = one.redistribute(mesh, [Shard(1), Shard(0)])
    torch.testing.assert_close(moved.full_tensor(), left)
    dist.destroy_process_group()


def test_dtensor_on_a_mesh_of_two_axes():
    run(4, _dtensor)
