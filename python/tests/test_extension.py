"""The compiled part: arrays in the arena, and halos. Ranks are started under the MPIs of set-up."""

import json
import subprocess
import sys

import numpy as np
import pytest

import ropewalk
from support import environment, mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)


def test_empty_and_zeros():
    array = ropewalk.zeros((3, 5), np.float32)
    assert array.shape == (3, 5)
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert not array.any()
    array += 1
    assert array.sum() == 15
    assert ropewalk.empty(7).shape == (7,)
    assert ropewalk.empty(()).shape == ()
    assert ropewalk.empty((0, 4)).size == 0
    assert ropewalk.empty((2, 3), order="F").flags.f_contiguous
    record = np.dtype([("a", "i4"), ("b", "f8", (2,))])
    assert ropewalk.zeros(4, record)["b"].shape == (4, 2)
    assert ropewalk.zeros(3, "M8[s]").dtype == np.dtype("M8[s]")


def test_memory_of_a_node_or_a_kind():
    try:
        array = ropewalk.zeros((1000, 300), kind="ddr")
    except ropewalk.MemoryError as error:
        pytest.skip(str(error))  # a container that filters mbind
    assert not array.any()
    found = ropewalk.inspect(array)
    assert found.resident_bytes == array.nbytes
    assert not found.peers_can_map
    node = next(number for number, size in enumerate(found.node_bytes) if size)
    assert ropewalk.inspect(ropewalk.empty(5, node=np.int64(node))).node_bytes[node] == 40
    for words, start in (
        ({"node": 900}, "node: found 900"),
        ({"node": -1}, "node: -1"),
        ({"kind": "mcdram"}, "memory kind: found"),
        ({"kind": "ddr", "node": node}, "node: found"),
    ):
        with pytest.raises(ropewalk.ArgumentError, match=start):
            ropewalk.empty(5, **words)


def test_recycled_memory_is_zeroed():
    for _ in range(3):
        array = ropewalk.zeros(100_000)
        assert not array.any()
        array[:] = 7
        del array


def test_views_keep_the_block_alive():
    before = ropewalk.arena_statistics().live_bytes
    array = ropewalk.zeros(1 << 20, np.uint8)
    view = array[10:20]
    del array
    assert ropewalk.arena_statistics().live_bytes >= before + (1 << 20)
    view[:] = 3
    assert view.sum() == 30
    del view
    assert ropewalk.arena_statistics().live_bytes == before


def test_cache_is_counted_and_trimmed():
    array = ropewalk.empty(3 << 20, np.uint8)
    del array
    hits = ropewalk.arena_statistics().cache_hits
    array = ropewalk.empty(3 << 20, np.uint8)
    assert ropewalk.arena_statistics().cache_hits == hits + 1
    del array
    ropewalk.trim()
    assert ropewalk.arena_statistics().cached_bytes == 0


def test_inspect():
    array = ropewalk.zeros(1 << 19)
    found = ropewalk.inspect(array)
    assert found.bytes == array.nbytes
    assert found.resident_bytes == array.nbytes
    assert sum(found.pages.values()) == found.resident_bytes
    assert found.peers_can_map
    assert found.alignment >= 128
    other = np.ones(100_000)
    found = ropewalk.inspect(other[::-2])
    assert not found.peers_can_map
    assert 0 < found.bytes <= other.nbytes


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: ropewalk.empty(-1), "shape"),
        (lambda: ropewalk.empty((1 << 40, 1 << 40)), "shape"),
        (lambda: ropewalk.empty(2, object), "dtype"),
        (lambda: ropewalk.inspect(np.empty(0)), "array"),
    ],
)
def test_wrong_arguments(call, word):
    with pytest.raises(ropewalk.ArgumentError, match=f"^{word}: ") as error:
        call()
    assert isinstance(error.value, ropewalk.Error)
    assert isinstance(error.value, ValueError)


def test_no_memory():
    with pytest.raises(ropewalk.MemoryError) as error:
        ropewalk.empty(1 << 50, np.uint8)
    assert isinstance(error.value, MemoryError)


