"""These tests look at what torch's profiler shows of the calls of a group."""

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run


def _shown(call, prefix):
    """Returns the names and the shapes of what the profiler shows of the backend in a call."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        call()
    return [
        (event.name.removeprefix(prefix), event.input_shapes)
        for event in profile.events()
        if event.name.startswith(prefix)
    ]


def _calls(group, rank, size):
    """Returns one call of each kind. Gloo shows all of them under the same names."""
    tensor, parts = torch.ones(3, 4), [torch.ones(3, 4) for _ in range(size)]
    whole, gaps = torch.ones(3 * size, 4), torch.ones(4, 6)[:, ::2]
    root = parts if rank == 0 else None
    to = (rank + 1) % size
    pair = (torch.ones(2, 5), torch.ones(7))
    return {
        "all_reduce": lambda: dist.all_reduce(tensor, group=group),
        "with gaps": lambda: dist.all_reduce(gaps, group=group),
        "coalesced": lambda: dist.all_reduce_coalesced(list(pair), group=group),
        "broadcast": lambda: dist.broadcast(tensor, 0, group),
        "all_gather": lambda: dist.all_gather(parts, tensor, group),
        "into_tensor": lambda: dist.all_gather_into_tensor(whole, tensor, group),
        "reduce": lambda: dist.reduce(tensor, 0, group=group),
        "gather": lambda: dist.gather(tensor, root, 0, group),
        "scatter": lambda: dist.scatter(tensor, root, 0, group),
        "all_to_all_single": lambda: dist.all_to_all_single(whole.clone(), whole, group=group),
        "all_to_all": lambda: dist.all_to_all([torch.ones(3, 4) for _ in parts], parts, group),
        "send": lambda: dist.send(tensor, 1, group) if rank == 0 else dist.recv(tensor, 0, group),
        "isend": lambda: [
            each.wait() for each in (dist.isend(pair[0], to, group), dist.irecv(pair[0], to, group))
        ],
        "barrier": lambda: dist.barrier(group),
    }


def _compare(rank, size, file):
    join("gloo", rank, size, file)
    ours = dist.new_group(backend="ropewalk")
    for name, call in _calls(dist.group.WORLD, rank, size).items():
        expected = _shown(call, "gloo:")
        found = _shown(_calls(ours, rank, size)[name], "ropewalk:")
        assert expected, name
        assert [each for each in found if each[0] != "wait"] == expected, name
    dist.destroy_process_group()


def test_calls_appear_as_those_of_gloo_do():
    run(2, _compare)


def _others(rank, size, file):
    """Tries calls that Gloo makes of others, and calls that are started."""
    join("ropewalk", rank, size, file)
    tensor, whole = torch.ones(3, 4), torch.ones(3 * size, 4)
    parts = [torch.ones(3, 4) for _ in range(size)]

    def scatter_sums():
        dist.reduce_scatter_tensor(tensor, whole)
        dist.reduce_scatter_tensor(tensor, whole, dist.ReduceOp.AVG)
        dist.reduce_scatter(tensor, parts)

    whole_shape, part_shape = [3 * size, 4], [3, 4]
    assert _shown(scatter_sums, "ropewalk:") == [
        ("reduce_scatter", [whole_shape]),
        ("reduce_scatter", [whole_shape]),
        ("reduce_scatter", [part_shape] * size),
    ]
    for call in (dist.all_reduce, lambda each, **named: dist.broadcast(each, 0, **named)):
        shown = _shown(lambda call=call: call(tensor, async_op=True).wait(), "ropewalk:")
        assert [name for name, _ in shown][1:] == ["wait"]
        assert [shapes for _, shapes in shown] == [[part_shape]] * 2
    # A call that fails leaves nothing open.
    with pytest.raises(NotImplementedError):
        _shown(lambda: dist.all_reduce(tensor, dist.ReduceOp.BAND), "ropewalk:")
    assert _shown(dist.barrier, "ropewalk:") == [("barrier", [])]
    dist.destroy_process_group()


def test_what_else_appears():
    run(2, _others)
