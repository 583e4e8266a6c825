"""ropewalk.Window: puts, gets, signals and atomic operations against NumPy, errors, ends."""

import json
import pathlib

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

PATH = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"

# Every rank knows what all ranks do, by their random numbers, and so what must be in each window.
RANDOM = """
import json, numpy as np, ropewalk
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
INTEGERS = {"sum": np.add, "max": np.maximum, "bxor": np.bitwise_xor, "prod": np.multiply}
FLOATS = {"sum": np.add, "min": np.minimum}
bad = []
def operations(number, of, dtype, elements):
    random = np.random.default_rng([number, of])
    known = INTEGERS if np.dtype(dtype).kind in "iu" else FLOATS
    op = np.random.default_rng([number, 99]).choice(list(known))  # one a round: these commute
    made = []
    for _ in range(20):
        to, at = int(random.integers(size)), int(random.integers(elements))
        count = int(random.integers(1, elements - at + 1))
        made.append((op, known[op], to, at, random.integers(0, 7, count).astype(dtype)))
    return made
for number in range(12):
    dtype = ["int8", "uint16", "int32", "uint64", "float32", "float64"][number % 6]
    elements = [5, 300, 70_000][number % 3]
    expected = [np.zeros(elements, dtype) for _ in range(size)]
    for of in range(size):
        for _, ufunc, to, at, values in operations(number, of, dtype, elements):
            part = expected[to][at : at + len(values)]
            ufunc(part, values, out=part)
    with ropewalk.Window(elements, dtype) as window:
        for op, _, to, at, values in operations(number, rank, dtype, elements):
            if len(values) == 1: window.fetch_and_op(values[0], to, at, op)
            else: window.accumulate(values, to, at, op)
        window.fence()
        for other in range(size):
            window.get(out := np.empty(elements, dtype), other)
            seen = window.of(other) if window.is_near(other) else out
            if not (out == expected[other]).all() or not (seen == out).all():
                bad.append((number, other, dtype))
        # ranks put side by side, and signal each other
        window.fence()
        share = elements // size
        mine = np.arange(share).astype(dtype)
        for other in range(size):
            window.put(mine, other, rank * share)
            window.signal(other, number % 8)
        window.wait_signal(size, number % 8)
        got = window.array[: size * share].tolist()
        if got != mine.tolist() * size: bad.append(("put", number))
tell(json.dumps(bad))
"""


@mpis
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_random_operations_are_numpys(path, tmp_path, ranks):
    told, _ = run_ranks(path, ranks, PATH + RANDOM, tmp_path)
    assert told == ["[]"] * ranks


