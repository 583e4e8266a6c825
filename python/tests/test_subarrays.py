"""ropewalk.SubarrayExchange: random changes of how arrays lie over ranks against NumPy; errors."""

import json

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Every rank knows the whole array, and so what it must receive.
REDISTRIBUTED = """
import json, numpy as np, ropewalk
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
bad = []

def cuts(random, extent):
    at = np.sort(random.integers(0, extent + 1, size - 1))
    return [slice(int(a), int(b)) for a, b in zip([0, *at], [*at, extent])]

for number in range(12):
    random = np.random.default_rng(number)
    ndim = int(random.integers(1, 5))
    kind = ["i2", "f8", "c16"][number % 3]
    whole = random.integers(-99, 99, random.integers(1, 9, ndim)).astype(kind)
    before, after = int(random.integers(ndim)), int(random.integers(ndim))
    axes = [int(one) for one in random.permutation(ndim)]
    lay, want = cuts(random, whole.shape[before]), cuts(random, whole.shape[after])
    # This rank has a share of one axis, and wants a share of another one, with axes in new order.
    mine = whole[(slice(None),) * before + (lay[rank],)].copy()
    wanted = whole[(slice(None),) * after + (want[rank],)].transpose(axes).copy()

    def part(of_before, of_after, origin_before, origin_after):
        made = [slice(None)] * ndim
        if before == after:
            a = max(of_before.start, of_after.start); b = min(of_before.stop, of_after.stop)
            if b <= a: return None
            made[before] = slice(a - origin_before - origin_after, b - origin_before - origin_after)
        else:
            made[before] = slice(of_before.start - origin_before, of_before.stop - origin_before)
            made[after] = slice(of_after.start - origin_after, of_after.stop - origin_after)
        return made

    def tupled(made, order=None):
        if made is None: return None
        return tuple(made if order is None else [made[axis] for axis in order])
    sent = [tupled(part(lay[rank], want[peer], lay[rank].start, 0)) for peer in range(size)]
    into = [part(lay[peer], want[rank], 0, want[rank].start) for peer in range(size)]
    received = [tupled(one, axes) for one in into]
    if number % 2:
        sent = {peer: one for peer, one in enumerate(sent) if one is not None}
    with ropewalk.SubarrayExchange(mine.shape, sent, wanted.shape, received, whole.dtype, comm,
                                   axes=axes) as exchange:
        if exchange.array.any(): bad.append((number, "not zero at first"))
        for turn in range(3):
            got = exchange.exchange(mine)
            if not (got == wanted * (turn + 1)).all() or got.dtype != whole.dtype:
                bad.append((number, turn))
            mine += mine // (turn + 1) if whole.dtype.kind == "i" else mine / (turn + 1)
    if not (got == wanted * 3).all(): bad.append((number, "closed"))
tell(json.dumps(bad))
"""


@mpis
@pytest.mark.parametrize(("ranks", "nodes"), [(1, None), (3, None), (4, "2")])
def test_arrays_lie_otherwise_as_numpy_says(path, tmp_path, monkeypatch, ranks, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    told, _ = run_ranks(path, ranks, REDISTRIBUTED, tmp_path)
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
# every second element to the other, one number back; the order of indices is NumPy's
every_second = {other: np.s_[::2, 1]}
exchange = ropewalk.SubarrayExchange((4, 3), every_second, 5, {other: np.s_[1:4:2]}, "i4")
x = np.arange(12, dtype="i4").reshape(4, 3) + 100 * rank
good.append(exchange.exchange(x).tolist() == [0, 1 + 100 * other, 0, 7 + 100 * other, 0])
good.append(exchange.near_bytes == 8 and exchange.far_bytes == 0)
good.append(repr(exchange) == "<ropewalk.SubarrayExchange, int32 from (4, 3) to (5,), sends "
            "8 bytes inside the node and 0 to others>")
single = ropewalk.SubarrayExchange(3, {other: 2}, (2, 2), {other: (0, 1)}, "i4")
good.append(single.exchange(np.array([1, 2, 3 + rank], "i4")).tolist() == [[0, 3 + other], [0, 0]])
kept = single.array
single.close()
good.append(kept[0, 1] == 3 + other and repr(single) == "<ropewalk.SubarrayExchange, closed>")
for text, wrong in (
    ("array: float64 of shape (4, 3), expected int32", lambda: exchange.exchange(x.astype("f8"))),
    ("array: int32 of shape (3, 3)", lambda: exchange.exchange(x[:3])),
    ("array: list", lambda: exchange.exchange([1])),
    ("array: not contiguous", lambda: exchange.exchange(np.zeros((3, 4), "i4").T)),
    ("subarray exchange: closed", lambda: single.exchange(x[0])),
):
    refused(text, wrong)
exchange.close()
# What is wrong on one rank is an error on both.
def make(sent=None, received=None, **more):
    given = (sent, received, more) if rank == 0 else (None, None, {})
    mine = given[0] or {}, given[1] or {}
    return ropewalk.SubarrayExchange((4, 4), mine[0], (4, 4), mine[1], **given[2])
for text, wrong in (
    ("sent: 2, expected ranks from 0 to 1", lambda: make({2: 0})),
    ("sent: 1, expected a sequence of 2 parts", lambda: make([0])),
    ("sent: int, expected a sequence", lambda: make(5)),
    ("sent[1]: list, expected slices", lambda: make({1: [1, 2]})),
    ("received[0]: too many indices", lambda: make({}, {0: (0, 0, 0)})),
    ("sent[1]: index 4 is out of bounds", lambda: make({1: 4})),
    ("sent[0]: a negative step", lambda: make({0: np.s_[::-1]})),
    ("sent[0]: axes don't match", lambda: make({0: np.s_[:2]}, axes=(0,))),
):
    refused(text if rank == 0 else "", wrong)
refused("", lambda: make({0: np.s_[:2]}, {0: np.s_[:3]}))
tell(json.dumps([(at, str(one)) for at, one in enumerate(good) if isinstance(one, str) or not one]
                or len(good)))
"""


@mpis
def test_calls_arrays_and_errors(path, tmp_path):
    told, _ = run_ranks(path, 2, CALLS, tmp_path)
    assert [json.loads(one) for one in told] == [19, 19]
