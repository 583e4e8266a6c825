"""How a program ends with calls under way, with a message, and in a child of fork."""

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# Nobody waits for these, and MPI ends behind them. Two plans without threads make progress only
# where somebody waits.
UNDER_WAY = """
import numpy as np, ropewalk
comm = ropewalk.Communicator()
part = comm.split(0)
plans = [ropewalk.ReductionPlan([np.ones(4)], thread=thread) for thread in (True, False, False)]
pending = [one.start_allreduce(np.ones(100_000)) for one in (comm, part, comm)]
for plan in plans: plan.start()
future = part.start_allreduce(np.ones(3)).future()
future.add_done_callback(lambda done: tell(str(done.result()[0])))
"""


@mpis
@pytest.mark.parametrize("nodes", ["", "2"])
def test_calls_under_way_are_completed(path, tmp_path, monkeypatch, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    for attempt in range(3):  # without this most runs abort under MPICH, but not all
        folder = tmp_path / str(attempt)
        folder.mkdir()
        assert run_ranks(path, 2, UNDER_WAY, folder)[0] == ["2.0", "2.0"]


# Only what was made of the communicator is left when the program ends.
HELD = """
import numpy as np, ropewalk
def build():
    comm = ropewalk.Communicator()
    return ropewalk.EndpointSet(comm, lanes=1), comm.start_allreduce(np.ones(4_000_000))
held = build()
"""


@mpis
@pytest.mark.parametrize("nodes", ["", "1"])
def test_calls_of_a_communicator_without_a_name_are_completed(path, tmp_path, monkeypatch, nodes):
    if nodes:
        monkeypatch.setenv("ROPEWALK_NODES", nodes)
    run_ranks(path, 2, HELD, tmp_path)


EXIT = """
import sys, numpy as np, ropewalk
comm = ropewalk.Communicator()
if comm.rank == 1: sys.exit("no input file")
try: comm.allreduce(np.ones(3))
except ropewalk.Error: tell("told"); raise
"""
# The communicator is gone when Python calls its functions at the exit.
EXIT_IN_FUNCTION = """
import sys, numpy as np, ropewalk
def main():
    comm = ropewalk.Communicator()
    comm.allreduce(np.ones(3))
    if comm.rank == 1: sys.exit("no input file")
    try: comm.allreduce(np.ones(3))
    except ropewalk.Error: tell("told"); raise
main()
"""


@mpis
@pytest.mark.parametrize("program", [EXIT, EXIT_IN_FUNCTION], ids=["module", "function"])
def test_a_rank_that_exits_ends_the_others(path, tmp_path, program):
    told, errors = run_ranks(path, 2, program, tmp_path, status=1)
    assert told == ["told"]
    assert "no input file" in errors


FORKED = """
import os, numpy as np, ropewalk
channel, comm = ropewalk.Channel(), ropewalk.Communicator()
pending = comm.start_allreduce(np.ones(100_000))
part = comm.split(0)
child = os.fork()
if child == 0: raise SystemExit(3)
tell(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
into = np.zeros(2)
channel.send_receive(np.ones(2), 1 - comm.rank, into, 1 - comm.rank)
tell(f"{into[0]} {pending.result()[0]} {part.allreduce(1)}")
"""


LOCAL_TO_FORK = """
import os, numpy as np, ropewalk
def main():
    comm, channel = ropewalk.Communicator(), ropewalk.Channel()
    into = np.zeros(2)
    pending = comm.start_allreduce(np.ones(100_000))
    receive = channel.start_receive(into, 1 - comm.rank)
    child = os.fork()
    if child == 0: raise SystemExit(3)
    tell(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    channel.send(np.ones(2), 1 - comm.rank)
    receive.wait()
    tell(f"{into[0]} {pending.result()[0]} {comm.allreduce(1)}")
main()
"""


@mpis
def test_a_child_of_fork_drops_what_is_its_parents(path, tmp_path):
    assert sorted(run_ranks(path, 2, LOCAL_TO_FORK, tmp_path)[0]) == ["1.0 2.0 2"] * 2 + ["3"] * 2


@mpis
def test_a_child_of_fork_leaves_everything_to_its_parent(path, tmp_path):
    assert sorted(run_ranks(path, 2, FORKED, tmp_path)[0]) == ["1.0 2.0 2"] * 2 + ["3"] * 2


# What the child makes is its own, though the parent has imported the package.
MADE_IN_CHILD = """
import os, numpy as np, ropewalk
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
def main():
    comm = ropewalk.Communicator()
    with ropewalk.Channel() as channel:
        into = np.zeros(2)
        channel.send_receive(np.ones(2), 1 - comm.rank, into, 1 - comm.rank)
    tell(f"{comm.start_allreduce(into).result()[0]}")
main()
"""


@mpis
def test_a_child_of_fork_may_be_the_rank(path, tmp_path):
    assert run_ranks(path, 2, MADE_IN_CHILD, tmp_path)[0] == ["2.0"] * 2