CALLS = """
import json, numpy as np, ropewalk, threading
good = []
world = ropewalk.Communicator()
rank, other = world.rank, 1 - world.rank
with ropewalk.Window((2, 3) if rank == 0 else 4, np.int64, world, signals=2) as window:
    good.append(window.array.shape == ((2, 3) if rank == 0 else (4,)) and not window.array.any())
    good.append(len(window.of(other)) == (4 if rank == 0 else 6) and window.dtype == np.int64)
    good.append(repr(window) == f"<ropewalk.Window, rank {rank} of 2, "
                f"{'2 x 3' if rank == 0 else '4'} int64>")
    window.fence()
    window.put([rank + 1, rank + 2], other, 1)      # lists and numbers, too
    window.put(9, other)
    window.fence()
    good.append(window.array.reshape(-1)[:3].tolist() == [9, other + 1, other + 2])
    good.append(window.fetch(other, 2) == rank + 2 and window.fetch_and_op(5, rank) == 9)
    good.append(window.fetch_and_op(1, rank, op="replace") == 14 and window.fetch(rank) == 1)
    good.append(window.compare_and_swap(1, 7, rank) == 1)
    good.append(window.compare_and_swap(1, 8, rank) == 7)
    # the other threads of a rank run while it waits
    if rank == 0:
        threading.Timer(0.2, lambda: world.allgather(np.ones(1))).start()
        window.wait_signal(3, 1)
    else:
        world.allgather(np.ones(1))
        window.signal(0, 1, by=3)
    good.append(window.signals(1) == (3 if rank == 0 else 0))
    kept, theirs = window.array, window.of(other)
    window.fence()
theirs[0] = 40 + rank                               # stays mapped
world.barrier()
good.append(kept.reshape(-1)[0] == 40 + other)
good.append(repr(window) == "<ropewalk.Window, closed>")
window.close()
def refused(text, wrong, kind=ropewalk.ArgumentError):
    try: wrong()
    except kind as error: good.append(str(error).startswith(text) or str(error))
    else: good.append("no error: " + text)
refused("window: closed", lambda: window.put(1, 0))
with ropewalk.Window(4, np.float32) as window:
    for text, wrong in (
        ("rank: 2", lambda: window.put(np.zeros(1, "f4"), 2)),
        ("rank: not an integer", lambda: window.of(None)),
        ("offset: 8 bytes at 12", lambda: window.put(np.zeros(2, "f4"), 0, 3)),
        ("offset: not an integer", lambda: window.get(np.zeros(2, "f4"), 0, -1)),
        ("offset: 4611", lambda: window.put(np.zeros(2, "f4"), 0, 1 << 62)),
        ("array: dtype float64, expected float32", lambda: window.put(np.zeros(2), 0)),
        ("out: dtype float64, expected float32", lambda: window.get(np.zeros(2), 0)),
        ("op: 'bogus'", lambda: window.accumulate(np.zeros(2, "f4"), 0, 0, "bogus")),
        ("op: average", lambda: window.accumulate(np.zeros(2, "f4"), 0, 0, "average")),
        ("type: ", lambda: window.accumulate(np.zeros(2, "f4"), 0, 0, "bxor")),
        ("value: 'x'", lambda: window.fetch_and_op("x", 0)),
        ("desired: 1j", lambda: window.compare_and_swap(0, 1j, 0)),
        ("index: signal 8 of 8", lambda: window.signal(0, 8)),
        ("by: not an integer", lambda: window.signal(0, 0, -1)),
        ("value: not an integer", lambda: window.wait_signal(-1)),
    ):
        refused(text, wrong)
# What is wrong on one rank is an error on both.
kind, count = (object, 8) if rank == 0 else ("f8", -3)
refused("dtype: object" if rank == 0 else "", lambda: ropewalk.Window(2, kind))
refused("signals: -3" if rank == 1 else "", lambda: ropewalk.Window(2, signals=count))
bad = [(at, str(one)) for at, one in enumerate(good) if isinstance(one, str) or not one]
tell(json.dumps(bad or len(good)))
"""


@mpis
def test_calls_arrays_and_errors(path, tmp_path):
    told, _ = run_ranks(path, 2, PATH + CALLS, tmp_path)
    assert [json.loads(one) for one in told] == [29, 29]


APART = """
import numpy as np, ropewalk
good = []
with ropewalk.Window(8) as window:
    rank = window.rank
    other = 1 - rank
    good.append(not window.is_near(other) and window.is_near(rank))
    try:
        window.of(other)
    except ropewalk.UnsupportedError as error:
        good.append("is on another node" in str(error))
    window.put(np.full(8, rank + 1.0), other)
    window.flush()
    window.fence()
    good.append(window.array.tolist() == [other + 1.0] * 8)
    kept = window.array
good.append(kept.tolist() == [other + 1.0] * 8)
# An error takes one rank away: the other one does not wait for it.
try:
    with ropewalk.Window(8) as window:
        if rank == 0:
            raise ValueError("gone")
        while True:
            window.fetch(0)
except (ValueError, ropewalk.PeerDeadError) as error:
    good.append(("gone" if rank == 0 else "has left the window") in str(error))
# One that is forgotten is no reason to wait, either.
forgotten = ropewalk.Window(8)
forgotten.fence()
del forgotten
tell(str(good))
"""


@mpis
def test_ranks_on_several_nodes(path, tmp_path, monkeypatch):
    monkeypatch.setenv("ROPEWALK_NODES", "1")
    told, _ = run_ranks(path, 2, PATH + APART, tmp_path)
    assert told == ["[True, True, True, True, True]"] * 2
