"""Communicators that are closed, dropped, used by several threads, or none at all; and arguments
that one rank gets wrong."""

import numpy as np
import pytest

import ropewalk
from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

REFUSED = """
import numpy as np, ropewalk
comm = ropewalk.Communicator()
rank, size = comm.rank, comm.size
def refused(text, call):
    try: call()
    except ropewalk.ArgumentError as error: tell("refused" if text in str(error) else str(error))
    else: tell("no error: " + text)
"""

CLOSED = """
gone = comm.split(0)
grid = ropewalk.CartesianGrid([size], communicator=gone)
gone.close()
array = np.zeros(10)
with ropewalk.EndpointSet() as endpoints:
    refused("communicator: closed", lambda: ropewalk.Halo(grid, endpoints, array))
for communicator, text in ((gone, "communicator: closed"), (2, "communicator: int, expected one"),
                           (True, "communicator: bool, expected one")):
    for make in (
        lambda: ropewalk.Communicator(communicator),
        lambda: ropewalk.Channel(communicator),
        lambda: ropewalk.CartesianGrid([size], communicator=communicator),
        lambda: ropewalk.EndpointSet(communicator),
        lambda: ropewalk.ReductionPlan([array], communicator=communicator),
        lambda: ropewalk.IrregularHalo({}, 3, comm=communicator),
        lambda: ropewalk.SubarrayExchange(3, {}, 3, {}, comm=communicator),
        lambda: ropewalk.Window(3, comm=communicator),
    ):
        refused(text, make)
refused("communicator: closed", lambda: gone.split(0))
"""


@mpis
def test_what_is_no_open_communicator_is_refused(path, tmp_path):
    told, _ = run_ranks(path, 2, REFUSED + CLOSED, tmp_path)
    assert told == ["refused"] * 2 * (1 + 3 * 8 + 1)


# Nobody but the objects refers to the communicators, and MPI aborts where one is gone.
DROPPED = """
import gc, numpy as np, ropewalk
comm = ropewalk.Communicator()
size, array = comm.size, np.full(10, float(comm.rank))
grid = ropewalk.CartesianGrid([size], communicator=comm.split(0))
endpoints = ropewalk.EndpointSet(comm.split(0), lanes=1)
plan = ropewalk.ReductionPlan([array[3:5]], communicator=comm.split(0))
ghosts = ropewalk.IrregularHalo.by_rows(1, [1 - comm.rank], comm=comm.split(0))
parts = ropewalk.SubarrayExchange(2, {0: 0, 1: 1}, 2, {0: 0, 1: 1}, comm=comm.split(0))
gc.collect()
halo = ropewalk.Halo(grid, endpoints, array)
gc.collect()
halo.exchange(); plan.reduce()
tell(str(array[[0, 3, 9]] - [1 - comm.rank, 1, 1 - comm.rank]))
pair = np.array([float(comm.rank), 9])
ghosts.exchange(pair)
tell(str(pair[1] + comm.rank))
tell(str(parts.exchange(np.full(2, 1.0))))
for one in (plan, ghosts, parts, endpoints): one.close()
"""


@mpis
def test_a_communicator_stays_with_what_is_made_of_it(path, tmp_path):
    told, _ = run_ranks(path, 2, DROPPED, tmp_path)
    assert sorted(told) == ["1.0"] * 2 + ["[0. 0. 0.]"] * 2 + ["[1. 1.]"] * 2


THREADS = """
import threading
other = ropewalk.Communicator()
if rank == 0:
    waiting = threading.Thread(target=lambda: tell(str(comm.allreduce(np.ones(2))[0])))
    waiting.start()
    waiting.join(0.3)
    refused("communicator: another thread is in a call", comm.close)
    other.barrier()
    waiting.join()
else:
    other.barrier()
    tell(str(comm.allreduce(np.ones(2))[0]))
comm.close()
"""


@mpis
def test_close_during_a_call_of_another_thread(path, tmp_path):
    assert sorted(run_ranks(path, 2, REFUSED + THREADS, tmp_path)[0]) == ["2.0"] * 2 + ["refused"]


