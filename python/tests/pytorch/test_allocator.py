"""Tensors of PyTorch's ordinary functions lie in communication memory under an allocator."""

import gc
import os
import random
import re
import sys
import threading

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from forked import join
from forked import run as run_forked
from test_torch_collectives import SEED, _compare
from test_training import _ddp, _same_weights
from torch.nn.parallel import DistributedDataParallel

import ropewalk
from ropewalk.torch import use_allocator
from support import environment, run

MINIMUM = 128 << 10


def _mapped(tensor):
    """Returns whether other ranks can map the memory of a tensor."""
    return ropewalk.inspect(tensor.detach().numpy()).peers_can_map


def _live():
    gc.collect()
    return ropewalk.arena_statistics().live_bytes


def test_large_tensors_lie_in_the_arena_while_it_is_in_use():
    before = torch.empty(MINIMUM, dtype=torch.uint8)
    with use_allocator() as used:
        assert "131072 bytes and more" in repr(used)
        small = torch.empty(MINIMUM - 64, dtype=torch.uint8)
        large = torch.full((MINIMUM,), 7, dtype=torch.uint8)
        layer = torch.nn.Linear(300, 400)
        layer(torch.ones(2, 300)).sum().backward()
        assert [_mapped(each) for each in (before, small, large)] == [False, False, True]
        assert _mapped(layer.weight) and _mapped(layer.weight.grad)
    assert "stopped" in repr(used)
    assert not _mapped(torch.empty(MINIMUM, dtype=torch.uint8))
    assert _mapped(large) and bool((large == 7).all())


def test_memory_goes_back_with_the_last_tensor():
    start = _live()
    with use_allocator("64K"):
        tensor = torch.arange(100_000, dtype=torch.int64)
        assert _live() >= start + 800_000
    seen = tensor.numpy()[5:]
    part = tensor[90_000:]
    del tensor
    assert _live() > start
    assert seen[0] == 5 and part[-1] == 99_999
    del seen, part
    assert _live() == start


def test_a_tensor_may_grow_and_keeps_its_alignment():
    with use_allocator("4K"):
        tensor = torch.arange(2000.0)
        tensor.resize_(300_000)
        assert _mapped(tensor) and torch.equal(tensor[:2000], torch.arange(2000.0))
        assert tensor.data_ptr() % 64 == 0


def test_allocators_may_be_nested():
    with use_allocator("1M"):
        with use_allocator(4096) as inner:
            assert _mapped(torch.empty(1024))
            inner.stop()
            assert not _mapped(torch.empty(1024))
            inner.stop()
        assert not _mapped(torch.empty(1024))
        assert _mapped(torch.empty(1 << 18))
    assert not _mapped(torch.empty(1 << 18))


def test_threads_allocate_and_free_what_others_have_allocated():
    start = _live()
    places, lock, errors = [], threading.Lock(), []

    def work(seed):
        draw = random.Random(seed)
        for step in range(300):
            count = draw.randrange(1, 60_000)
            tensor = torch.full((count,), seed * 1000 + step, dtype=torch.int32)
            with lock:
                places.append((tensor, seed * 1000 + step))
                other, value = places.pop(draw.randrange(len(places)))
            if not bool((other == value).all()):
                errors.append(value)

    with use_allocator("16K"):
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    places.clear()
    assert not errors
    assert _live() == start


@pytest.mark.parametrize(
    "minimum", [0, 4095, -1, "", "64", "K", "1.5M", "128 K", "99999999999G", None, 1e6]
)
def test_a_minimum_that_is_none_is_refused(minimum):
    with pytest.raises(ropewalk.ArgumentError, match=r"minimum: .*expected bytes such as 131072"):
        use_allocator(minimum)


# A process has one library whose blocks are placed, so each of these programs has its own process.
REFUSED = """
import ropewalk, torch
from ropewalk.torch import allocator, use_allocator
FIRST
try:
    use_allocator()
except ropewalk.Error as error:
    print(type(error).__name__, error)
assert not ropewalk.inspect(torch.empty(1 << 20).numpy()).peers_can_map
"""


@pytest.mark.parametrize(
    "first, wanted",
    [
        ("allocator._LIBRARY = 'libc99.so'", "UnsupportedError .*no library libc99.so.*empty"),
        ("allocator._LIBRARY = 'libshm.so'", "UnsupportedError .*malloc library"),
        (
            "allocator._core.library_has_asked = lambda: False",
            "UnsupportedError .*PyTorch .* has an allocator of its own; .*malloc library",
        ),
    ],
)
def test_where_it_cannot_work_the_error_says_what_can(first, wanted):
    done = run([sys.executable, "-c", REFUSED.replace("FIRST", first)])
    assert done.returncode == 0, done.stderr
    assert re.match(wanted, done.stdout), done.stdout


FULL = """
import ropewalk, torch
from ropewalk.torch import use_allocator
use_allocator()
kept = [torch.full((1 << 20,), float(i)) for i in range(12)]  # 4 MiB each
inside = [ropewalk.inspect(each.numpy()).peers_can_map for each in kept]
assert inside[0] and not inside[-1], inside
assert all(bool((each == float(i)).all()) for i, each in enumerate(kept))
del kept
assert ropewalk.inspect(torch.empty(1 << 20).numpy()).peers_can_map
"""


def test_a_full_arena_leaves_tensors_to_torch():
    own = {**environment(), "ROPEWALK_ARENA_BYTES": "32M"}
    done = run([sys.executable, "-c", FULL], env=own)
    assert done.returncode == 0, done.stderr


