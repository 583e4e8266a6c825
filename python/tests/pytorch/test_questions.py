"""These tests are about what torch's own utilities ask of a group and of the backend of a device:
checkpoints, FSDP's memory, and averages that nobody has."""

import warnings

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint  # imported here, since else each rank would import it
from forked import join, run
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import ropewalk
from ropewalk import UnsupportedError


def _asked(rank, size, file):
    join("ropewalk", rank, size, file)
    group = dist.group.WORLD
    backend = group._get_backend(torch.device("cpu"))
    assert backend.name() == "ropewalk"
    assert (backend.rank(), backend.size()) == (rank, size)
    assert not (backend.supports_splitting or backend.supports_coalescing)
    assert not (backend.supports_shrinking or backend.supports_time_estimate)
    with pytest.raises(RuntimeError, match="device: cuda:1, expected the CPU"):
        group._get_backend(torch.device("cuda:1"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls it deprecated, and uses it
        assert distributed_c10d._get_pg_default_device() == torch.device("cpu")
    assert distributed_c10d._device_capability() == ["cpu"]
    made = backend.allocate_tensor(300, dtype=torch.bfloat16, device=torch.device("cpu"))
    assert (made.shape, made.dtype) == ((300,), torch.bfloat16)
    assert ropewalk.inspect(made.view(torch.uint8).numpy()).peers_can_map
    dist.destroy_process_group()


def test_what_torch_asks_of_the_backend_of_a_device():
    run(2, _asked)


def _saved(rank, size, file, folder):
    join("ropewalk", rank, size, file)
    state = {"weights": torch.arange(5.0) + 1}
    dist.checkpoint.async_save(state, checkpoint_id=folder).result()
    loaded = {"weights": torch.zeros(5)}
    dist.checkpoint.load(loaded, checkpoint_id=folder)
    assert torch.equal(loaded["weights"], state["weights"])
    dist.destroy_process_group()


def test_checkpoints_are_saved_in_the_background(tmp_path):
    run(2, _saved, str(tmp_path / "checkpoint"))


def _gathered(rank, size, file):
    join("ropewalk", rank, size, file)
    torch.manual_seed(3)
    model = torch.nn.Linear(6, 4)
    reference = torch.nn.Linear(6, 4)
    reference.load_state_dict(model.state_dict())
    fully_shard(model, mesh=init_device_mesh("cpu", (size,)))
    model.set_allocate_memory_from_process_group_for_comm(True)
    given = torch.arange(12.0).view(2, 6)
    model(given).sum().backward()
    reference(given).sum().backward()
    gradient = model.weight.grad.full_tensor()
    torch.testing.assert_close(gradient, reference.weight.grad)
    dist.destroy_process_group()


def test_fsdp_takes_communication_memory():
    run(2, _gathered)


def _averages(rank, size, file):
    """An average of integers has no value of their type, and Gloo refuses it, too."""
    join("ropewalk", rank, size, file)
    op = dist.ReduceOp.AVG
    for dtype in (torch.int64, torch.uint8, torch.bool):
        given, out = torch.ones(2 * size).to(dtype), torch.ones(2).to(dtype)
        for call in (
            lambda given=given: dist.all_reduce(given, op),
            lambda given=given: dist.reduce(given, 0, op),
            lambda given=given, out=out: dist.reduce_scatter_tensor(out, given, op),
            lambda given=given: dist.all_reduce(given.to_sparse(), op),
        ):
            with pytest.raises(UnsupportedError, match=f"op: AVG of {dtype}, expected floating"):
                call()
        assert torch.equal(given, torch.ones_like(given))
    for dtype in (torch.float16, torch.complex64):
        mean = torch.full((3,), 2.0 * rank).to(dtype)
        dist.all_reduce(mean, op)
        assert mean.tolist() == [size - 1.0] * 3
    dist.destroy_process_group()


def test_averages_of_integers_are_refused():
    run(2, _averages)


def _reduce_scatter(rank, size, file):
    """The result may lie in what is sent; what does not fit is an error of every rank."""
    join("ropewalk", rank, size, file)
    count = 200_000  # in communication memory, where ranks read each other's tensors
    for start in (False, True):
        for output_at in range(size):
            given = ropewalk.torch.empty(count * size)
            torch.arange(float(count * size), out=given).add_(rank)
            output = given[count * output_at :][:count]
            expected = size * (torch.arange(float(count)) + count * rank) + sum(range(size))
            work = dist.reduce_scatter_tensor(output, given, async_op=start)
            if start:
                work.wait()
            assert torch.equal(output, expected)
    gaps = torch.stack([torch.arange(4.0), torch.full((4,), 9.0)], dim=1)[:, 0]
    output = torch.zeros(2)
    dist.reduce_scatter_tensor(output, gaps)
    assert output.tolist() == [size * (2.0 * rank), size * (2.0 * rank + 1)]
    with pytest.raises(ropewalk.ArgumentError, match="input: 3 elements, expected 2 times"):
        dist.reduce_scatter_tensor(torch.zeros(2), torch.zeros(3))
    with pytest.raises(ropewalk.ArgumentError, match=r"output: 2 elements of torch\.float64"):
        dist.reduce_scatter_tensor(torch.zeros(2, dtype=torch.float64), torch.zeros(4))
    dist.destroy_process_group()


def test_reduce_scatter_of_what_is_not_plain():
    run(2, _reduce_scatter)


def _other_types(rank, size, file):
    """Numbers are not taken for those of another type, nor converted to it without a word. These
    calls are made of the group, since torch.distributed checks types in its own."""
    join("ropewalk", rank, size, file)
    group = dist.group.WORLD
    given = torch.arange(2 * size, dtype=torch.int32)
    with pytest.raises(ropewalk.ArgumentError, match=r"output: torch\.float32, .* torch\.int32"):
        group.alltoall_base(torch.empty(2 * size), given, [], [])
    parts = [torch.ones(3) for _ in range(size)]
    parts[1] = parts[1].double() / 3
    with pytest.raises(ropewalk.ArgumentError, match=r"inputs: torch\.float64, .* torch\.float32"):
        group.reduce_scatter(torch.empty(3), parts)
    # What one rank alone gets wrong is an error of the other.
    received = torch.empty(size, dtype=torch.float32 if rank == 0 else torch.int32)
    error = r"output: torch\.float32" if rank == 0 else "refused there"
    with pytest.raises(ropewalk.ArgumentError, match=error):
        group.alltoall_base(received, given[:size], [], []).wait()
    dist.destroy_process_group()


def test_tensors_of_other_types_are_refused():
    run(2, _other_types)
