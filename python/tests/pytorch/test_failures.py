"""These tests are about ranks that die, come late, make another call, or make the group again."""

import os
import signal
import threading
import time
from datetime import timedelta

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run

import ropewalk.torch
from ropewalk import ArgumentError, PeerDeadError


def _killed(rank, size, file, start):
    join("ropewalk", rank, size, file)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(PeerDeadError, match=r"rank 1 .*has died"):
        for _ in range(1000):
            work = dist.all_reduce(torch.ones(100_000), async_op=start)
            if start:
                work.wait()
            time.sleep(0.001)
    with pytest.raises(PeerDeadError, match=r"rank 1 .*has died"):  # stays so
        dist.barrier()
    dist.destroy_process_group()
    return "told"


@pytest.mark.parametrize("start", [False, True])
def test_a_killed_rank_is_named(start):
    assert run(3, _killed, start) == ["told", None, "told"]


def _late(rank, size, file):
    join("ropewalk", rank, size, file, timeout_s=2)
    dist.barrier()
    if rank == 2:
        time.sleep(6)
    else:
        with pytest.raises(PeerDeadError, match="rank 2 has not come"):
            dist.all_reduce(torch.ones(3))
        with pytest.raises(PeerDeadError, match="message from rank 2"):
            dist.recv(torch.ones(3), 2)
    dist.destroy_process_group()
    return "told"


def test_a_late_rank_is_named_after_the_time_out():
    assert run(3, _late) == ["told"] * 3


def _stopped(rank, size, file, start, seconds):
    """Rank 0 stops rank 1 after some time, wherever that then is, and has it go on at the end."""
    join("ropewalk", rank, size, file, timeout_s=2)
    processes = [0] * size
    dist.all_gather_object(processes, os.getpid())
    store = dist.distributed_c10d._get_default_store()
    stop = threading.Timer(seconds, os.kill, (processes[1], signal.SIGSTOP))
    if rank == 0:
        stop.start()
    name = r"rank 1 \(process \d+, which is stopped\)"
    error = pytest.raises(PeerDeadError, match=name) if rank != 1 else pytest.raises(ropewalk.Error)
    with error:
        while True:
            work = dist.all_reduce(torch.ones(1_000_000), async_op=start)
            if start:
                work.wait()
    if rank == 0:
        store.wait([f"told/{other}" for other in range(2, size)])
        os.kill(processes[1], signal.SIGCONT)
    store.set(f"told/{rank}", "")
    dist.destroy_process_group()
    return "told"


@pytest.mark.parametrize(("start", "seconds"), [(False, 0), (False, 0.13), (True, 0.21)])
def test_a_stopped_rank_is_named_after_the_timeout(start, seconds):
    assert run(3, _stopped, start, seconds) == ["told"] * 3


def _stopped_sender(rank, size, file):
    join("ropewalk", rank, size, file, timeout_s=2)
    processes = [0] * size
    dist.all_gather_object(processes, os.getpid())
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        with pytest.raises(PeerDeadError, match=r"message from rank 1 .* timeout of 2 s"):
            dist.recv(torch.ones(3), 1)
        os.kill(processes[1], signal.SIGCONT)
    dist.destroy_process_group()
    return "told"


def test_a_message_of_a_stopped_rank_is_not_waited_for_after_the_timeout():
    assert run(2, _stopped_sender) == ["told"] * 2


def _absent(rank, size, file):
    if rank == 1:
        return "absent"
    with pytest.raises(PeerDeadError, match="rank 1 has not come"):
        join("ropewalk", rank, size, file, timeout_s=2)
    return "told"


def test_a_rank_that_never_comes_is_named():
    assert run(2, _absent) == ["told", "absent"]


def _different(rank, size, file):
    join("ropewalk", rank, size, file)
    with pytest.raises(ArgumentError, match="all ranks must make the same call"):
        if rank == 0:
            dist.all_reduce(torch.ones(100_000))
        else:
            dist.broadcast(torch.ones(100_000), 0)
    # A rank that finds its arguments wrong by itself is no reason for the others to hang.
    output = torch.empty(7 if rank == 0 else 2 * size)
    with pytest.raises(ArgumentError, match="expected" if rank == 0 else "refused there"):
        dist.all_gather_into_tensor(output, torch.ones(2))
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total.tolist() == [size] * 2
    dist.destroy_process_group()
    return "told"


def test_an_error_of_one_rank_is_an_error_of_all():
    assert run(2, _different) == ["told"] * 2


