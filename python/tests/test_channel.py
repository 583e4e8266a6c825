"""ropewalk.Channel: random traffic whose arrays NumPy gives, odd arrays, errors, ends."""

import json
import pathlib

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

PATH = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"

# ---- random traffic: every rank knows all messages, and what is in them --------------------------

RANDOM = """
import asyncio, json, numpy as np, ropewalk
from collections import defaultdict, deque
channel = ropewalk.Channel()
comm = ropewalk.Communicator()
rank, size = channel.rank, channel.size
TYPES = ["int8", "uint16", "int32", "float32", "float64", "complex128", "bool"]
bad = []

def content(number, index, elements, dtype):
    return np.random.default_rng([SEED, number, index]).integers(0, 100, elements).astype(dtype)

def laid_out(random, array):  # the same elements, in memory of another kind
    way = random.integers(0, 3)
    if way == 0: return array.copy()
    wide = np.zeros((len(array), 2), array.dtype) if way == 1 else ropewalk.zeros(
        (len(array), 2), array.dtype)
    wide[:, 0] = array
    return wide[:, 0] if way == 1 else wide[:, 0].copy()

def memory(random, elements, dtype):
    return (np if random.integers(0, 2) else ropewalk).zeros(elements, dtype)

async def awaited(one): return await one

def finish(random, message):
    way = random.integers(0, 3)
    if way == 0: return message.result()
    if way == 1: return asyncio.run(awaited(message))
    while not message.test(): pass
    return message.result()

def round(number):
    shared = np.random.default_rng([SEED, number])       # the same on all ranks
    own = np.random.default_rng([SEED, number, 7 + rank])
    dtype = np.dtype(shared.choice(TYPES))
    open_source, open_tag = map(bool, shared.integers(0, 2, 2))
    sizes = [0, 1, 3, 13, 100, 2000, 20000, 100000]
    # (from, to, tag, elements), in the order in which each rank sends them
    messages = [(*map(int, shared.integers(0, size, 2)), int(shared.integers(0, 3)),
                 int(shared.choice(sizes))) for _ in range(10 * size)]
    expected = defaultdict(deque)  # of this rank, by source and tag
    for index, (source, to, tag, elements) in enumerate(messages):
        if to == rank: expected[source, tag].append((index, elements))
    mine = [one for one in enumerate(messages) if one[1][0] == rank]
    theirs = [one for _, one in enumerate(messages) if one[1] == rank]
    longest = max(one[3] for one in messages)
    sends, receives = [], []
    while mine or theirs:
        if mine and (not theirs or own.integers(0, 2)):
            index, (_, to, tag, elements) = mine.pop(0)
            array = content(number, index, elements, dtype)
            if own.integers(0, 4) == 0:
                kept = array.copy()
                send = channel.prepare_send(kept, to, tag); send.start()
            else: send = channel.start_send(laid_out(own, array), to, tag)
            sends.append(send)
        else:
            source, _, tag, _ = theirs.pop(0)
            out = memory(own, longest, dtype)
            source = ropewalk.any_source if open_source else source
            tag = ropewalk.any_tag if open_tag else tag
            if own.integers(0, 4) == 0:
                receive = channel.prepare_receive(out, source, tag); receive.start()
            else: receive = channel.start_receive(out, source, tag)
            receives.append((receive, out))
    order = [*range(len(receives))]
    statuses = {}
    own.shuffle(order)
    for at in order: statuses[at] = finish(own, receives[at][0])
    for send in sends: finish(own, send)
    # In the order they were posted, receives have got messages in the order of each sender.
    for at, (_, out) in enumerate(receives):
        status = statuses[at]
        if not expected[status.source, status.tag]:
            bad.append([number, rank, "nobody sent", str(status)]); continue
        index, elements = expected[status.source, status.tag].popleft()
        right = (status.count == elements and status.bytes == elements * dtype.itemsize
                 and np.array_equal(out[:elements], content(number, index, elements, dtype))
                 and not out[elements:].any())
        if not right: bad.append([number, rank, str(dtype), index, elements, str(status)])
    if any(expected.values()): bad.append([number, rank, "lost"])
    comm.barrier()  # open receives take no message of the next round

for number in range(ROUNDS): round(number)
tell(json.dumps(bad[:3]))
channel.close()
"""


