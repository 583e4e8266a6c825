"""Messages of ropewalk.Channel under way: refused, failed, cancelled, dropped."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

nodes = pytest.mark.parametrize("nodes", ["2", "1"])  # 1: each rank on a node of its own

HEAD = """
import asyncio, gc, numpy as np, ropewalk, threading, time
comm, channel = ropewalk.Communicator(), ropewalk.Channel()
rank, other = channel.rank, 1 - channel.rank
def refused(text, wrong):
    try: wrong()
    except ropewalk.ArgumentError as error: return str(error).startswith(text) or str(error)
    return "no error: " + text
good = []
"""
TAIL = """
wrong = [(at, one) for at, one in enumerate(good) if isinstance(one, str) or not one]
tell(str(wrong or "good"))
"""


def run_good(path, code, folder):
    assert run_ranks(path, 2, HEAD + code + TAIL, folder)[0] == ["good"] * 2


LIMITED = """
if rank == 0:
    out = np.zeros(3)
    late = channel.start_receive(out, other)
    for ask in (late.wait, late.result):
        try: ask(timeout=0.02)
        except TimeoutError: good.append(not late.done())
    comm.barrier()
    good += [late.result(timeout=60).count == 3, out.tolist() == [1, 1, 1]]
else:
    comm.barrier()
    channel.send(np.ones(3), other)
"""


@mpis
def test_a_wait_with_a_limit(path, tmp_path):
    run_good(path, LIMITED, tmp_path)


# The wait of the first thread ends only by what the second does once it has been refused.
REFUSED = """
with_other, out = ropewalk.Channel(), np.zeros(3)
def second():
    for start in (channel.start_receive, channel.start_send):
        while refused("channel: another thread", lambda: start(np.zeros(3), other, 9)) is not True:
            time.sleep(1e-3)
    with_other.send(b"x", other)
if rank == 0:
    thread = threading.Thread(target=second); thread.start()
    while refused("channel: another", lambda: channel.receive(out, other)) is True: pass
    good.append(out.sum() == 3)
    thread.join()
else:
    with_other.receive(bytearray(1), other)
    channel.send(np.ones(3), other)
comm.barrier()
"""


@mpis
def test_a_refused_message_waits_for_nobody(path, tmp_path):
    run_good(path, REFUSED, tmp_path)


FAILED = """
if rank == 0:
    for _ in range(4): channel.send(np.ones(10), other)
    channel.send(np.ones(2), other)
    comm.barrier()
else:
    text, out = "out: a message of 80 bytes", np.zeros(2)
    failed = channel.start_receive(out, other)
    for call in (failed.wait, failed.wait, failed.result, failed.test):
        good.append(refused(text, call))
    good += [failed.done(), "failed" in repr(failed), not failed.cancel()]
    first_asked = channel.start_receive(out, other)
    while not first_asked.done(): pass
    good.append(refused(text, first_asked.result))
    async def awaited(one): return await one
    good += [refused(text, lambda: asyncio.run(awaited(first_asked)))]
    again = channel.prepare_receive(out, other); again.start()
    good += [refused(text, again.wait), refused(text, again.wait), "failed" in repr(again)]
    good.append(refused(text, lambda: channel.receive(out, other)))
    again.start(); again.wait()
    good += [out.tolist() == [1, 1], "not under way" in repr(again)]
    comm.barrier()
channel.close()
"""


@mpis
@nodes
def test_an_error_of_a_message_is_told_to_everyone_who_asks(path, tmp_path, monkeypatch, nodes):
    monkeypatch.setenv("ROPEWALK_NODES", nodes)
    run_good(path, FAILED, tmp_path)


CANCELLED = """
first, second = np.zeros(3), np.zeros(3)
if rank == 0:
    for source, tag in ((other, 5), (ropewalk.any_source, ropewalk.any_tag)):
        pending = channel.start_receive(first, source, tag)
        good += [not pending.done(), pending.cancel(), not pending.cancel(), pending.done()]
        good += [refused("message: cancelled", pending.wait), "cancelled" in repr(pending)]
        comm.barrier()
        good += [channel.receive(second, source, tag).count == 3, second.sum() == 3]
        good.append(not first.any())
    again = channel.prepare_receive(first, other); again.start()
    good += [again.cancel(), refused("message: cancelled", again.wait)]
    again.start()
    comm.barrier()
    good += [again.result().count == 3, not again.cancel()]
else:
    for _ in range(2):
        comm.barrier()
        channel.send(np.ones(3), other, 5)
    comm.barrier()
    channel.send(np.ones(3), other)
big = np.zeros(1 << 18)
if rank == 0:
    send = channel.start_send(big, other)
    good.append(not send.cancel())
    send.wait()
else: channel.receive(big, other)
channel.close()
"""


@mpis
@nodes
def test_a_receive_may_be_cancelled(path, tmp_path, monkeypatch, nodes):
    monkeypatch.setenv("ROPEWALK_NODES", nodes)
    run_good(path, CANCELLED, tmp_path)


# What is dropped, by name or by a coroutine that is cancelled, takes no message and lets the rank
# go on; its message goes to the next receive.
DROPPED = """
out = np.zeros(3)
async def patient():
    both = [channel.start_receive(np.zeros(3), other, tag) for tag in (1, 2)]
    for one in both: await one