def test_without_mpi():
    code = (
        "import ropewalk\n"
        "try: ropewalk.CartesianGrid([1])\n"
        "except ropewalk.MpiError as error: print('ropewalk run' in str(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "True", done.stderr


# ---- under a real MPI ----------------------------------------------------------------------------

HALO = """
import json, numpy as np, ropewalk
grid = ropewalk.CartesianGrid([1, RANKS], [True, False])
n, m, ghost = 5, 4, 2
with ropewalk.EndpointSet(lanes=LANES) as endpoints:
    field = ropewalk.zeros((n + 2 * ghost, m + 2 * ghost, 3), np.int32)
    other = ropewalk.zeros((n + 2, m + 2), np.float64)
    # what the whole lattice holds, known to every rank
    def value(i, j): return (i % n) * 1000 + j + 1
    J = np.arange(m) + grid.coordinates[1] * m
    inner = value(np.arange(n)[:, None], J[None, :])
    field[ghost:-ghost, ghost:-ghost] = inner[..., None] * np.array([1, 2, 3])
    other[1:-1, 1:-1] = inner
    halo = ropewalk.Halo(grid, endpoints, field, ghost, strategy="STRATEGY", corners=True)
    second = ropewalk.Halo(grid, endpoints, [other], strategy="STRATEGY")
    for repeat in range(3):
        halo.start()
        while not halo.test(): pass
        halo.wait()
        second.exchange()
    I = np.arange(-ghost, n + ghost); J = np.arange(-ghost, m + ghost) + grid.coordinates[1] * m
    inside = (J >= 0) & (J < m * RANKS)
    want = np.where(inside[None, :], value(I[:, None], J[None, :]), 0)
    good = np.array_equal(field, want[..., None] * np.array([1, 2, 3]))
    sides = want[ghost - 1:-ghost + 1, ghost - 1:-ghost + 1].astype(float)
    sides[[0, 0, -1, -1], [0, -1, 0, -1]] = 0
    good = good and np.array_equal(other, sides)
    left, right = grid.neighbour([0, -1]), grid.neighbour([0, 1])
    send = [None, None, np.full(9, 10 + grid.rank), np.full(9, 20 + grid.rank)]
    receive = [None, None, np.zeros(9, int), np.zeros(9, int)]
    ropewalk.Halo.faces(grid, endpoints, send, receive).exchange()
    good = good and (right is None or (receive[2] == 20 + right).all())
    good = good and (left is None or (receive[3] == 10 + left).all())
    ring = ropewalk.zeros(1000)
    if grid.size > 1:
        mine = np.full(1000, float(grid.rank))
        plan = endpoints.plan(sends=[(mine, (grid.rank + 1) % grid.size)],
                              receives=[(ring, (grid.rank - 1) % grid.size)])
        plan.start(); plan.wait()
        good = good and (ring == (grid.rank - 1) % grid.size).all()
    tell(json.dumps([bool(good), endpoints.lanes, endpoints.rank, endpoints.size]))
"""

WRONG = """
import numpy as np, ropewalk
grid = ropewalk.CartesianGrid([1, 2])
endpoints = ropewalk.EndpointSet(lanes=1)
for arrays in (
    np.zeros((6, 6))[:, ::2] if grid.rank == 1 else np.zeros((6, 6)),  # one rank alone is wrong
    np.zeros((6 + 2 * grid.rank, 6)),
):
    try:
        ropewalk.Halo(grid, endpoints, arrays)
        tell("no error")
    except ropewalk.ArgumentError as error:
        tell("refused")
try:
    ropewalk.CartesianGrid([3, 5])
except ropewalk.ArgumentError as error:
    tell("refused")
endpoints.close()
try:
    endpoints.lanes
except ropewalk.ArgumentError as error:
    tell("refused")
"""


@mpis
@pytest.mark.parametrize(
    ("ranks", "lanes", "strategy"), [(1, 1, "concurrent"), (2, 2, "threaded"), (3, 1, "automatic")]
)
def test_halo(path, tmp_path, ranks, lanes, strategy):
    code = HALO.replace("RANKS", str(ranks)).replace("LANES", str(lanes))
    told, _ = run_ranks(path, ranks, code.replace("STRATEGY", strategy), tmp_path)
    found = sorted(json.loads(line) for line in told)
    assert found == [[True, lanes, rank, ranks] for rank in range(ranks)]


@mpis
def test_errors_on_every_rank(path, tmp_path):
    assert run_ranks(path, 2, WRONG, tmp_path)[0] == ["refused"] * 8


@mpis
def test_an_uncaught_error_ends_the_other_ranks(path, tmp_path):
    code = (
        "import numpy as np, ropewalk\n"
        "endpoints = ropewalk.EndpointSet(lanes=1)\n"
        "if endpoints.rank == 1: raise KeyError('this rank alone')\n"
        "endpoints.receive(np.zeros(1), 1)\n"
    )
    assert "this rank alone" in run_ranks(path, 2, code, tmp_path, status=1)[1]


@mpis
def test_mpi4py(path, tmp_path):
    pytest.importorskip("mpi4py")
    code = "from mpi4py import MPI\n" + HALO
    code = code.replace("[True, False])", "[True, False], MPI.COMM_WORLD.Dup())")
    code = code.replace("EndpointSet(", "EndpointSet(MPI.COMM_WORLD, ")
    code = code.replace("RANKS", "2").replace("LANES", "1").replace("STRATEGY", "concurrent")
    told, _ = run_ranks(path, 2, code, tmp_path)
    assert [json.loads(line)[0] for line in told] == [True, True]
