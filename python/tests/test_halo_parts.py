"""Faces that threads hand over in parts: ropewalk.Halo.buffers(..., parts=P) against NumPy."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Each rank knows what its neighbours put. Every second part is handed over by another thread.
PARTS = """
import threading, time, numpy as np, ropewalk
grid = ropewalk.CartesianGrid([SIZE], True)
COUNT, PARTS = 10, 4
bad = []
def face(rank, direction, round):
    return np.arange(COUNT) + 1000 * rank + 100 * direction + 10**6 * round
def bounds(part):  # of bytes, which no element crosses: 80 in 4
    return part * COUNT * 8 // PARTS // 8, (part + 1) * COUNT * 8 // PARTS // 8
def message(call):
    try: call()
    except ropewalk.ArgumentError as error: return str(error)
    return "no error"
with ropewalk.EndpointSet(lanes=1) as endpoints:
    shapes = [COUNT, COUNT]
    halo = ropewalk.Halo.buffers(grid, endpoints, shapes, np.int64, parts=PARTS)
    if (halo.parts, halo.strategy) != (PARTS, "put"): bad.append(repr(halo))
    if "start()" not in message(lambda: halo.ready(0, 0)): bad.append("not started")
    for round in range(5):
        views = [halo.send_buffer(one) for one in range(2)]
        halo.start()
        def hand_over(first):
            for part in range(first, PARTS, 2):
                begin, end = bounds(part)
                for one in 1, 0:
                    views[one][begin:end] = face(grid.rank, one, round)[begin:end]
                    halo.ready(one, part)
        if "not ready" not in message(halo.wait): bad.append("wait")
        other = threading.Thread(target=hand_over, args=(1,))
        other.start(); hand_over(0); other.join()
        if "handed over before" not in message(lambda: halo.ready(1, 2)): bad.append("twice")
        for part in reversed(range(PARTS)):
            for one in range(2):
                while not halo.arrived(one, part): time.sleep(0)
                begin, end = bounds(part)
                expected = face(grid.neighbour([1 - 2 * one]), one ^ 1, round)[begin:end]
                if not np.array_equal(halo.receive_buffer(one)[begin:end], expected):
                    bad.append([round, one, part])
        halo.wait()
    if "part: 4" not in message(lambda: halo.arrived(0, 4)): bad.append("part")
    if "direction: 2" not in message(lambda: halo.ready(2, 0)): bad.append("direction")
    if "whole number" not in message(lambda: halo.ready(0, "x")): bad.append("word")
    whole = ropewalk.Halo.buffers(grid, endpoints, shapes)
    if whole.parts or "parts" not in message(lambda: whole.ready(0, 0)): bad.append("whole")
    for wrong in -1, 4097, "x":
        told = message(lambda: ropewalk.Halo.buffers(grid, endpoints, shapes, parts=wrong))
        if "parts" not in told: bad.append(told)
tell(str(bad))
"""


@mpis
@pytest.mark.parametrize("ranks", [1, 3])
def test_parts_arrive(path, tmp_path, ranks):
    told, _ = run_ranks(path, ranks, PARTS.replace("SIZE", str(ranks)), tmp_path)
    assert told == ["[]"] * ranks
