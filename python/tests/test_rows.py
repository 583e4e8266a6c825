"""Calls that move as many rows as each rank likes: into results of another shape, and into memory
that they share with what is sent."""

import json

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# What counts is that `out` has as many elements as the result, as with allgather.
SHAPES = """
import json, numpy as np, ropewalk
comm = ropewalk.Communicator()
rank = comm.rank
bad = []
def check(what, result, expected):
    found = np.asarray(result).ravel().tolist()
    if found != np.asarray(expected).ravel().tolist(): bad.append((what, found))
def call(start, name, *given, **more):
    if start: return getattr(comm, "start_" + name)(*given, **more).result()
    return getattr(comm, name)(*given, **more)

numbers = np.arange(12.0).reshape(4, 3)
counts = [1, 3]
mine = (slice(0, 1), slice(1, 4))[rank]
for start in False, True:
    # two elements to each rank, where a row of the result has two
    for shape in (4,), (2, 2), (1, 4):
        result = np.full(shape, -1.0)
        call(start, "alltoallv", np.arange(4.0) + 10 * rank, [2, 2], [2, 2], out=result)
        first = 2.0 * rank
        check(("alltoallv", shape), result, [first, first + 1, first + 10, first + 11])
    # rank 0 sends nothing, so that only its result tells how long a row is
    sends, receives = ([0, 0], [2, 1])[rank], ([0, 2], [0, 1])[rank]
    for shape in (-1, 3), (-1,), (1, -1):
        result = np.full(3 * sum(receives), -1.0).reshape(shape)
        call(start, "alltoallv", numbers[: sum(sends)], sends, receives, out=result)
        check(("nothing sent", shape), result, numbers[:2] if rank == 0 else numbers[2:3])
    for shape in (4, 3), (12,), (1, 12), (3, 4), (2, 2, 3):
        for told in None, counts:
            result = np.full(shape, -1.0)
            call(start, "allgatherv", numbers[mine], result, told)
            check(("allgatherv", shape, told), result, numbers)
            result = np.full(shape, -1.0)
            call(start, "gatherv", numbers[mine], result, told, root=1)
            check(("gatherv", shape, told), result, numbers if rank == 1 else np.full(12, -1.0))
    for shape in (-1, 3), (-1,), (1, -1), (3, -1):
        result = np.full(3 * counts[rank], -1.0).reshape(shape)
        call(start, "scatterv", numbers if rank == 1 else None, counts, result, root=1)
        check(("scatterv", shape), result, numbers[mine])
    # in place, where the whole has another shape than its blocks
    for shape in (4, 3), (12,), (2, 6):
        for name, more in ("allgatherv", {}), ("gatherv", {"root": 1}):
            whole = np.full((4, 3), -1.0)
            whole[mine] = numbers[mine]
            call(start, name, whole[mine], whole.reshape(shape), counts, **more)
            if rank == 1 or not more: check((name, "in place", shape), whole, numbers)
    for shape in (3, 3), (9,), (1, 9):
        whole = numbers.copy()
        result = whole[mine].reshape(shape) if rank == 1 else np.empty(3)
        call(start, "scatterv", whole if rank == 1 else None, counts, result, root=1)
        check(("scatterv", "in place", shape), result, numbers[mine])
tell(json.dumps(bad))
"""


@mpis
def test_results_of_another_shape(path, tmp_path):
    told, _ = run_ranks(path, 2, SHAPES, tmp_path)
    assert told == ["[]"] * 2


# Rank 1 has its block as far before the whole as its own place is behind the whole's beginning.
OVERLAP = """
import json, numpy as np, ropewalk
comm = ropewalk.Communicator()
counts, one, memory = [1, 3], np.zeros(1), np.zeros(5)
block, whole = memory[0:3], memory[1:5]
told = []
for name, call in (
    ("allgatherv", lambda: comm.allgatherv(block, whole, counts)
                           if comm.rank else comm.allgatherv(one, None, counts)),
    ("gatherv", lambda: comm.gatherv(block, whole, counts, root=1)
                        if comm.rank else comm.gatherv(one, root=1)),
    ("scatterv", lambda: comm.scatterv(whole, counts, block, root=1)
                         if comm.rank else comm.scatterv(out=one, root=1)),
):
    try: call()
    except ropewalk.ArgumentError as error:
        if comm.rank and "shares memory" not in str(error): told.append((name, str(error)))
    else: told.append((name, "no error"))
# but a block that ends where the whole begins shares nothing with it
apart = np.arange(7.0)
comm.allgatherv(apart[0:3] if comm.rank else one, apart[3:7], counts)
told += [] if apart[3:7].tolist() == [0, 0, 1, 2] else ["apart"]
tell(json.dumps(told))
"""


@mpis
def test_a_block_before_the_whole_is_not_in_place(path, tmp_path):
    told, _ = run_ranks(path, 2, OVERLAP, tmp_path)
    assert [json.loads(one) for one in told] == [[], []]