# Rank 1 is wrong; rank 0 gets an error, too, in place of waiting.
COUNTS = """
wrong = rank == 1
ragged = [[1], [2, 3]]
rows = np.full((rank + 1, 3), float(rank))
for call in ("allgatherv", "gatherv", "start_allgatherv", "start_gatherv"):
    refused("array: list" if wrong else "",
            lambda: getattr(comm, call)(ragged if wrong else rows))
for start in (False, True):
    def gather(counts, root=0):
        if start: return comm.start_gatherv(rows, counts=counts, root=root).result()
        return comm.gatherv(rows, counts=counts, root=root)
    for root in (0, 1):
        for counts in ([1, 2], None):  # on the root, and on all
            for elsewhere in ([1, 2], None):
                got = gather(counts if rank == root else elsewhere, root)
                if rank == root: tell("right" if got[:, 0].tolist() == [0, 1, 1] else str(got))
    try: gather([1, 3] if rank == 0 else None)
    except ropewalk.ArgumentError as error:
        tell("counts" if "counts: 3 for rank 1, expected 2" in str(error) else "others")
    comm.barrier()
tall = np.asfortranarray(np.ones((rank + 2, 4)))
tell(str(comm.allgatherv(tall).shape))
"""


@mpis
@pytest.mark.parametrize("nodes", ["", "2"])
def test_rows_that_the_ranks_tell_each_other(path, tmp_path, monkeypatch, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    told, _ = run_ranks(path, 2, REFUSED + COUNTS, tmp_path)
    assert told.count("refused") == 2 * 4
    assert told.count("right") == 2 * 2 * 2 * 2
    assert told.count("counts") == 2
    assert told.count("(5, 4)") == 2
    assert set(told) <= {"refused", "right", "counts", "others", "(5, 4)"}


WRONG = """
wrong = rank == 1
frozen, large = np.zeros(1 << 20), np.ones(1 << 20)  # the root of a small one need not wait
frozen.flags.writeable = False
wide = np.zeros(2, "f8" if wrong else int)
calls = [
    ("array: read-only", lambda: comm.broadcast(frozen if wrong else large)),
    ("root: 1099511627776, expected 0 to 1", lambda: comm.reduce(frozen, root=wrong << 40)),
    ("float64, expected int64", lambda: comm.allreduce([1, 2], wide)),
    ("threads: 'a', expected a whole", lambda: ropewalk.Communicator(threads="a" if wrong else 0)),
    ("dtype 'nonsense'", lambda: ropewalk.ReductionPlan([(3, "nonsense" if wrong else "f4")])),
    ("has shape 2.5", lambda: ropewalk.ReductionPlan([(2.5 if wrong else 2, "f4")])),
]
for text, call in calls: refused(text if wrong else "", call)
plan = ropewalk.ReductionPlan([(3, "float32")])
for wrong in (1, -1, "a"):
    refused(f"tensor: {wrong!r}, expected 0 to 0", lambda: plan.data(wrong))
    refused(f"tensor: {wrong!r}, expected 0 to 0", lambda: plan.bind(wrong, frozen))
plan.close()
where = {np.int64(0): 0, np.int64(1): 1}
with ropewalk.SubarrayExchange(2, where, 2, where) as exchange: exchange.exchange(np.zeros(2))
tell("refused" if comm.allreduce(1) == 2 else "wrong")
"""


@mpis
@pytest.mark.parametrize("nodes", ["", "2"])
def test_arguments_are_named(path, tmp_path, monkeypatch, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    assert run_ranks(path, 2, REFUSED + WRONG, tmp_path)[0] == ["refused"] * 2 * (6 + 6 + 1)


@mpis
def test_undefined_of_mpi4py_is_no_color(path, tmp_path):
    pytest.importorskip("mpi4py")
    code = (
        "from mpi4py import MPI\n"
        "import ropewalk\n"
        "comm = ropewalk.Communicator()\n"
        "part = comm.split(MPI.UNDEFINED if comm.rank == 0 else 0)\n"
        "tell('none' if part is None else str(part.size))\n"
    )
    assert sorted(run_ranks(path, 2, code, tmp_path)[0]) == ["1", "none"]


@pytest.mark.parametrize("shape", [3.7, "5", (2, 1.5), None, [[1], [2, 3]]])
def test_a_shape_is_whole_numbers(shape):
    with pytest.raises(ropewalk.ArgumentError, match=r"^shape: .*whole numbers"):
        ropewalk.empty(shape)
    assert ropewalk.empty((np.int64(2), True)).shape == (2, 1)
