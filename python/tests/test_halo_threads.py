"""Halos whose copies several threads share: ropewalk.Halo(..., threads=N) against NumPy."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Each rank knows the whole periodic array, of which it has a slab with ghosts in both dimensions.
SHARED = """
import numpy as np, ropewalk
ROWS, COLUMNS = 70, 5000  # a face of rows has 39 KiB, which is divided
grid = ropewalk.CartesianGrid([SIZE, 1], True)
bad = []
def message(call):
    try: call()
    except ropewalk.ArgumentError as error: return str(error)
    return "no error"
with ropewalk.EndpointSet(lanes=1) as endpoints:
    for threads in 1, 2, 3:
        for strategy in "concurrent", "direct", "automatic":
            mine = ropewalk.zeros((ROWS + 2, COLUMNS + 2))
            halo = ropewalk.Halo(grid, endpoints, mine, strategy=strategy, threads=threads)
            if halo.threads != threads: bad.append(halo.threads)
            for step in range(3):
                whole = np.arange(SIZE * ROWS * COLUMNS, dtype=float).reshape(-1, COLUMNS) + step
                mine[...] = -1
                rows = np.arange(-1, ROWS + 1) + grid.rank * ROWS
                columns = np.arange(-1, COLUMNS + 1)
                expected = whole[np.ix_(rows % len(whole), columns % COLUMNS)]
                mine[1:-1, 1:-1] = expected[1:-1, 1:-1]
                if step: halo.exchange()
                else: halo.start(); halo.test(); halo.wait()
                for corner in np.ix_([0, -1], [0, -1]), : expected[corner] = -1
                if not np.array_equal(mine, expected): bad.append([threads, strategy, step])
    faces = ropewalk.Halo.buffers(grid, endpoints, [4000, 4000, None, None], threads=2)
    faces.send_buffer(0)[...] = grid.rank
    faces.send_buffer(1)[...] = grid.rank + 100
    faces.exchange()
    if not (faces.receive_buffer(1) == grid.neighbour([-1, 0])).all(): bad.append("buffers")
    packets = [np.full(5000, float(grid.rank)), np.empty(5000)]
    ropewalk.Halo.faces(grid, endpoints, [packets[0], packets[0], None, None],
                        [np.empty(5000), packets[1], None, None], threads=2).exchange()
    if not (packets[1] == grid.neighbour([-1, 0])).all(): bad.append("packets")
    for wrong in -1, 5000, "x":
        told = message(lambda: ropewalk.Halo(grid, endpoints, mine, threads=wrong))
        if "threads" not in told: bad.append(told)
tell(str(bad))
"""


@mpis
@pytest.mark.parametrize("ranks", [1, 3])
def test_threads_share_copies(path, tmp_path, ranks):
    told, _ = run_ranks(path, ranks, SHARED.replace("SIZE", str(ranks)), tmp_path)
    assert told == ["[]"] * ranks