async def impatient():
    try: await asyncio.wait_for(patient(), 0.05)
    except TimeoutError: return True
if rank == 0:
    good.append(asyncio.run(impatient()))
    gc.collect()
    channel.start_receive(np.zeros(3), other, 3)
    comm.barrier()
    for tag in (1, 2, 3): good.append(channel.receive(out, other, tag).count == 3)
    # while another thread is in a call
    pending = channel.start_receive(np.zeros(3), other, 4)
    thread = threading.Thread(target=channel.receive, args=(out, other, 5)); thread.start()
    while not pending.done() and refused("channel: another", channel.probe) is not True: pass
    del pending
    comm.barrier()
    thread.join()
    good.append(channel.receive(out, other, 4).count == 3)
    channel.start_send(np.ones(1 << 18), other)  # waited for
else:
    comm.barrier()
    for tag in (1, 2, 3): channel.send(np.ones(3), other, tag)
    comm.barrier()
    channel.send(np.ones(3), other, 5)
    time.sleep(0.1)
    channel.send(np.ones(3), other, 4)
    channel.receive(np.zeros(1 << 18), other)
channel.close()
"""


@mpis
@nodes
def test_a_receive_that_is_dropped_is_taken_back(path, tmp_path, monkeypatch, nodes):
    monkeypatch.setenv("ROPEWALK_NODES", nodes)
    run_good(path, DROPPED, tmp_path)


# ---- no rank, and any rank -----------------------------------------------------------------------

NOBODY = """
grid = ropewalk.CartesianGrid([2])
below, above = grid.neighbour([-1]), grid.neighbour([1])
out = np.zeros(3)
nothing = ropewalk.MessageStatus(None, 0, 0, 0)
for send_to, receive_from in ((above, below), (below, above)):
    out[:] = -1
    status = channel.send_receive(np.full(3, float(rank)), send_to, out, receive_from)
    expected = nothing if receive_from is None else ropewalk.MessageStatus(other, 0, 24, 3)
    good.append(status == expected and (out == (-1 if receive_from is None else other)).all())
good.append(channel.send(out, None) is None)
good.append(channel.receive(out, None, 4) == ropewalk.MessageStatus(None, 4, 0, 0))
good.append(channel.send_receive(out, None, np.zeros(3), None) == nothing)
for start in (channel.start_send, channel.start_receive):
    pending = start(out, None)
    good += [pending.done(), pending.test(), not pending.cancel(), "no rank" in repr(pending)]
    good.append(pending.result() == (None if start == channel.start_send else nothing))
for prepare in (channel.prepare_send, channel.prepare_receive):
    again = prepare(out, None)
    for _ in range(2):
        again.start(); again.wait()
    good.append(again.result() == (None if prepare == channel.prepare_send else nothing))
good.append(refused("out: list", lambda: channel.receive([0], None)))
good.append(refused("tag: -3", lambda: channel.send(out, None, -3)))
good.append(refused("source: not an integer: None", lambda: channel.probe(None)))
channel.close()
good.append(refused("channel: closed", lambda: channel.send(out, None)))
good.append(refused("channel: closed", again.start))
"""


@mpis
def test_nothing_goes_to_no_rank(path, tmp_path):
    run_good(path, NOBODY, tmp_path)


# The numbers of mpi4py are those of its MPI, and are taken for nothing else.
CONSTANTS = """
import copy, pickle
from mpi4py import MPI
out = np.zeros(3)
for number in (MPI.PROC_NULL, MPI.ANY_SOURCE, -1, -2):
    text = f"source: rank {number}, expected 0 to 1, or ropewalk.any_source in place of MPI.ANY"
    for call in (channel.receive, channel.start_receive, channel.prepare_receive):
        good.append(refused(text, lambda: call(out, number)))
    good.append(refused(text, lambda: channel.probe(number)))
    text = f"destination: rank {number}, expected 0 to 1, or None for no rank"
    for call in (channel.send, channel.start_send, channel.prepare_send):
        good.append(refused(text, lambda: call(out, number)))
good.append(refused(f"tag: {MPI.ANY_TAG}", lambda: channel.receive(out, 0, MPI.ANY_TAG)))
good.append(refused("tag: not an integer", lambda: channel.send(out, 0, ropewalk.any_tag)))
good.append(refused("tag: not an integer", lambda: channel.receive(out, 0, ropewalk.any_source)))
good.append(refused("source: not an integer", lambda: channel.receive(out, ropewalk.any_tag)))
for same in (copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))):
    good.append(same(ropewalk.any_source) is ropewalk.any_source)
good.append(repr(ropewalk.any_tag) == "ropewalk.any_tag")
"""


@mpis
def test_constants_of_mpi4py_are_refused(path, tmp_path):
    pytest.importorskip("mpi4py")
    run_good(path, CONSTANTS, tmp_path)
