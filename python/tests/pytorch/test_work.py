"""These tests are about the objects that stand for calls in the background: what they put into
tensors and when, their errors, their timeouts, and what they keep."""

import _thread
import contextlib
import pathlib
import resource
import sys
import threading
import time
from datetime import timedelta

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join, run

import ropewalk

PATIENCE = 30.0


def _until(question):
    end = time.monotonic() + PATIENCE
    while not question():
        assert time.monotonic() < end
        time.sleep(0.0001)


def _background_calls(rank, size):
    """Yields calls whose result is put into the tensors after them, the tensors, and the result."""
    group = dist.group.WORLD
    mean = torch.full((3,), 2.0 * rank)
    yield dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=True), [mean], [size - 1.0] * 3
    outputs = [torch.zeros(1) for _ in range(size)]
    yield dist.all_gather(outputs, torch.ones(1), async_op=True), outputs, [1.0] * size
    outputs = [torch.zeros(1) for _ in range(size)]
    given = [torch.full((1,), rank + 1.0) for _ in range(size)]
    work = dist.all_to_all(outputs, given, async_op=True)
    yield work, outputs, [1.0 + each for each in range(size)]
    gaps = torch.ones(2, 2).t()[:1]
    yield dist.all_reduce(gaps, async_op=True), [gaps], [1.0 * size] * 2
    halves = torch.full((2,), 2.0)
    by = dist._make_nccl_premul_sum(0.5)
    yield dist.all_reduce(halves, by, async_op=True), [halves], [1.0 * size] * 2
    sparse = torch.ones(2).to_sparse()
    yield group.allreduce([sparse], dist.AllreduceOptions()), [sparse], [1.0 * size] * 2
    pair = [torch.ones(1), torch.ones(1)]
    work = group.allreduce_coalesced(pair, dist.AllreduceCoalescedOptions())
    yield work, pair, [1.0 * size] * 2


def _polled(rank, size, file):
    join("ropewalk", rank, size, file)
    for question in ("is_completed", "is_success"):
        for work, tensors, expected in _background_calls(rank, size):
            _until(getattr(work, question))
            dense = [each.to_dense().reshape(-1) for each in tensors]
            assert torch.cat(dense).tolist() == expected
            work.wait()  # puts nothing again
            assert torch.cat([each.to_dense().reshape(-1) for each in tensors]).tolist() == expected
    dist.destroy_process_group()
    return "done"


def test_a_question_that_finds_a_call_complete_finds_its_result():
    assert run(2, _polled) == ["done"] * 2


def _inferred(rank, size, file):
    """Tensors that are made in inference mode can be written only in it, by whatever thread."""
    join("ropewalk", rank, size, file)
    with torch.inference_mode():
        mean = torch.full((3,), 2.0 * rank)
        outputs = [torch.zeros(2) for _ in range(size)]
        works = [
            dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=True),
            dist.all_gather(outputs, torch.ones(2), async_op=True),
        ]
        futures = [work.get_future() for work in works]
    for future in futures:
        future.wait()
    assert mean.tolist() == [size - 1.0] * 3
    assert [each.tolist() for each in outputs] == [[1.0, 1.0]] * size
    plain = [torch.zeros(2) for _ in range(size)]
    work = dist.all_gather(plain, torch.ones(2), async_op=True)
    with torch.inference_mode():
        work.wait()
    plain[0].requires_grad_().sum().backward()  # they are tensors for gradients as before
    dist.destroy_process_group()
    return "done"


def test_results_are_put_in_the_inference_mode_of_the_call():
    assert run(2, _inferred) == ["done"] * 2


