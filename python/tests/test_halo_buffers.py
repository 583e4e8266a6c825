"""These tests compare faces that ropewalk.Halo.buffers owns with plain NumPy, also with `put`."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Each rank knows the faces of all ranks, so it knows what its neighbours put.
FACES = """
import gc, json, weakref, numpy as np, ropewalk
SHAPE, PERIODIC, STRATEGY = GIVEN
grid = ropewalk.CartesianGrid(SHAPE, PERIODIC)
dimensions = len(SHAPE)
kind = np.dtype([("re", np.float32), ("im", np.float32)]) if dimensions == 1 else np.dtype(np.int64)
shapes = [shape for d in range(dimensions) for shape in [(d + 2, 3), (d + 2, 3)]]
if dimensions == 2: shapes[0] = shapes[1] = None  # nothing across the first dimension
def face(rank, direction, round):
    size = int(np.prod(shapes[direction]))
    numbers = np.arange(size) + 1000 * rank + 100 * direction + 10**6 * round
    made = np.zeros(shapes[direction], kind)
    if kind.names:
        made["re"] = numbers.reshape(made.shape); made["im"] = -made["re"]
    else: made[...] = numbers.reshape(made.shape)
    return made
def neighbour(direction):
    offset = [0] * dimensions
    offset[direction // 2] = -1 if direction % 2 else 1
    return grid.neighbour(offset)
bad = []
def message(call):
    try: call()
    except ropewalk.ArgumentError as error: return str(error)
    return "no error"
with ropewalk.EndpointSet(lanes=1) as endpoints:
    halo = ropewalk.Halo.buffers(grid, endpoints, shapes, kind, strategy=STRATEGY)
    if STRATEGY == "put" and halo.strategy != "put": bad.append(halo.strategy)
    live = [one for one in range(2 * dimensions)
            if shapes[one] is not None and neighbour(one) is not None]
    for round in range(5):
        for one in live:
            view = halo.send_buffer(one)
            if view.shape != tuple(shapes[one]) or view.dtype != kind: bad.append("view")
            view[...] = face(grid.rank, one, round)
        if round % 2:
            halo.start()
            while not halo.test(): pass
            halo.wait()
        else:
            halo.exchange()
        for one in live:
            # What the neighbour there has sent in the other direction.
            if not np.array_equal(halo.receive_buffer(one), face(neighbour(one), one ^ 1, round)):
                bad.append([round, one])
    for one in range(2 * dimensions):
        if shapes[one] is None and halo.send_buffer(one).size: bad.append("no face")
        if shapes[one] is not None and neighbour(one) is None:
            if "no neighbour" not in message(lambda: halo.send_buffer(one)): bad.append("edge")
    if message(lambda: halo.send_buffer(2 * dimensions)) == "no error": bad.append("direction")
    if message(lambda: halo.receive_buffer(-1)) == "no error": bad.append("direction")
    if live and halo.receive_buffer(live[0]).flags.writeable: bad.append("writeable")
    if live:  # a view keeps the memory, and no longer than it lives
        kept, place = halo.receive_buffer(live[0]), weakref.ref(halo)
        del halo, view
        gc.collect()
        if place() is None: bad.append("gone")
        del kept
        gc.collect()
        if place() is not None: bad.append("left behind")
    field = ropewalk.Halo(grid, endpoints, np.zeros([5] * dimensions))
    if "no buffers" not in message(lambda: field.send_buffer(0)): bad.append("not its own")
    for wrong in ([3], [(-1, 2)] * (2 * dimensions), ["x"] * (2 * dimensions)):
        if message(lambda: ropewalk.Halo.buffers(grid, endpoints, wrong)) == "no error":
            bad.append(str(wrong))
    alone = [8] * (2 * dimensions) if grid.rank else [9] * (2 * dimensions)
    told = message(lambda: ropewalk.Halo.buffers(grid, endpoints, alone))
    if grid.size > 1 and told == "no error":
        bad.append("sizes differ")
    if "Python objects" not in message(
            lambda: ropewalk.Halo.buffers(grid, endpoints, [3] * (2 * dimensions), object)):
        bad.append("objects")
tell(json.dumps(bad[:4]))
"""


@mpis
@pytest.mark.parametrize(
    ("shape", "periodic", "strategy"),
    [
        ([1], True, "put"),
        ([2], True, "put"),
        ([3], False, "put"),
        ([2, 2], [True, False], "put"),
        ([1, 3], True, "put"),
        ([2], True, "concurrent"),
        ([2], False, "automatic"),
    ],
)
def test_faces(path, tmp_path, shape, periodic, strategy):
    ranks = 1
    for extent in shape:
        ranks *= extent
    code = FACES.replace("GIVEN", repr((shape, periodic, strategy)))
    told, _ = run_ranks(path, ranks, code, tmp_path)
    assert told == ["[]"] * ranks


@mpis
@pytest.mark.parametrize("nodes", ["2", "round:2", "3,1"])
@pytest.mark.parametrize("strategy", ["put", "direct", "automatic"])
def test_faces_over_nodes(path, tmp_path, monkeypatch, nodes, strategy):
    monkeypatch.setenv("ROPEWALK_NODES", nodes)
    code = FACES.replace("GIVEN", repr(([1, 4], True, strategy)))
    told, _ = run_ranks(path, 4, code, tmp_path)
    assert told == ["[]"] * 4


# What the interface of NumPy's arrays has no words for, beside a direction that has no face. Bytes
# are compared, since the gaps of a structure are no part of its fields.
TYPES = """
import json, numpy as np, ropewalk
grid = ropewalk.CartesianGrid([SIZE, 1], True)
kinds = [np.dtype((np.float32, (3,))), np.dtype((np.int16, (2, 2))),
         np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [3, 8],
                   "itemsize": 24}),
         np.dtype([("a", "u1"), ("b", "f8", (2,))], align=True), np.dtype("V5"), np.dtype("S3"),
         np.dtype("M8[us]"), np.dtype(">i4")]