@mpis
@pytest.mark.parametrize(("ranks", "nodes"), [(1, ""), (2, ""), (3, ""), (4, "2"), (3, "2")])
def test_random_traffic(path, tmp_path, monkeypatch, ranks, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    code = RANDOM.replace("SEED", str(ranks)).replace("ROUNDS", "10" if nodes else "25")
    told, _ = run_ranks(path, ranks, code, tmp_path)
    assert told == ["[]"] * ranks


# ---- blocking calls, arrays of every kind --------------------------------------------------------

CALLS = """
import json, threading, numpy as np, ropewalk
from ropewalk import MessageStatus as Status
from support import DlpackOnly
good = []
with ropewalk.Channel() as channel:
    rank, size = channel.rank, channel.size
    other = 1 - rank
    def both(array, out):  # rank 0 sends, rank 1 receives
        if rank == 0: return channel.send(array, 1, 3)
        return channel.receive(out, 0, 3)
    status = both(np.arange(6.0).reshape(2, 3), out := np.zeros((3, 3)))
    good.append(rank == 0 or status == Status(0, 3, 48, 6))
    good.append(rank == 0 or out.ravel()[:6].tolist() == [*range(6)])
    both(np.arange(12).reshape(3, 4).T, out := np.zeros((4, 3), int))  # not row-major: a copy
    good.append(rank == 0 or out.tolist() == np.arange(12).reshape(3, 4).T.tolist())
    both(DlpackOnly(np.ones(5)), DlpackOnly(out := np.zeros(5)))
    good.append(rank == 0 or out.sum() == 5)
    both(b"text", out := bytearray(4))
    good.append(rank == 0 or out == b"text")
    both([1, 2, 3], out := np.zeros(3, int))
    good.append(rank == 0 or out.tolist() == [1, 2, 3])
    dates = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    both(dates, out := np.zeros(2, "M8[D]"))
    good.append(rank == 0 or out.tolist() == dates.tolist())
    # both ways at once
    out = np.zeros(100_000)
    mine = np.full(100_000, float(rank))
    status = channel.send_receive(mine, other, out, other, 5 + rank, 5 + other)
    good.append(status == Status(other, 5 + other, 800_000, 100_000) and (out == other).all())
    # probes
    channel.send(np.zeros(7, np.int16), other, 9)
    while (found := channel.probe(tag=9)) is None: pass
    good.append(found == Status(other, 9, 14, None) and channel.probe(other, 8) is None)
    channel.receive(np.zeros(7, np.int16), found.source, found.tag)
    # again and again, as the array is changed
    array = np.zeros(3000)
    message = channel.prepare_send(array, 1) if rank == 0 else channel.prepare_receive(array, 0)
    right = True
    for turn in range(5):
        if rank == 0: array[:] = turn
        message.start()
        status = message.result()
        right &= status == (None if rank == 0 else Status(0, 0, 24000, 3000))
        right &= (array == turn).all()
    good.append(right)
    good.append("not under way" in repr(message))
    # the other threads of a rank run while it waits
    if rank == 0:
        arrived = []
        thread = threading.Timer(0.2, lambda: arrived.append(lone.send(b"x", 1)))
        lone = ropewalk.Channel()
        thread.start()
        channel.receive(bytearray(1), 1)
        thread.join()
        good.append(arrived == [None])
    else:
        lone = ropewalk.Channel()
        lone.receive(bytearray(1), 0)
        channel.send(b"y", 0)
        good.append(True)
    lone.close()
    # several threads of one of the ranks copy
    with ropewalk.Channel(threads=1 + rank) as threaded:
        sent, came = ropewalk.empty(100_000), ropewalk.empty(100_000)
        sent[:] = np.arange(100_000) + rank
        threaded.send_receive(sent, other, came, other)
        good.append((came == np.arange(100_000) + other).all())
        by_threads = rank == 1 and NODES == 1
        good.append((threaded.last_mechanism == "threaded") == by_threads)
    # one that is dropped is waited for
    if rank == 0: channel.start_send(np.ones(100_000), 1)
    else: channel.receive(out, 0)
    good.append(rank == 0 or (out == 1).all())
    good.append(channel.is_near(other) == (NODES == 1) and channel.slot_bytes >= 104)
    good.append(f"rank {rank} of 2, {2 if NODES == 1 else 1} by shared memory" in repr(channel))
    pending = channel.start_receive(out, ropewalk.any_source, 4)
    good.append("PendingMessage, receive from any rank, tag 4, under way" in repr(pending))
    channel.send(np.ones(3), other, 4)
    pending.wait()
    good.append(pending.result() == Status(other, 4, 24, 3))
    good.append(channel.last_mechanism == ("inlined" if NODES == 1 else "mpi") or NODES != 1)
good.append(pending.result().count == 3)  # after the end, too
good.append(repr(channel) == "<ropewalk.Channel, closed>")
tell(json.dumps([i for i, one in enumerate(good) if not one] or len(good)))
"""


@mpis
@pytest.mark.parametrize("nodes", [1, 2])
def test_calls_and_arrays(path, tmp_path, monkeypatch, nodes):
    if nodes == 2:
        monkeypatch.setenv("ROPEWALK_NODES", "1")
    told, _ = run_ranks(path, 2, PATH + CALLS.replace("NODES", str(nodes)), tmp_path)
    assert told == [told[0]] * 2
    assert json.loads(told[0]) == 22


# ---- errors --------------------------------------------------------------------------------------

WRONG = """
import numpy as np, ropewalk, threading, time
channel = ropewalk.Channel()
comm = ropewalk.Communicator()
rank = channel.rank
good = np.ones(6)
frozen = np.zeros(6); frozen.flags.writeable = False
def refused(text, wrong, kind=ropewalk.ArgumentError):
    try:
        wrong()
        tell(f"no error: {text}")
    except kind as error:
        tell("refused" if str(error).startswith(text) else f"{text}: {error}")
for text, wrong in (
    ("destination: rank 2, expected 0 to 1", lambda: channel.send(good, 2)),
    ("destination: rank -1", lambda: channel.start_send(good, -1)),
    ("destination: not an integer", lambda: channel.send(good, ropewalk.any_source)),
    ("source: rank 7", lambda: channel.receive(good, 7)),
    ("source: not an integer", lambda: channel.start_receive(good, "one")),
    ("tag: -1", lambda: channel.send(good, 0, -1)),
    ("tag: not an integer", lambda: channel.receive(good, 0, 1 << 31)),
    ("receive_tag: -2", lambda: channel.send_receive(good, 0, np.ones(6), 0, 0, -2)),
    ("out: overlaps", lambda: channel.send_receive(good[:4], 0, good[2:], 0)),
    ("out: read-only", lambda: channel.receive(frozen, 0)),
    ("out: not contiguous", lambda: channel.receive(np.zeros((6, 2))[:, 0], 0)),
    ("out: list", lambda: channel.receive([1, 2], 0)),
    ("array: dtype object", lambda: channel.send([object()], 0)),
    ("array: not contiguous", lambda: channel.prepare_send(np.zeros((6, 2))[:, 0], 0)),
    ("array: list", lambda: channel.prepare_send([1, 2], 0)),
    ("communicator: str", lambda: ropewalk.Channel("world")),
):
    refused(text, wrong)
# A message that is longer than its array is dropped; the next one comes.
if rank == 0:
    channel.send(np.ones(100), 1); channel.send(good, 1)
else:
    refused("out: a message of 800", lambda: channel.receive(np.zeros(99), 0))
    channel.receive(out := np.zeros(6), 0)
    tell("right" if (out == 1).all() else "wrong")
# The message is under way.
message = channel.prepare_receive(np.zeros(6), 1 - rank); message.start()
refused("message: started again", message.start)
refused("channel: 1 of its messages are under way", channel.close)
if rank == 0:
    def until_refused(call):
        while True: call(); time.sleep(1e-3)
    def second():  # while the first waits
        refused("channel: another thread is in a call of it", lambda: until_refused(channel.probe))
        comm.barrier()
    thread = threading.Thread(target=second); thread.start()
    while thread.is_alive() or not message.test():
        try: message.wait()
        except ropewalk.ArgumentError: pass  # the second was in a call
    thread.join()
    channel.send(good, 1)
else:
    comm.barrier(); channel.send(good, 0)
    message.wait()
comm.barrier()
channel.close(); channel.close()
refused("channel: closed", lambda: channel.send(good, 0))
refused("channel: closed", message.start)
tell("left" if message.result().count == 6 else "lost")
"""


@mpis
def test_errors(path, tmp_path):
    told, _ = run_ranks(path, 2, WRONG, tmp_path)
    assert sorted(set(told)) == ["left", "refused", "right"]
    assert told.count("refused") == 2 * 20 + 2


# An exception that the program catches takes back what is under way, on the rank that it leaves;
# the other one, which waits, hears of the end. Both go on with another channel.
CAUGHT = """
import numpy as np, ropewalk
comm = ropewalk.Communicator()
big = np.ones(200_000)
for case in range(3):
    try:
        with ropewalk.Channel() as channel:
            if comm.rank == 0:
                if case == 0: kept = channel.start_receive(np.zeros(5), 1)
                if case == 1: kept = channel.start_send(big, 1)
                if case == 2: kept = channel.prepare_receive(np.zeros(5), 1, 3); kept.start()
                raise RuntimeError("of the program")
            channel.receive(np.zeros(5), 0, 7)
    except RuntimeError as error: tell(str(error))
    except ropewalk.PeerDeadError as error: tell(str(error).split(":")[1])
    if comm.rank == 0:
        try: kept.wait()
        except ropewalk.ArgumentError as error: tell(str(error))
    comm.barrier()
# A with that is left with a message under way is an error, and ends.
try:
    with ropewalk.Channel() as channel: kept = channel.start_receive(np.zeros(5), 1)
except ropewalk.ArgumentError as error: tell(str(error).split(";")[0])
with ropewalk.Channel() as channel:
    tell(str(channel.send_receive(b"a", 1 - comm.rank, bytearray(1), 1 - comm.rank).bytes))
"""


@mpis
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_caught_exception_ends_the_channel(path, tmp_path, monkeypatch, nodes):
    if nodes == 2:
        monkeypatch.setenv("ROPEWALK_NODES", "1")
    code = CAUGHT if nodes == 1 else CAUGHT.replace("channel.receive(np.zeros(5), 0, 7)", "pass")
    told, _ = run_ranks(path, 2, code, tmp_path)
    assert told.count("of the program") == 3
    assert told.count("channel: closed, expected an open one") == 3
    assert told.count("channel: 1 of its messages are under way") == 2
    assert told.count("1") == 2
    assert told.count(" rank 0 has ended the channel") == (3 if nodes == 1 else 0)


# What is never closed, or never waited for after an error, does not keep a program from its end.
LEFT = """
import numpy as np, ropewalk
channel = ropewalk.Channel()
out = np.zeros(1)
if ERROR:
    pending = channel.start_receive(out, 1 - channel.rank)
    tell("failing")
    raise SystemError("of the program")
channel.send(out, 1 - channel.rank); channel.receive(out, 1 - channel.rank)
pending = channel.start_receive(np.zeros(1), 1 - channel.rank)
tell("left open")
"""


@mpis
@pytest.mark.parametrize("nodes", ["2", "1"])
@pytest.mark.parametrize("error", [False, True])
def test_programs_end(path, tmp_path, monkeypatch, nodes, error):
    monkeypatch.setenv("ROPEWALK_NODES", nodes)
    code = LEFT.replace("ERROR", str(error))
    told, trace = run_ranks(path, 2, code, tmp_path, status=int(error))
    if error:
        assert "failing" in told
        assert "of the program" in trace
    else:
        assert told == ["left open"] * 2


MPI4PY = """
from mpi4py import MPI
import numpy as np, ropewalk
halves = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
with ropewalk.Channel(halves) as channel, ropewalk.Channel(ropewalk.Communicator()) as world:
    ours, theirs = np.full(4, MPI.COMM_WORLD.rank), np.zeros(4, int)
    turn = (channel.rank + 1) % channel.size, (channel.rank - 1) % channel.size
    channel.send_receive(ours, turn[0], theirs, turn[1])
    plain = halves.sendrecv(MPI.COMM_WORLD.rank, turn[0], source=turn[1])
    tell("good" if (theirs == plain).all() and world.size == MPI.COMM_WORLD.size else "bad")
"""


@mpis
def test_a_communicator_of_mpi4py(path, tmp_path):
    pytest.importorskip("mpi4py")
    assert run_ranks(path, 3, MPI4PY, tmp_path)[0] == ["good"] * 3