def _failing(rank, size, file):
    """A result that cannot be put is an error of each wait, each question and the future."""
    join("ropewalk", rank, size, file)

    class Bad(torch.Tensor):
        def detach(self):
            raise ValueError("cannot be written")

    for first in ("wait", "question", "future"):
        # It has gaps, so that the result is put, which is refused only then.
        outputs = [torch.zeros(4, 2)[:, 0].as_subclass(Bad) for _ in range(size)]
        work = dist.all_gather(outputs, torch.ones(4), async_op=True)
        if first == "question":
            _until(work.is_completed)
            assert not work.is_success()
        if first == "future":
            with pytest.raises(ValueError, match="cannot be written"):
                work.get_future().wait()
        for _ in range(2):
            with pytest.raises(ValueError, match="cannot be written"):
                work.wait()
        assert isinstance(work.exception(), ValueError)
        with pytest.raises(ValueError, match="cannot be written"):
            work.get_future().wait()
    dist.destroy_process_group()
    return "done"


def test_a_result_that_cannot_be_put_is_an_error_of_every_wait():
    assert run(2, _failing) == ["done"] * 2


def _timed(rank, size, file):
    join("ropewalk", rank, size, file)
    store = dist.distributed_c10d._get_default_store()
    given = torch.full((3,), 1.0 * rank)
    if rank == 0:
        work = dist.all_reduce(given, async_op=True)
        begun = time.monotonic()
        with pytest.raises(RuntimeError, match="collective was not complete within the timeout"):
            work.wait(timedelta(seconds=0.2))
        assert 0.2 <= time.monotonic() - begun < PATIENCE
        store.set("timed out", "")
        assert work.wait(timedelta(seconds=PATIENCE))
        assert work.wait(timedelta(seconds=PATIENCE))
    else:
        store.wait(["timed out"])
        dist.all_reduce(given)
    assert given.tolist() == [sum(range(size))] * 3
    dist.destroy_process_group()
    return "done"


def test_a_wait_for_a_collective_ends_after_its_timeout():
    assert run(2, _timed) == ["done"] * 2


def _released(rank, size, file):
    """Nothing is called after the one whose tensors are to be given back."""
    join("ropewalk", rank, size, file)
    other = 1 - rank
    starts = (
        lambda tensor: dist.all_reduce(tensor, async_op=True),
        lambda tensor: dist.isend(tensor, other) if rank else dist.irecv(tensor, other),
    )
    for start in starts:
        for end in ("wait", "is_completed"):
            held = torch.ones(10)
            references = sys.getrefcount(held)
            work = start(held)
            _until(getattr(work, end))
            del work
            assert sys.getrefcount(held) == references
            dist.barrier()
    dist.destroy_process_group()
    return "done"


def test_a_finished_call_gives_its_tensors_back():
    assert run(2, _released) == ["done"] * 2


def _as_gloo_raises(rank, size, file):
    """Programs written for torch's own backends catch RuntimeError."""
    join("ropewalk", rank, size, file, timeout_s=2)
    wrong = (
        lambda: dist.all_gather_into_tensor(torch.empty(3), torch.ones(2)),
        lambda: dist.all_reduce(torch.ones(2), async_op=True).wait() if rank else dist.barrier(),
    )
    for call in wrong:
        with pytest.raises(RuntimeError) as caught:
            call()
        assert isinstance(caught.value, ropewalk.ArgumentError)
    with pytest.raises(RuntimeError) as caught:
        dist.send(torch.ones(2), 1 - rank, tag=-1)
    assert isinstance(caught.value, ropewalk.ArgumentError)
    dist.barrier()
    if rank == 0:
        with pytest.raises(RuntimeError) as caught:
            dist.recv(torch.ones(3), 1)
        assert isinstance(caught.value, ropewalk.PeerDeadError)
        work = dist.all_reduce(torch.ones(3), async_op=True)
        for call in (
            work.wait,
            work.get_future().wait,
            lambda: dist.all_reduce(torch.ones(3)),
            lambda: dist.reduce_scatter_tensor(torch.ones(3), torch.ones(6)),
        ):
            with pytest.raises(dist.DistBackendError) as caught:
                call()
            assert isinstance(caught.value, ropewalk.PeerDeadError)
    else:
        time.sleep(6)
    dist.destroy_process_group()
    return "done"


