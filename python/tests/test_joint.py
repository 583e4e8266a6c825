"""What one rank alone gets wrong ends the call on all of them, whatever kind of error it is."""

import pytest

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

from support import mpis, run_ranks

# Rank 1 is wrong in each of these; the others are right, and must not wait for it.
CODE = """
import numpy as np, ropewalk
grid = ropewalk.CartesianGrid([1, 2])
endpoints = ropewalk.EndpointSet(lanes=1)
wrong = grid.rank == 1
class Broken:
    def __iter__(self): raise RuntimeError("broken")
    def __index__(self): raise RuntimeError("broken")
def pick(bad, good): return bad if wrong else good
field = np.zeros((6, 6))
packets = [None, None, np.zeros(9), np.zeros(9)]
calls = [
    lambda: ropewalk.CartesianGrid(pick(["one", 2], [1, 2])),
    lambda: ropewalk.CartesianGrid(pick(None, [1, 2])),
    lambda: ropewalk.CartesianGrid(pick([1 << 40, 2], [1, 2])),
    lambda: ropewalk.CartesianGrid([1, 2], pick(3, True)),
    lambda: ropewalk.CartesianGrid(pick(Broken(), [1, 2])),
    lambda: ropewalk.EndpointSet(lanes=pick("four", 1)),
    lambda: ropewalk.EndpointSet(lanes=pick(None, 1)),
    lambda: ropewalk.EndpointSet(lanes=pick(Broken(), 1)),
    lambda: ropewalk.EndpointSet(lanes=1, split_bytes=pick("large", 1 << 20)),
    lambda: ropewalk.EndpointSet(lanes=1, split_bytes=pick(-1, 1 << 20)),
    lambda: ropewalk.Halo(grid, endpoints, field, pick("wide", 1)),
    lambda: ropewalk.Halo(grid, endpoints, field, pick([1, None], 1)),
    lambda: ropewalk.Halo(grid, endpoints, field, pick(1 << 70, 1)),
    lambda: ropewalk.Halo(grid, endpoints, pick(None, field)),
    lambda: ropewalk.Halo(grid, endpoints, field, strategy=pick("none", "automatic")),
    lambda: ropewalk.Halo(grid, endpoints, field, strategy=pick(7, "automatic")),
    lambda: ropewalk.Halo.faces(grid, endpoints, pick(None, packets), packets),
    lambda: ropewalk.ReductionPlan(pick(None, [field])),
    lambda: ropewalk.ReductionPlan([field], op=pick([], "sum")),
    lambda: ropewalk.ReductionPlan([field], bucket_bytes=pick("many", 1 << 20)),
]
for at, call in enumerate(calls):
    try:
        call()
        tell(f"{at}: no error")
    except Exception as error:
        # The ranks that called correctly hear of it as an error of ropewalk's.
        tell("refused" if wrong or isinstance(error, ropewalk.Error) else f"{at}: {error!r}")
tell(f"{len(calls)} calls")
ropewalk.Halo(grid, endpoints, field).exchange()
endpoints.close()
"""


@mpis
def test_errors_of_one_rank_are_everybodys(path, tmp_path):
    told = sorted(run_ranks(path, 2, CODE, tmp_path)[0])
    count = int(told[0].split()[0])
    assert told == sorted([f"{count} calls"] * 2 + ["refused"] * 2 * count)
