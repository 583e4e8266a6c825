"""These tests are about the barrier that names the ranks which have not come."""

import time
from datetime import timedelta

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run

import ropewalk.torch
from ropewalk import ArgumentError, PeerDeadError

_SHORT = timedelta(seconds=0.4)
_LONG = timedelta(seconds=60)


def _reduced(size):
    """The group still works."""
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size] * 3


def _all_come(rank, size, file):
    join("ropewalk", rank, size, file)
    store = dist.distributed_c10d._get_default_store()
    ropewalk.torch.monitored_barrier(timeout=_LONG)
    dist.barrier()
    keys = store.num_keys()
    dist.barrier()
    begin = time.monotonic()
    for k in range(20):
        if rank == k % size:
            time.sleep(0.01)
        ropewalk.torch.monitored_barrier(timeout=30.0, wait_all_ranks=k % 2 == 0)
        assert time.monotonic() - begin >= 0.01 * (k + 1)
    dist.barrier()
    assert store.num_keys() == keys
    dist.barrier()
    dist.group.WORLD.monitored_barrier()
    _reduced(size)
    dist.destroy_process_group()
    return "came"


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_barrier_to_which_all_come(size):
    assert run(size, _all_come) == ["came"] * size


def _some_are_late(rank, size, file, late, wait_all_ranks, text):
    join("ropewalk", rank, size, file)
    dist.barrier()
    if rank in late:
        time.sleep(2)
    with pytest.raises(PeerDeadError, match=text) as raised:
        ropewalk.torch.monitored_barrier(None, _SHORT if rank == 0 else _LONG, wait_all_ranks)
    assert isinstance(raised.value, RuntimeError)
    ropewalk.torch.monitored_barrier(timeout=_LONG)
    _reduced(size)
    dist.destroy_process_group()
    return "told"


@pytest.mark.parametrize(
    "late, wait_all_ranks, text",
    [
        ([2], False, "^Rank 2 failed to pass monitoredBarrier in 400 ms; see what it does"),
        ([1, 3], False, "^Rank 1 failed to pass monitoredBarrier in 400 ms"),
        ([1, 3], True, "^Ranks 1, 3 failed to pass monitoredBarrier in 400 ms"),
    ],
)
def test_late_ranks_are_named_on_all_and_the_group_goes_on(late, wait_all_ranks, text):
    assert run(4, _some_are_late, late, wait_all_ranks, text) == ["told"] * 4


def _equal_timeouts(rank, size, file):
    join("ropewalk", rank, size, file)
    dist.barrier()
    if rank == 0:
        time.sleep(0.3)  # so that the others' time is over before its own
    if rank == 2:
        time.sleep(2)
    with pytest.raises(PeerDeadError, match=r"^Rank 2 failed to pass monitoredBarrier"):
        ropewalk.torch.monitored_barrier(timeout=_SHORT)
    dist.destroy_process_group()
    return "told"


def test_a_late_rank_is_named_where_all_have_the_same_timeout():
    assert run(3, _equal_timeouts) == ["told"] * 3


def _first_is_late(rank, size, file):
    join("ropewalk", rank, size, file)
    dist.barrier()
    if rank == 0:
        dist.distributed_c10d._get_default_store().wait(["told/1", "told/2"])
        ropewalk.torch.monitored_barrier(timeout=_LONG)
    else:
        with pytest.raises(PeerDeadError, match=f"Rank {rank} timed out in monitoredBarrier"):
            ropewalk.torch.monitored_barrier(timeout=_SHORT)
        dist.distributed_c10d._get_default_store().set(f"told/{rank}", "")
    _reduced(size)
    dist.destroy_process_group()
    return "told"


def test_the_first_rank_is_late():
    assert run(3, _first_is_late) == ["told"] * 3


def _in_a_part(rank, size, file):
    join("ropewalk", rank, size, file)
    group = dist.new_group([1, 3])
    if rank == 1:
        with pytest.raises(PeerDeadError, match=r"^Rank 1 .* \(of the job, rank 1 is rank 3\)$"):
            ropewalk.torch.monitored_barrier(group, _SHORT)
    elif rank != 3:
        ropewalk.torch.monitored_barrier(group, _SHORT)  # of others
    _reduced(size)
    dist.destroy_process_group()
    return "told"


def test_a_group_of_some_ranks():
    assert run(4, _in_a_part) == ["told"] * 4


def _with_gloo(rank, size, file):
    join("gloo", rank, size, file)
    ropewalk.torch.monitored_barrier(timeout=_LONG)
    dist.destroy_process_group()
    return "came"


def test_groups_of_gloo():
    assert run(2, _with_gloo) == ["came"] * 2


def _refused(rank, size, file):
    join("ropewalk", rank, size, file)
    group = dist.group.WORLD
    for timeout in (0, -1.0, timedelta(0), float("nan")):
        with pytest.raises(ArgumentError, match=r"^timeout: .*, expected more than 0$"):
            ropewalk.torch.monitored_barrier(timeout=timeout)
    _reduced(size)
    dist.destroy_process_group()
    with pytest.raises(ArgumentError, match="destroyed"):
        group.monitored_barrier()
    return "told"


def test_what_is_refused():
    assert run(2, _refused) == ["told"] * 2