def test_errors_are_runtime_errors_too():
    assert run(2, _as_gloo_raises) == ["done"] * 2


def _alone(rank, size, file):
    if rank == 1:
        return "done"
    with pytest.raises(dist.DistBackendError, match="rank 1 has not come"):
        join("ropewalk", rank, size, file, timeout_s=1)
    return "done"


def test_an_error_of_making_a_group_is_a_runtime_error_too():
    assert run(2, _alone) == ["done"] * 2


def _patient(rank, size, file):
    store = dist.FileStore(file, size)
    forever = timedelta(days=30000)
    dist.init_process_group("ropewalk", store=store, rank=rank, world_size=size, timeout=forever)
    given = torch.ones(3)
    dist.all_reduce(given)
    dist.all_reduce(given, async_op=True).wait(forever)
    dist.isend(given, 1 - rank).wait(forever)
    dist.recv(given, 1 - rank)
    assert given.tolist() == [4.0] * 3
    dist.destroy_process_group()
    return "done"


def test_a_timeout_may_be_longer_than_a_life():
    assert run(2, _patient) == ["done"] * 2


def _put_once(rank, size, file):
    """Several threads ask and wait at the same time."""
    join("ropewalk", rank, size, file)
    for _ in range(30):
        mean = torch.full((1000,), 2.0 * rank)
        work = dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=True)
        threads = [
            threading.Thread(target=target, args=arguments)
            for target, arguments in ((_until, (work.is_completed,)), (work.wait, ())) * 2
        ]
        for thread in threads:
            thread.start()
        work.get_future().wait()
        for thread in threads:
            thread.join()
        assert torch.all(mean == size - 1.0)
    dist.destroy_process_group()
    return "done"


def test_a_result_is_put_once():
    assert run(2, _put_once) == ["done"] * 2


def _told_by_waiting(rank, size, file):
    """After a wait() the future has the result, as Gloo's has, asked for before or after."""
    join("ropewalk", rank, size, file)
    for asks_first in (True, False) * 20:
        sum_of_ranks = torch.full((1000,), float(rank))
        work = dist.all_reduce(sum_of_ranks, async_op=True)
        future = work.get_future() if asks_first else None
        work.wait()
        future = future or work.get_future()
        assert future.done()
        assert torch.all(future.value()[0] == sum(range(size)))
        assert future.then(lambda told: len(told.value())).wait() == 1
    dist.destroy_process_group()
    return "done"


def test_a_future_has_its_result_after_a_wait():
    assert run(2, _told_by_waiting) == ["done"] * 2


def _take_all_threads():
    """Leaves no memory for the stack of another thread, and takes the stacks that the C library
    keeps of ended ones. Returns a function that gives all back."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    end = threading.Event()
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 20), before[1]))
    with contextlib.suppress(RuntimeError):
        while True:
            _thread.start_new_thread(end.wait, ())

    def give_back():
        resource.setrlimit(resource.RLIMIT_AS, before)
        end.set()

    return give_back


def _without_a_thread(rank, size, file):
    """Calls in the background are made at once where the system has no thread for them."""
    join("ropewalk", rank, size, file)
    totals = [torch.full((3,), rank + 1.0) for _ in range(3)]
    dist.barrier()
    give_back = _take_all_threads()
    try:
        works = [dist.all_reduce(total, async_op=True) for total in totals]
        complete = [work.is_completed() for work in works]
        for work in works:
            work.wait()
    finally:
        give_back()
    assert complete == [True] * 3
    assert [total.tolist() for total in totals] == [[3.0] * 3] * 3
    assert dist.all_reduce(totals[0], async_op=True).wait()  # by a thread again
    dist.destroy_process_group()
    return "done"


def test_calls_in_the_background_need_no_thread():
    assert run(2, _without_a_thread) == ["done"] * 2
