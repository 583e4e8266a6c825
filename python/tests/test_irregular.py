"""ropewalk.IrregularHalo: random sparse matrices against NumPy, arrays, errors, ends."""

import json

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Every rank knows the whole matrix, and so the whole product.
SPARSE = """
import json, numpy as np, ropewalk
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
bad = []
for number in range(6):
    random = np.random.default_rng(number)
    counts = random.integers(0, 40, size) + (1 if number % 2 else 0)
    first = np.concatenate([[0], np.cumsum(counts)])
    whole = int(first[-1])
    inner = [(), (3,)][number % 2]
    matrix = random.integers(-3, 4, (whole, whole)) * (random.random((whole, whole)) < 0.1)
    vector = random.integers(-9, 10, (whole, *inner))
    rows, begin = int(counts[rank]), int(first[rank])
    mine = matrix[begin : begin + rows]
    used = np.flatnonzero(mine.any(axis=0))
    ghosts = used[(used < begin) | (used >= begin + rows)]
    np.random.default_rng(rank).shuffle(ghosts)  # in any order
    with ropewalk.IrregularHalo.by_rows(rows, ghosts, np.int64, element=inner) as halo:
        x = np.zeros((rows + len(ghosts), *inner), np.int64)
        x[:rows] = vector[begin : begin + rows]
        local = np.concatenate([mine[:, begin : begin + rows], mine[:, ghosts]], axis=1)
        for turn in range(4):
            if turn % 2: halo.exchange(x)
            else:
                halo.start(x)
                while not halo.test(): pass
            if not (np.tensordot(local, x, 1) == (matrix @ vector.reshape(whole, -1))
                    .reshape(whole, *inner)[begin : begin + rows]).all():
                bad.append((number, turn))
            x[rows:] = -1
        # the other way round: each owner gets what the ghosts of it hold
        x[:] = 1
        x[rows:] = rank + 1
        halo.combine(x)
        everyone = comm.allgatherv(ghosts.astype(np.int64),
                                   counts=comm.allgather(np.array([len(ghosts)])).ravel())
        of = np.repeat(np.arange(size) + 1, comm.allgather(np.array([len(ghosts)])).ravel())
        wanted = np.ones(whole, np.int64)
        np.add.at(wanted, everyone, of)
        got = x[:rows].reshape(rows, -1)
        if not (got == wanted[begin : begin + rows, None]).all(): bad.append((number, "combine"))
tell(json.dumps(bad))
"""


@mpis
@pytest.mark.parametrize(("ranks", "nodes"), [(1, None), (3, None), (4, "2")])
def test_products_of_sparse_matrices(path, tmp_path, monkeypatch, ranks, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    told, _ = run_ranks(path, ranks, SPARSE, tmp_path)
    assert told == ["[]"] * ranks


CALLS = """
import json, numpy as np, ropewalk
good = []
world = ropewalk.Communicator()
rank, other = world.rank, 1 - world.rank
def refused(text, wrong):
    try: wrong()
    except ropewalk.ArgumentError as error: good.append(text in str(error) or str(error))
    else: good.append("no error: " + text)
# elements of two numbers; this rank's last two are the first two of the other, in turn
halo = ropewalk.IrregularHalo({other: ([1, 0], [2, 3])}, (4, 2), np.float32, world)
x = np.arange(8, dtype="f4").reshape(4, 2) + 100 * rank
halo.exchange(x)
good.append(x[2:].tolist() == [[2 + 100 * other, 3 + 100 * other], [100 * other, 1 + 100 * other]])
good.append(halo.near_bytes == 16 and halo.far_bytes == 0)
good.append("4 elements, sends 16 bytes inside the node and 0 to others" in repr(halo))
halo.combine(x, op="max")
good.append(x[:2].tolist() == [[100 * rank, 1 + 100 * rank], [2 + 100 * rank, 3 + 100 * rank]])
for text, wrong in (
    ("array: float64", lambda: halo.exchange(x.astype("f8"))),
    ("array: float32 of shape (3, 2)", lambda: halo.start(x[:3])),
    ("array: list", lambda: halo.start([1])),
    ("array: not contiguous", lambda: halo.start(np.zeros((2, 4), "f4").T)),
    ("op: 'bogus'", lambda: halo.combine(x, "bogus")),
    ("op: bxor is not defined", lambda: halo.combine(x, "bxor")),
):
    refused(text, wrong)
halo.close()
good.append(repr(halo) == "<ropewalk.IrregularHalo, closed>")
refused("irregular halo: closed", lambda: halo.exchange(x))
# What is wrong on one rank is an error on both.
def lists(wrong): return wrong if rank == 0 else {other: ([], [])}
for text, wrong in (
    ("neighbors: list", []),
    ("neighbors: 'x'", {"x": ([], [])}),
    ("neighbors[1]: expected", {1: 5}),
    ("neighbors[1], send: float64", {1: ([0.5], [])}),
    ("neighbors[0].send[0]: 9", {1: ([9], [])}),
):
    text = text if rank == 0 or "[0]" in text else ""
    refused(text, lambda: ropewalk.IrregularHalo(lists(wrong), 4))
refused("rows: -1" if rank == 0 else "", lambda: ropewalk.IrregularHalo.by_rows(rank - 1, []))
refused("is listed twice", lambda: ropewalk.IrregularHalo.by_rows(2, [2, 2] if rank == 0 else []))
tell(json.dumps([(at, str(one)) for at, one in enumerate(good) if isinstance(one, str) or not one]
                or len(good)))
"""


@mpis
def test_calls_arrays_and_errors(path, tmp_path):
    told, _ = run_ranks(path, 2, CALLS, tmp_path)
    assert [json.loads(one) for one in told] == [19, 19]