try: import ml_dtypes
except ImportError: pass
else: kinds += [np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)]
bad = []
def fill(array, seed):
    array.reshape(-1).view(np.uint8)[:] = (np.arange(array.nbytes) + seed) % 120
def same(view, expected):
    return (view.shape, view.dtype, view.tobytes()) == (
        expected.shape, expected.dtype, expected.tobytes())
with ropewalk.EndpointSet(lanes=1) as endpoints:
    for kind in kinds:
        shapes = [(2, 3), (2, 3), None, None]
        halo = ropewalk.Halo.buffers(grid, endpoints, shapes, kind, strategy=STRATEGY)
        like = np.empty((2, 3), kind)
        for one in range(2):
            view = halo.send_buffer(one)
            if (view.shape, view.dtype) != (like.shape, like.dtype): bad.append((str(kind), "send"))
            fill(view, one)
        halo.exchange()
        none = np.empty(0, kind)
        for one in range(4):
            view, expected = halo.receive_buffer(one), like if one < 2 else none
            if one < 2: fill(like, one ^ 1)
            if not same(view, expected): bad.append((str(kind), one, str(view.dtype)))
            if view.flags.writeable: bad.append((str(kind), one, "writeable"))
            if halo.send_buffer(one).dtype != none.dtype: bad.append((str(kind), one, "dtype"))
        try: halo.receive_buffer(0).flags.writeable = True
        except ValueError: pass
        else: bad.append((str(kind), "made writeable"))
tell(json.dumps(bad))
"""


@mpis
@pytest.mark.parametrize(("ranks", "strategy"), [(1, "put"), (2, "put"), (2, "concurrent")])
def test_types_without_a_word_of_their_own(path, tmp_path, ranks, strategy):
    code = TYPES.replace("SIZE", str(ranks)).replace("STRATEGY", repr(strategy))
    told, _ = run_ranks(path, ranks, code, tmp_path)
    assert told == ["[]"] * ranks


# On a ring whose ranks were dealt to two nodes, all faces leave; in compact blocks, one a rank.
BY_NODE = """
import ropewalk
for by_node, leaving in (False, 2), (True, 1):
    grid = ropewalk.CartesianGrid([4], by_node=by_node)
    with ropewalk.EndpointSet(lanes=1) as endpoints:
        halo = ropewalk.Halo.buffers(grid, endpoints, [(8,), (8,)], strategy="put")
        halo.exchange()
        tell(f"{halo.send_bytes} {halo.wire_bytes - 64 * leaving}")
"""


@mpis
def test_compact_nodes(path, tmp_path, monkeypatch):
    monkeypatch.setenv("ROPEWALK_NODES", "round:2")
    told, _ = run_ranks(path, 4, BY_NODE, tmp_path)
    assert told == ["128 0"] * 8
