"""ropewalk.Communicator: random calls against NumPy, odd arrays, errors, coroutines, split."""

import ast
import json
import pathlib

import numpy as np
import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core, _given, collectives
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

PATH = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"

# ---- random calls: every rank knows the arrays of all, and works out the result by NumPy ---------

RANDOM = """
import json, numpy as np, ropewalk
from functools import reduce as fold
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
FOLDS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
         "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
         "land": lambda a, b: np.logical_and(a, b), "lor": lambda a, b: np.logical_or(a, b),
         "lxor": lambda a, b: np.logical_xor(a, b)}
# Over nodes MPI makes some reductions, and not every MPI has a type for float16.
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
         "float32", "float64", "complex64", "complex128", "bool"]
if comm.nodes > 1: TYPES.remove("float16")

def ops_of(kind):
    if kind == "b": return ["land", "lor", "lxor"]
    if kind == "c": return ["sum", "prod"]
    return list(FOLDS) if kind in "iu" else ["sum", "prod", "max", "min"]

def values(random, shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == "b": return random.integers(0, 2, shape).astype(bool)
    if kind in "iu": return random.integers(0, 100, shape).astype(dtype)
    made = random.integers(-4, 5, shape) / 2.0
    return (made + 1j * made[::-1] if kind == "c" and made.ndim else made).astype(dtype)

def laid_out(random, array):  # the same elements, in memory of another kind
    way = random.integers(0, 7)
    if way == 0: return array.copy()
    if way == 4 and array.ndim: return array[::-1].copy()[::-1]  # strides below 0
    if way == 5:  # one element, shown everywhere: strides of 0
        made = np.broadcast_to(array.flat[0], array.shape) if array.size else array
        return made if np.array_equal(made, array) else array.copy(order="K")
    if way == 6:
        made = array.copy(); made.flags.writeable = False
        return made
    if way == 1:
        made = ropewalk.empty(array.shape, array.dtype); made[...] = array
        return made
    if way == 2: return np.asfortranarray(array)
    wide = np.zeros((*array.shape, 2), array.dtype); wide[..., 0] = array
    return wide[..., 0]

def target(random, shape, dtype):  # None, or memory of another kind
    way = random.integers(0, 3)
    if way == 0: return None
    return np.empty(shape, dtype) if way == 1 else ropewalk.empty(shape, dtype)

def close(result, expected):
    if result.shape != expected.shape or result.dtype != expected.dtype: return False
    if expected.dtype.kind in "fc":
        return np.allclose(result, expected, rtol=1e-2 if expected.dtype.itemsize == 2 else 1e-5)
    return np.array_equal(result, expected)

def call(random, name, *given, **more):  # here, or started
    if random.integers(0, 2) == 0: return getattr(comm, name)(*given, **more)
    return getattr(comm, "start_" + name)(*given, **more).result()

bad = []
def case(number):
    shared = np.random.default_rng([SEED, number])       # the same on all ranks
    own = np.random.default_rng([SEED, number, 7 + rank])  # how this rank lays its arrays out
    dtype = np.dtype(shared.choice(TYPES))
    rows = int(shared.choice([0, 1, 2, 3, 40, 3000]))
    rest = tuple(int(x) for x in shared.integers(1, 4, shared.integers(0, 3)))
    name = shared.choice(["allreduce", "reduce", "scan", "exscan", "reduce_scatter", "broadcast",
                          "allgather", "gather", "scatter", "alltoall", "allgatherv", "gatherv",
                          "scatterv", "alltoallv", "in place"])
    op = str(shared.choice(ops_of(dtype.kind)))
    root = int(shared.integers(0, size))
    counts = [int(x) for x in shared.integers(0, 4, size)]
    table = shared.integers(0, 3, (size, size))
    starts = bool(shared.integers(0, 2))
    def combine(parts):
        total = fold(FOLDS[op], parts)
        return np.asarray(total).astype(dtype)
    def all_ranks(shape_of):
        return [values(np.random.default_rng([SEED, number, 1000 + r]), shape_of(r), dtype)
                for r in range(size)]
    def check(result, expected):
        good = result is None if expected is None else close(result, expected)
        if not good: bad.append([number, str(name), str(dtype), op, rows, rest, rank])
    shape = (rows, *rest)
    if name in ("allreduce", "scan", "exscan", "reduce", "in place"):
        parts = all_ranks(lambda r: shape)
        mine = laid_out(own, parts[rank])
        out = target(own, shape, dtype)
        if name == "in place":
            both_ways = parts[rank].copy()
            check(call(own, "allreduce", both_ways, both_ways[...], op=op), combine(parts))
            check(both_ways, combine(parts))
            both_ways = parts[rank].copy()
            check(call(own, "scan", both_ways, both_ways, op=op), combine(parts[:rank + 1]))
            table_of_all = np.empty((size, *shape), dtype); table_of_all[rank] = parts[rank]
            check(call(own, "allgather", table_of_all[rank], table_of_all), np.stack(parts))
        elif name == "reduce":
            check(call(own, "reduce", mine, out, op=op, root=root),
                  combine(parts) if rank == root else None)
        elif name == "allreduce": check(call(own, "allreduce", mine, out, op=op), combine(parts))
        elif name == "scan": check(call(own, "scan", mine, out, op=op), combine(parts[:rank + 1]))
        else:
            result = call(own, "exscan", mine, out, op=op)
            if rank > 0: check(result, combine(parts[:rank]))
    elif name == "reduce_scatter":
        dealt = counts if starts else [rows] * size
        first = [sum(dealt[:r]) for r in range(size + 1)]
        parts = all_ranks(lambda r: (sum(dealt), *rest))
        check(call(own, name, laid_out(own, parts[rank]),
                   target(own, (dealt[rank], *rest), dtype), op=op,
                   counts=dealt if starts else None),
              combine(parts)[first[rank]:first[rank + 1]])
    elif name == "broadcast":
        parts = all_ranks(lambda r: shape)
        mine = laid_out(own, parts[rank]) if rank == root else parts[rank].copy()
        call(own, name, mine, root=root)
        check(np.asarray(mine), parts[root])
    elif name in ("allgather", "gather"):
        parts = all_ranks(lambda r: shape)
        out = target(own, (size, *shape), dtype)
        more = {} if name == "allgather" else {"root": root}
        check(call(own, name, laid_out(own, parts[rank]), out, **more),
              np.stack(parts) if name == "allgather" or rank == root else None)
    elif name == "scatter":
        whole = all_ranks(lambda r: (size, *shape))[root]
        out = np.empty(shape, dtype) if rank != root else target(own, shape, dtype)
        check(call(own, name, laid_out(own, whole) if rank == root else None, out, root=root),
              whole[rank])
    elif name == "alltoall":
        parts = all_ranks(lambda r: (size * rows, *rest))
        check(call(own, name, laid_out(own, parts[rank]), target(own, (size * rows, *rest), dtype)),
              np.concatenate([part[rank * rows:(rank + 1) * rows] for part in parts]))
    elif name in ("allgatherv", "gatherv"):
        parts = all_ranks(lambda r: (counts[r], *rest))
        more = {} if name == "allgatherv" else {"root": root}
        check(call(own, name, laid_out(own, parts[rank]), target(own, (sum(counts), *rest), dtype),
                   counts=counts if starts else None, **more),
              np.concatenate(parts) if name == "allgatherv" or rank == root else None)
    elif name == "scatterv":
        whole = all_ranks(lambda r: (sum(counts), *rest))[root]
        out = np.empty((counts[rank], *rest), dtype) if rank != root else None
        first = sum(counts[:rank])
        given = (laid_out(own, whole), counts) if rank == root else (None, ())
        check(call(own, name, *given, out, root=root), whole[first:first + counts[rank]])
    else:
        parts = all_ranks(lambda r: (int(table[r].sum()), *rest))
        def block(source):
            first = int(table[source][:rank].sum())
            return parts[source][first:first + int(table[source][rank])]
        receives = table[:, rank].tolist() if starts else None
        check(call(own, name, laid_out(own, parts[rank]), table[rank].tolist(), receives,
                   target(own, (int(table[:, rank].sum()), *rest), dtype)),
              np.concatenate([block(r) for r in range(size)]))

for number in range(CASES): case(number)
tell(json.dumps(bad[:3]))
"""


