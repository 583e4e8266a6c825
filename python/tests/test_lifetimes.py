"""What a halo or a plan that is dropped while an exchange is under way does with its arrays, and
with the other threads of the process."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Rank 0 drops what is under way while rank 1 is late. Each array tells, when it dies, whether rank
# 1 had come by then: before that the exchange may still write to it.
DROPPED = """
import gc, os, threading, time, weakref
import numpy as np, ropewalk
KIND, IN_CYCLE, MARK = WORDS
class Array(np.ndarray): pass
def array(): return np.zeros(1000).view(Array)
comm = ropewalk.Communicator()
other = 1 - comm.rank
grid = ropewalk.CartesianGrid([2], True)
endpoints = ropewalk.EndpointSet(lanes=1)
def halo(mine):
    return ropewalk.Halo(grid, endpoints, mine[:1], strategy="concurrent")
def faces(mine):
    return ropewalk.Halo.faces(grid, endpoints, mine[:2], mine[2:], strategy="concurrent")
def plan(mine):
    return endpoints.plan([(mine[0], other)], [(mine[1], other)])
def reduction(mine):
    return ropewalk.ReductionPlan(mine, fuse_bytes=0)
def bound(mine):
    made = ropewalk.ReductionPlan([np.zeros(1000)], fuse_bytes=0)
    made.bind(0, mine[0])
    return made
mine = [array() for _ in range(4)]
made = globals()[KIND](mine)
used = {"halo": 1, "faces": 4, "plan": 2, "reduction": 4, "bound": 1}[KIND]
comm.barrier()
if comm.rank == 1:
    time.sleep(1)
    open(MARK, "w").close()
    made.start()
    made.wait()
else:
    came, ticks, over = [], [0], threading.Event()
    for each in mine[:used]:
        # The collector tells of its objects before it ends them; what they are views of is none.
        weakref.finalize(each.base, lambda: came.append(os.path.exists(MARK)))
        if IN_CYCLE: each.of = made
    def tick():
        while not over.wait(0.01): ticks[0] += 1
    made.start()
    thread = threading.Thread(target=tick)
    thread.start()
    before, each = ticks[0], None
    del made, mine
    if IN_CYCLE: gc.collect()
    passed = ticks[0] - before
    over.set()
    thread.join()
    tell(f"{came == [True] * used} {passed >= 20}")
made = None
comm.barrier()
"""


@mpis
@pytest.mark.parametrize("in_cycle", [False, True], ids=["dropped", "collected"])
@pytest.mark.parametrize("kind", ["halo", "faces", "plan", "reduction", "bound"])
def test_arrays_outlive_what_writes_to_them(path, tmp_path, kind, in_cycle):
    words = (kind, in_cycle, str(tmp_path / "mark"))
    program = DROPPED.replace("WORDS", repr(words))
    assert run_ranks(path, 2, program, tmp_path)[0] == ["True True"]


CANCELLED = """
import asyncio, time, weakref
import numpy as np, ropewalk
comm = ropewalk.Communicator()
comm.barrier()
async def waiting(out):
    try:
        await asyncio.wait_for(comm.start_allreduce(np.ones(3), out), timeout=0.2)
    except asyncio.TimeoutError:
        return "cancelled"
    return "complete"
class Array(np.ndarray): pass
out = np.zeros(3).view(Array)
ended = []
weakref.finalize(out, ended.append, True)
if comm.rank == 1:
    time.sleep(2)
    tell(f"{asyncio.run(waiting(out))} {out[0]}")
    comm.barrier()
    comm.barrier()
else:
    begun = time.monotonic()
    told = asyncio.run(waiting(out))
    late = time.monotonic() - begun > 1.5
    del out
    kept = not ended
    comm.barrier()  # behind the allreduce
    comm.barrier()
    tell(f"{told} {late} {kept} {ended}")
"""


@mpis
def test_a_cancelled_await_waits_for_nobody(path, tmp_path):
    told = run_ranks(path, 2, CANCELLED, tmp_path)[0]
    assert sorted(told) == ["cancelled False True [True]", "complete 2.0"]


# Nothing is called after the collective that was dropped; the end completes it for rank 1.
CANCELLED_AT_THE_END = """
import time, numpy as np, ropewalk
comm = ropewalk.Communicator()
comm.barrier()
if comm.rank == 0:
    comm.start_allreduce(np.ones(3))
    CLOSE
else:
    time.sleep(0.5)
    tell(str(comm.allreduce(np.ones(3))[0]))
    CLOSE
"""


@mpis
@pytest.mark.parametrize("close", ["comm.close()", "pass"])
def test_the_end_completes_what_was_dropped(path, tmp_path, close):
    program = CANCELLED_AT_THE_END.replace("CLOSE", close)
    assert run_ranks(path, 2, program, tmp_path)[0] == ["2.0"]