UNTIL_THE_END = """
import atexit, sys, threading, torch, torch.distributed as dist
from ropewalk.torch import use_allocator
use_allocator("4K")
dist.init_process_group("ropewalk", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(500, 500)
dist.all_reduce(model.weight.data)
dist.destroy_process_group()
late = torch.ones(10_000)
atexit.register(lambda: print(float(late.sum() + torch.ones(5000).sum())))
class Cycle: pass
one = Cycle(); one.self, one.tensor = one, torch.ones(10_000)
del one
thread = threading.Thread(target=lambda: setattr(sys, "kept", torch.ones(10_000)))
thread.start(); thread.join()
"""


def test_tensors_may_live_to_the_end_of_the_process():
    done = run([sys.executable, "-c", UNTIL_THE_END])
    assert (done.returncode, done.stdout, done.stderr) == (0, "15000.0\n", "")


# A child frees tensors of its parent and makes its own.
FORKED = """
import os, torch, ropewalk
from ropewalk.torch import use_allocator
torch.set_num_threads(1)  # the threads of OpenMP do not survive a fork
use_allocator("4K")
given = torch.arange(100_000)
child = os.fork()
if child == 0:
    POLICY
    del given
    own = [torch.full((5000,), i) for i in range(50)]
    fine = fine and all(bool((each == i).all()) for i, each in enumerate(own))
    del own
    os._exit(0 if fine else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert torch.equal(given, torch.arange(100_000))
"""


@pytest.mark.parametrize("policy", ["copy", "refuse"])
def test_a_forked_child_has_its_own_tensors(policy):
    code = "fine = True"
    if policy == "copy":
        code = "fine = torch.equal(given, torch.arange(100_000)); given.zero_()"
    own = {**environment(), "ROPEWALK_FORK": policy}
    done = run([sys.executable, "-c", FORKED.replace("POLICY", code)], env=own)
    assert (done.returncode, done.stderr) == (0, "")


def _allocating(rank, size, file, body, *arguments):
    with use_allocator("4K"):
        return body(rank, size, file, *arguments)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_random_calls_give_what_gloo_gives(size):
    made = run_forked(size, _allocating, _compare, 60, SEED + 50 + size)
    assert len(made[0]) == 13


def _mapped_calls(rank, size, file):
    join("ropewalk", rank, size, file)
    with use_allocator():
        tensor = torch.full((1 << 20,), float(rank))
        dist.all_reduce(tensor)
        assert torch.all(tensor == sum(range(size)))
    path = dist.group.WORLD._ranks.last_path()
    dist.destroy_process_group()
    return path


def test_collectives_map_such_tensors():
    assert run_forked(2, _mapped_calls)[0] == "mapped"


def _buckets(rank, size, file):
    """Returns whether each gradient of a model lies where the other ranks can map it."""
    join("ropewalk", rank, size, file)
    with use_allocator("4K"):
        model = DistributedDataParallel(torch.nn.Linear(400, 300), gradient_as_bucket_view=True)
        for _ in range(3):  # the buckets are made anew after the first step
            model(torch.ones(2, 400) * rank).sum().backward()
        found = [_mapped(each.grad) for each in model.parameters()]
        assert model.module.weight.grad[0, 0] == 3 * 2 * sum(range(size)) / size
    dist.destroy_process_group()
    return found


def test_the_buckets_of_ddp_are_mapped():
    assert run_forked(2, _buckets) == [[True, True]] * 2


def _ddp_allocating(rank, size, file, backend, workers):
    if backend == "gloo":
        return _ddp(rank, size, file, backend, workers)
    return _allocating(rank, size, file, _ddp, backend, workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_ddp_gives_what_gloo_gives(workers):
    _same_weights(_ddp_allocating, 2, workers)


# Allocators that people preload beside a program, where Debian puts them, and ours.
MALLOCS = {
    "jemalloc": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
    "tcmalloc": "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
    "ropewalk": ropewalk.preload_path(libraries=("malloc",)),
}
UNDER_MALLOC = """
import gc, sys, threading, torch, ropewalk
from ropewalk.torch import use_allocator
assert sys.argv[1] in open("/proc/self/maps").read()
before = torch.ones(1 << 18)
with use_allocator() as used:
    after = before * 2
    assert ropewalk.inspect(after.numpy()).peers_can_map
    kept = []
    def work(seed):
        for turn in range(50):
            made = torch.full((1000 + 40_000 * (turn % 3),), float(seed))
            kept.append(made.clone().resize_(60_000)[:1000])
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads: each.start()
    for each in threads: each.join()
    del before
small = [torch.ones(10) for _ in range(1000)]
assert sorted(each.mean().item() for each in kept) == [seed for seed in range(4) for _ in range(50)]
assert bool((after == 2).all())
start = ropewalk.arena_statistics().live_bytes
del after; gc.collect()
if sys.argv[2] != "ropewalk":  # whose own allocations are in the arena, too
    assert ropewalk.arena_statistics().live_bytes == start - (1 << 20)
print("good")
"""


@pytest.mark.parametrize("name", MALLOCS)
def test_it_works_beside_a_preloaded_malloc(name):
    library = os.path.realpath(MALLOCS[name])
    if not os.path.exists(library):
        pytest.skip(f"{library} is not installed")
    settings = {**environment(), "LD_PRELOAD": library}
    done = run([sys.executable, "-c", UNDER_MALLOC, library, name], env=settings, timeout=120)
    assert done.stdout == "good\n", done.stderr