def _again(rank, size, file):
    """Makes groups three times with the same store, and so with the same keys."""
    store = dist.FileStore(file, size)  # one, since each removes the file when all ranks end it
    for round_ in range(3):
        dist.init_process_group(
            "ropewalk", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60)
        )
        groups = [dist.new_group(list(range(first, size))) for first in range(size)]
        for first, group in enumerate(groups):
            if rank >= first:
                total = torch.full((round_ + 1,), float(rank))
                dist.all_reduce(total, group=group)
                assert total[0] == sum(range(first, size))
        if round_ == 1:
            dist.destroy_process_group(groups[0])
        dist.destroy_process_group()
    return "done"


def test_groups_are_destroyed_and_made_again():
    assert run(3, _again) == ["done"] * 3


def _threads(rank, size, file):
    """Each thread has a group, and all threads make calls at the same time."""
    join("ropewalk", rank, size, file)
    groups = [dist.new_group() for _ in range(3)]
    wrong = []

    def use(number):
        for i in range(200):
            total = torch.full((1 + 300 * (i % 5),), float(rank + number))
            work = dist.all_reduce(total, group=groups[number], async_op=i % 2 == 0)
            if work is not None:
                work.wait()
            if not torch.all(total == sum(range(size)) + size * number):
                wrong.append((number, i))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    dist.destroy_process_group()
    return wrong


def test_several_groups_in_several_threads():
    assert run(2, _threads) == [[], []]


def _forks(rank, size, file):
    """A child of fork ends without touching its parent's group."""
    join("ropewalk", rank, size, file)
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    child = os.fork()
    if child == 0:
        dist.destroy_process_group()
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    total = torch.ones(3)
    dist.all_reduce(total)
    assert total.tolist() == [size] * 3
    dist.destroy_process_group()
    return "done"


def test_a_child_of_fork_ends_nothing_of_its_parents():
    assert run(2, _forks) == ["done"] * 2


def _arena(rank, size, file):
    join("ropewalk", rank, size, file)
    tensor = ropewalk.torch.empty(1000, 1000)
    assert ropewalk.inspect(tensor.numpy()).peers_can_map
    tensor.fill_(rank)
    dist.all_reduce(tensor)
    path = dist.group.WORLD._ranks.last_path()
    assert torch.all(tensor == sum(range(size)))
    assert ropewalk.torch.empty((2, 0), dtype=torch.int8).shape == (2, 0)
    dist.destroy_process_group()
    return path


def test_tensors_of_the_arena_are_reduced_where_they_lie():
    assert run(2, _arena) == ["mapped"] * 2


def _named_in_the_job(rank, size, file, how):
    """Ranks 0 and 2 have a group, in which rank 2 is rank 1."""
    join("ropewalk", rank, size, file, timeout_s=2)
    group = dist.new_group([0, 2])
    if rank == 2:
        time.sleep(5)
    elif rank == 0:
        with pytest.raises(PeerDeadError, match=r"rank 1 .*of the job, rank 1 is rank 2\)"):
            work = dist.all_reduce(torch.ones(3), group=group, async_op=how == "started")
            if work is not None:
                work.wait()
    return "told"


@pytest.mark.parametrize("how", ["waited for", "started"])
def test_an_error_of_a_group_names_ranks_of_the_job(how):
    assert run(3, _named_in_the_job, how) == ["told"] * 3


def _says_what_to_do(rank, size, file):
    join("ropewalk", rank, size, file)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(PeerDeadError, match="destroy it and make a new one") as told:
        for _ in range(1000):
            dist.all_reduce(torch.ones(3))
            time.sleep(0.001)
    assert "of the job" not in str(told.value)
    return "told"


def test_an_error_says_what_to_do_with_the_group():
    assert run(2, _says_what_to_do) == ["told", None]


def _again_with_others(rank, size, file):
    """A second life of the job, in which a group of other ranks has the name of one before."""
    for members in ([0], [0, 1], [1], [1, 0, 2], [0, 1]):
        join("ropewalk", rank, size, file, timeout_s=20)
        group = dist.new_group(members)
        if rank in members:
            total = torch.ones(2)
            dist.all_reduce(total, group=group)
            assert torch.all(total == len(members))
        dist.barrier()
        dist.destroy_process_group()
    return "done"


def test_a_group_of_others_may_have_the_name_of_an_earlier_one():
    assert run(3, _again_with_others) == ["done"] * 3
