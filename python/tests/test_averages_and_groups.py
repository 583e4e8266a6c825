"""These tests compare averages of ropewalk.Communicator with NumPy, and make groups of ranks."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

AVERAGES = """
import json, numpy as np, ropewalk
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
TYPES = ["float32", "float64", "complex64", "complex128"] + ["float16"] * (comm.nodes <= 1)
bad = []
def check(result, expected, *what):
    tolerance = 1e-3 if expected.dtype.itemsize == 2 else 1e-5
    good = result.shape == expected.shape and result.dtype == expected.dtype
    if not good or not np.allclose(result, expected, rtol=tolerance, atol=1e-6):
        bad.append([str(one) for one in what])
for number in range(60):
    random = np.random.default_rng([SEED, number])  # the same on all ranks
    dtype = np.dtype(str(random.choice(TYPES)))
    rows = int(random.choice([0, 1, 3, 257, 40000]))
    counts = [int(one) for one in random.integers(0, 900, size)]
    root = int(random.integers(0, size))
    started = bool(random.integers(0, 2))
    def parts(rows):
        made = random.normal(size=(size, rows, 2))
        return (made[..., :1] + (1j * made[..., 1:] if dtype.kind == "c" else 0)).astype(dtype)
    def mean(given):
        wide = np.complex128 if dtype.kind == "c" else np.float64
        return given.astype(wide).sum(axis=0).__truediv__(size).astype(dtype)
    def call(name, *arguments, **more):
        if not started: return getattr(comm, name)(*arguments, op="average", **more)
        return getattr(comm, "start_" + name)(*arguments, op="average", **more).result()
    given = parts(rows)
    check(call("allreduce", given[rank]), mean(given), number, "allreduce", dtype, rows)
    place = ropewalk.empty(given[rank].shape, dtype); place[...] = given[rank]
    check(call("allreduce", place, place), mean(given), number, "in place", dtype, rows)
    result = call("reduce", given[rank], root=root)
    if rank == root: check(result, mean(given), number, "reduce", dtype, rows)
    elif result is not None: bad.append("not the root")
    given = parts(sum(counts))
    first = sum(counts[:rank])
    check(call("reduce_scatter", given[rank], counts=counts),
          mean(given)[first:first + counts[rank]], number, "reduce_scatter", dtype, counts)
# Sums of float16 that are beyond its range have an average within: divided before it is rounded.
if comm.nodes == 1:
    large = np.full(300, 60000, np.float16)
    check(comm.allreduce(large, op="average"), large, "beyond the range")
    check(comm.reduce_scatter(np.repeat(large, size), op="average"), large, "of its part")
def message(call):
    try: call()
    except ropewalk.ArgumentError as error: return str(error)
    return "no error"
def refusals():
    whole = np.arange(4)
    for call in (lambda: comm.allreduce(whole, op="average"),
                 lambda: comm.reduce(whole, op="average"),
                 lambda: comm.reduce_scatter(np.arange(size), op="average"),
                 lambda: comm.allreduce(np.zeros(3, bool), op="average")):
        if "is not defined for elements of type" not in message(call): bad.append(message(call))
    if "scans do not have" not in message(lambda: comm.scan(np.zeros(2), op="average")):
        bad.append("scan")
    told = message(lambda: comm.allreduce(np.zeros(2), op="mean"))
    if ", average" not in told: bad.append(told)
    if size > 1 and comm.nodes == 1:  # one rank alone averages; over nodes ranks do not compare
        op = "average" if rank == 0 else "sum"
        told = message(lambda: comm.allreduce(np.zeros(2), op=op))
        if told == "no error": bad.append("one alone")
refusals()
check(comm.allreduce(np.ones(3), op="sum"), np.full(3, float(size)), "afterwards")
tell(json.dumps(bad[:3]))
"""


@mpis
@pytest.mark.parametrize(("ranks", "nodes"), [(1, ""), (2, ""), (3, ""), (4, "2")])
def test_averages(path, tmp_path, monkeypatch, ranks, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    code = AVERAGES.replace("SEED", str(ranks))
    told, _ = run_ranks(path, ranks, code, tmp_path)
    assert told == ["[]"] * ranks


GROUPS = """
import json, numpy as np, ropewalk
world = ropewalk.Communicator()
rank, size = world.rank, world.size
bad = []
for ranks in ([0], [size - 1, 0] if size > 1 else [0], list(range(size)), list(range(size))[::-1],
              list(range(0, size, 2)), (np.int64(0),)):
    found = world.group(ranks)
    if rank not in ranks:
        if found is not None: bad.append([rank, "is in"])
        continue
    with found as group:
        if (group.rank, group.size) != (list(ranks).index(rank), len(ranks)):
            bad.append([rank, group.rank, group.size])
        if group.allgather(np.array(rank)).tolist() != [int(one) for one in ranks]:
            bad.append("order")
        inner = group.group([group.size - 1])  # a group of a group
        if (inner is None) != (group.rank != group.size - 1): bad.append("inner")
        if inner: inner.close()
def message(ranks):
    try: world.group(ranks)
    except ropewalk.Error as error: return str(error)
    return "no error"
for ranks, words in (([size], "expected ranks from 0"), ([-1], "ranks: -1"), ([0, 0], "twice"),
                     ([], "at least one"), (["a"], "a list of ranks"), (3, "a list of ranks")):
    if words not in message(ranks): bad.append(message(ranks))
if size > 1:  # one rank alone is wrong, or has another list
    if message([size] if rank == 1 else [0]) == "no error": bad.append("one alone")
    if "differ" not in message([rank]): bad.append("differ")
if world.allreduce(np.array(1)) != size: bad.append("afterwards")
tell(json.dumps(bad[:3]))
"""


@mpis
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_groups(path, tmp_path, ranks):
    told, _ = run_ranks(path, ranks, GROUPS, tmp_path)
    assert told == ["[]"] * ranks


NOTEBOOK = """
import ropewalk
comm = ropewalk.Communicator()
grid = ropewalk.CartesianGrid([comm.size])
with ropewalk.EndpointSet(lanes=1) as endpoints:
    halo = ropewalk.Halo.buffers(grid, endpoints, [3, 3])
    for one in (comm, grid, endpoints, halo, comm.start_barrier()):
        if not repr(one).startswith("<ropewalk."): tell("wrong: " + repr(one))
    tell(grid._repr_html_() + comm._repr_html_())
"""


@mpis
def test_objects_tell_a_notebook_what_they_are(path, tmp_path):
    (told,), _ = run_ranks(path, 1, NOTEBOOK, tmp_path)
    assert told.count("</code>") == 2
    assert "ropewalk.CartesianGrid, 1, this rank at (0,)" in told
    assert "rank 0 of 1" in told