@mpis
@pytest.mark.parametrize(("ranks", "nodes"), [(1, ""), (2, ""), (3, ""), (4, "2")])
def test_random_calls(path, tmp_path, monkeypatch, ranks, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    code = RANDOM.replace("SEED", str(ranks)).replace("CASES", "150")
    told, _ = run_ranks(path, ranks, code, tmp_path)
    assert told == ["[]"] * ranks


# ---- arrays of every kind ------------------------------------------------------------------------

ARRAYS = """
import json, numpy as np, ropewalk
from support import DlpackOnly
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
good = []
# what only speaks DLPack, at either end
source = np.full((2, 3), rank + 1.0, np.float32); result = np.zeros((2, 3), np.float32)
comm.allreduce(DlpackOnly(source), DlpackOnly(result))
good.append((result == size * (size + 1) / 2).all())
good.append(comm.allreduce(DlpackOnly(source)).dtype == np.float32)
# the buffer protocol alone
import array
words = array.array("d", [rank, 2.0])
comm.allreduce(words, words)
good.append(words.tolist() == [sum(range(size)), 2.0 * size])
good.append(bytes(comm.broadcast(bytearray(b"abc") if rank == 0 else bytearray(3))) == b"abc")
good.append(bytes(comm.allgatherv(b"ab"[rank:])) == b"ab" + b"b" * (size - 1))
good.append(bytes(comm.broadcast(b"xy" if rank == 0 else bytearray(2))) == b"xy")
# numbers and lists
good.append(comm.allreduce(3).item() == 3 * size and comm.allreduce(3).shape == ())
good.append(comm.allreduce([1, 2]).tolist() == [size, 2 * size])
# what has no word in DLPack: moved, not reduced
dates = np.array(["2026-01-01", "2026-01-02"], "M8[D]") + rank
good.append(comm.allgather(dates).tolist() == [(dates - rank + r).tolist() for r in range(size)])
pairs = np.array([(rank, 0.5)], [("i", "i4"), ("x", "f8")])
good.append(comm.allgather(pairs)["i"].ravel().tolist() == list(range(size)))
swapped = np.array([rank], ">i4")
good.append(comm.allgather(swapped).ravel().tolist() == list(range(size)))
try:
    comm.allreduce(dates)
    good.append(False)
except ropewalk.ArgumentError as error:
    good.append("type" in str(error))
comm.barrier()
# large new arrays lie in communication memory, small ones in NumPy's
good.append(ropewalk.inspect(comm.allgather(np.zeros(5000))).peers_can_map)
good.append(not ropewalk.inspect(comm.allgather(np.zeros(3))).peers_can_map)
# all names that C has for numbers, and memory that is not aligned
codes = [np.ones(3, code) for code in "bBhHiIlLqQefdFD"]
good.append(all((comm.allreduce(one) == size).all() for one in codes))
good.append([comm.allreduce(one).dtype for one in codes] == [one.dtype for one in codes])
odd = np.frombuffer(b"x" + np.arange(4.0).tobytes(), "d", 4, 1)
good.append(comm.allreduce(odd).tolist() == [0.0, size, 2.0 * size, 3.0 * size])
# no elements
good.append(comm.allreduce(np.zeros((0, 4))).shape == (0, 4))
# bfloat16, where ml_dtypes is installed
try: import ml_dtypes
except ImportError: pass
else:
    halves = np.full(5, 1.5 + rank, ml_dtypes.bfloat16)
    total = comm.allreduce(halves)
    good.append(total.dtype == halves.dtype)
    good.append((total.astype(float) == sum(1.5 + r for r in range(size))).all())
tell(json.dumps([len(good), [i for i, one in enumerate(good) if not one]]))
"""


@mpis
def test_arrays_of_every_kind(path, tmp_path):
    told, _ = run_ranks(path, 2, PATH + ARRAYS, tmp_path)
    assert [json.loads(line) in ([18, []], [20, []]) for line in told] == [True, True], told


# ---- what one rank gets wrong is an error of all -------------------------------------------------

WRONG = """
import numpy as np, ropewalk
comm = ropewalk.Communicator()
good = np.ones(6, np.float32)
frozen = np.zeros(6, np.float32); frozen.flags.writeable = False
shared = np.zeros(16, np.float32)
structure = np.zeros(6, [("i", "i4"), ("x", "f4")])
def refused(text, wrong, right=lambda: comm.allreduce(good)):
    for start in (False, True):
        try:
            (wrong if comm.rank == 1 else right)()
            tell("no error")
        except ropewalk.ArgumentError as error:
            tell("refused" if text in str(error) or comm.rank == 0 else str(error))
for text, wrong in (
    ("op: 'mean'", lambda: comm.allreduce(good, op="mean")),
    ("7 elements, expected 6", lambda: comm.allreduce(good, np.zeros(7, np.float32))),
    ("type is not", lambda: comm.allreduce(good, np.zeros(6))),
    ("read-only", lambda: comm.allreduce(good, frozen)),
    ("not contiguous", lambda: comm.allreduce(good, np.zeros((6, 2), np.float32)[:, 0])),
    ("str", lambda: comm.allreduce(good, "text")),
    ("type cannot", lambda: comm.allreduce("text")),
    ("object", lambda: comm.allreduce([object()])),
    ("dtype object of NoneType", lambda: comm.allreduce(None)),
    ("array.astype('float32')", lambda: comm.allreduce(np.ones(6, ">f4"))),
    ("array.astype('complex128')", lambda: comm.allreduce(np.ones(6, np.clongdouble))),
    ("one by one, as array['i']", lambda: comm.allreduce(structure)),
    ("dtype >f8, expected >i8", lambda: comm.allgather(np.ones(2, ">i8"), np.ones((2, 2), ">f8"))),
    ("expected land, lor, lxor", lambda: comm.allreduce(good > 0)),
    ("shares memory", lambda: comm.allreduce(shared[:6], shared[2:8])),
    ("shares memory", lambda: comm.allreduce(shared[2:8], shared[:6])),
    ("shares memory", lambda: comm.allgather(shared[:8], shared)),
    ("shares memory", lambda: comm.allgatherv(shared[:8], shared[:10], counts=[2, 8])),
    ("op: None, expected one of", lambda: comm.allreduce(good, op=None)),
    ("op: <ufunc 'subtract'>, expected one of", lambda: comm.allreduce(good, op=np.subtract)),
    ("root: not an integer: 0.5", lambda: comm.reduce(good, root=0.5)),
    ("counts: 2 for this rank, expected 6", lambda: comm.allgatherv(good, counts=[6, 2])),
    ("send_counts: None, expected", lambda: comm.alltoallv(good, None)),
    ("send_counts: [7, -1], expected", lambda: comm.alltoallv(good, [7, -1])),
    ("send_counts: [6], expected", lambda: comm.alltoallv(good, [6])),
    ("root: 2", lambda: comm.reduce(good, root=2)),
    ("root: -1", lambda: comm.start_broadcast(good, root=-1)),
    ("divides by the 2 ranks", lambda: comm.alltoall(np.zeros(5))),
    ("counts: 3 entries", lambda: comm.reduce_scatter(good, counts=[2, 2, 2])),
    ("sum is 5", lambda: comm.reduce_scatter(good, counts=[2, 3])),
    ("out: None", lambda: comm.scatter()),
    ("", lambda: comm.allreduce(np.ones(5, np.float32))),  # not what the other rank sends
    ("", lambda: comm.allreduce(good, op="max")),
):
    refused(text, wrong)
for text, wrong in (
    ("color: 0.5, expected", lambda: comm.split(0.5)),
    ("color: 'a', expected", lambda: comm.split("a")),
    ("key: 1099511627776, expected", lambda: comm.split(0, key=1 << 40)),
):
    refused(text, wrong, right=lambda: comm.split(0))
tell("right" if (comm.allreduce(good) == 2).all() else "wrong")
comm.close()
try: comm.barrier()
except ropewalk.ArgumentError as error: tell("closed" if "closed" in str(error) else str(error))
"""


@mpis
def test_errors_on_every_rank(path, tmp_path):
    told, _ = run_ranks(path, 2, WRONG, tmp_path)
    assert sorted(set(told)) == ["closed", "refused", "right"]
    assert told.count("refused") == 2 * 2 * 36


# ---- coroutines, threads, split ------------------------------------------------------------------

ASYNC = """
import asyncio, gc, json, threading, numpy as np, ropewalk
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
good = []
async def many():
    pending = [comm.start_allreduce(np.full(1000, float(i + rank))) for i in range(20)]
    results = await asyncio.gather(*(wait(one) for one in pending))
    return [float(result[0]) for result in results]
async def wait(one): return await one
good.append(asyncio.run(many()) == [sum(i + r for r in range(size)) for i in range(20)])
# dropped before it is complete: it keeps its arrays to the end, and the next call is right
comm.start_allreduce(np.ones(100_000)); gc.collect()
good.append(comm.allreduce(1).item() == size)
# an error stays one, whoever asks and however often
odd = comm.start_allreduce(np.ones(5 + rank))
for ask in (odd.wait, odd.result, odd.test, odd.future().result):
    try: good.append(ask() == "no error")
    except ropewalk.ArgumentError: good.append(odd.done())
# futures, and several threads that wait for one call
from concurrent.futures import as_completed, wait as wait_for
started = [comm.start_allreduce(np.full(5000, float(i))) for i in range(8)]
called = []
futures = {one.future(): i for i, one in enumerate(started) for _ in range(2)}
for one in futures: one.add_done_callback(lambda done: called.append(futures[done]))
good.append(not next(iter(futures)).cancel())
good.append(all(one.result()[-1] == futures[one] * size for one in as_completed(futures)))
good.append(sorted(called) == sorted(futures.values()) and all(one.done() for one in started))
# other threads of this rank run while it waits
seen = threading.Event()
if rank == 0:
    def late():
        import time
        time.sleep(0.2); seen.set(); lone.barrier()
    lone = ropewalk.Communicator()
    thread = threading.Thread(target=late); thread.start(); comm.barrier(); thread.join()
else:
    lone = ropewalk.Communicator()
    lone.barrier(); comm.barrier()
good.append(rank != 0 or seen.is_set())
# a wait with a limit, which the call outlives
if rank == 0:
    alone = comm.start_barrier()
    for ask in (alone.wait, alone.result):
        try: good.append(ask(0.02) == "no error")
        except TimeoutError as error: good.append(f"after {0.02} s" in str(error))
    lone.barrier()
else:
    lone.barrier()
    alone = comm.start_barrier()
good.append(alone.wait(60) is None and alone.done())
# split
with ropewalk.Communicator() as all_ranks:
    half = all_ranks.split(rank % 2, key=-rank)
    mine = [r for r in range(size) if r % 2 == rank % 2]
    good.append((half.size, half.rank) == (len(mine), mine[::-1].index(rank)))
    good.append(half.allreduce(rank).item() == sum(mine))
    quarter = half.split(0)
    good.append(quarter.size == half.size)
    plan = ropewalk.ReductionPlan([np.ones(3)], communicator=half)
    plan.reduce(); plan.close()
    quarter.close(); half.close()
    none = all_ranks.split(None if rank == 0 else 0)
    good.append((none is None) == (rank == 0))
    try:
        all_ranks.split(-5 if rank == 0 else 1)
        good.append(False)
    except ropewalk.ArgumentError: good.append(True)
good.append("closed" in repr(all_ranks) and f"rank {rank} of {size}" in repr(comm))
tell(json.dumps([i for i, one in enumerate(good) if not one]))
"""


@mpis
def test_coroutines_threads_and_split(path, tmp_path):
    assert run_ranks(path, 3, ASYNC, tmp_path)[0] == ["[]"] * 3


MPI4PY = """
from mpi4py import MPI
import numpy as np
import ropewalk
pair = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank // 2)
comm = ropewalk.Communicator(pair)
tell("good" if comm.allreduce(1).item() == pair.size else "bad")
given = (np.arange(12).reshape(3, 4) + comm.rank) % 5
for name, ufunc, of_mpi in (
    ("max", np.maximum, MPI.MAX), ("min", np.minimum, MPI.MIN), ("sum", np.add, MPI.SUM),
    ("prod", np.multiply, MPI.PROD), ("land", np.logical_and, MPI.LAND),
    ("band", np.bitwise_and, MPI.BAND), ("lor", np.logical_or, MPI.LOR),
    ("bor", np.bitwise_or, MPI.BOR), ("lxor", np.logical_xor, MPI.LXOR),
    ("bxor", np.bitwise_xor, MPI.BXOR),
):
    expected = comm.allreduce(given, op=name)
    for op in (ufunc, of_mpi):
        got = comm.start_allreduce(given, op=op).result()
        tell("good" if (got == expected).all() else f"{op} is not {name}")
        if comm.size > 1 and name in ("sum", "max"):
            with ropewalk.ReductionPlan([given.copy()], op, communicator=pair) as plan: pass
for op in (MPI.MAXLOC, MPI.REPLACE, MPI.Op.Create(lambda a, b, c: None)):
    try: comm.allreduce(given, op=op); tell("no error")
    except ropewalk.ArgumentError: tell("good")
"""


@mpis
def test_a_communicator_of_mpi4py(path, tmp_path):
    pytest.importorskip("mpi4py")
    assert run_ranks(path, 3, MPI4PY, tmp_path)[0] == ["good"] * 3 * (1 + 2 * 10 + 3)


def test_every_started_form_is_there():
    """Each call that has a start_ form takes the same arguments there."""
    tree = ast.parse(pathlib.Path(collectives.__file__).read_text())
    methods = {
        node.name: ast.dump(node.args)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    started = [name for name in methods if name.startswith("start_")]
    assert len(started) == 15
    for name in started:
        assert methods[name] == methods[name.removeprefix("start_")], name


def test_types_are_those_of_the_library():
    for name, number in _given._TYPES.items():
        if name != "bfloat16":
            assert _core.describe_input(np.zeros(1, name))[2] == number
