"""Process groups of several nodes without an MPI: on nodes that are pretended, where messages go
over the loopback, and on the hosts of a cluster in a box, under torchrun."""

import json
import os
import pathlib
import signal
import sys
import threading
import time

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed: scripts/setup torch")

import torch
import torch.distributed as dist
from cases import make_cases
from forked import join, run

from ropewalk import ArgumentError, PeerDeadError
from ropewalk.cluster.box import Box, NotPermitted, refusal
from support import environment
from support import run as run_command

SEED = 20261128


def _compare(rank, size, file, nodes, count):
    os.environ["ROPEWALK_NODES"] = nodes
    join("gloo", rank, size, file)
    gloo, ours = dist.group.WORLD, dist.new_group(backend="ropewalk")
    for case in make_cases(count, SEED + size, rank, size):
        for one, other in zip(case.run(ours), case.run(gloo, dense=True), strict=True):
            assert torch.allclose(one, other, equal_nan=True, rtol=1e-2), case
    found = ours._ranks.nodes()
    dist.destroy_process_group()
    return found


@pytest.mark.parametrize(
    ("size", "nodes", "number"), [(2, "1", 2), (3, "2,1", 2), (4, "2", 2), (4, "1", 4)]
)
def test_random_calls_over_nodes_give_what_gloo_gives(size, nodes, number):
    assert run(size, _compare, nodes, 100) == [number] * size


def _killed(rank, size, file, start):
    os.environ["ROPEWALK_NODES"] = "1"
    join("ropewalk", rank, size, file)
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(PeerDeadError, match=r"rank 1 on node .*its process has ended"):
        for _ in range(10_000):
            work = dist.all_reduce(torch.ones(100_000), async_op=start)
            if start:
                work.wait()
            time.sleep(0.001)
    dist.destroy_process_group()
    return "told"


@pytest.mark.parametrize("start", [False, True])
def test_a_killed_rank_of_another_node_is_named(start):
    assert run(3, _killed, start) == ["told", None, "told"]


def _late(rank, size, file):
    os.environ["ROPEWALK_NODES"] = "1"
    join("ropewalk", rank, size, file, timeout_s=2)
    dist.barrier()
    if rank == 2:
        time.sleep(6)
    else:
        with pytest.raises(PeerDeadError, match="timeout of 2 s"):
            dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()
    return "told"


def test_a_late_rank_of_another_node_is_an_error_after_the_time_out():
    assert run(3, _late) == ["told"] * 3


def _again(rank, size, file):
    os.environ["ROPEWALK_NODES"] = "1"
    open_before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        join("ropewalk", rank, size, file)
        some = dist.new_group([0, 1])
        for group in [dist.group.WORLD] + [some] * (rank < 2):
            total = torch.ones(300_000)
            dist.all_reduce(total, group=group)
            assert torch.all(total == dist.get_world_size(group))
        dist.destroy_process_group()
    return len(os.listdir("/proc/self/fd")) - open_before


def test_a_group_is_made_again_and_leaves_no_connections():
    # The arena, the failure detector and its few connections stay.
    assert max(run(3, _again)) < 20


def _unknown_interface(rank, size, file):
    os.environ["ROPEWALK_NODES"] = "1"
    if rank == 1:
        os.environ["ROPEWALK_INTERFACE"] = "none0"
    with pytest.raises(ArgumentError, match="'none0' is no interface"):
        join("ropewalk", rank, size, file)
    return "refused"


def test_an_interface_that_does_not_exist_is_refused_by_all():
    assert run(2, _unknown_interface) == ["refused"] * 2


PROGRAM = """
import sys
import torch
import torch.distributed as dist

dist.init_process_group("ropewalk")
rank, size = dist.get_rank(), dist.get_world_size()
for count in (1, 1000, 3_000_000):
    total = torch.arange(count, dtype=torch.float32) + rank
    dist.all_reduce(total)
    wanted = size * torch.arange(count, dtype=torch.float32) + size * (size - 1) / 2
    assert torch.equal(total, wanted)
rows = torch.empty(size, 4)
dist.all_gather_into_tensor(rows, torch.full((4,), float(rank)))
assert rows[:, 0].tolist() == list(range(size))
to, source = (rank + 1) % size, (rank - 1) % size
sent, got = torch.full((500_000,), float(rank)), torch.empty(500_000)
request = dist.isend(sent, to)
dist.recv(got, source)
request.wait()
assert torch.all(got == source)
nodes = dist.group.WORLD._ranks.nodes()
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    print("nodes", nodes)
"""


@pytest.fixture
def two_hosts():
    try:
        with Box(nodes=2, rails=2) as box:
            yield box
    except NotPermitted as error:
        pytest.skip(str(error))


def _torchrun(box, tmp_path, interface):
    """Runs the program on both hosts, by two ranks on each."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    results = {}

    def start(number, node):
        words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
        words += ["--node-rank", str(number), "--nproc-per-node", "2", "--master-port", "29511"]
        words += ["--master-addr", box.network.address(0, 0), str(program)]
        own = {**environment(), "TMPDIR": str(tmp_path), "ROPEWALK_INTERFACE": interface}
        results[node] = box.run(words, node, timeout=120, environment=own)

    threads = [threading.Thread(target=start, args=each) for each in enumerate(box.nodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results["n0"], results["n1"]


def test_torchrun_on_two_hosts_needs_no_mpi(two_hosts, tmp_path):
    first, second = _torchrun(two_hosts, tmp_path, "rail1")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout.strip() == "nodes 2"


def test_hosts_that_cannot_reach_each_other_say_so(two_hosts, tmp_path):
    for done in _torchrun(two_hosts, tmp_path, "lo"):
        assert done.returncode != 0
        assert "cannot be reached on TCP port" in done.stderr, done.stderr


def test_the_bench_measures_on_two_hosts(tmp_path: pathlib.Path):
    if reason := refusal():
        pytest.skip(reason)
    words = ["bench", "torch", "--nodes", "2", "--rate", "10gbit", "--quick", "--time", "1"]
    words += ["--no-training", "--ops", "all_reduce,barrier", "--json", tmp_path / "rows"]
    done = run_command([sys.executable, "-m", "ropewalk", *words])
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()][1:]
    assert {row["op"] for row in rows} == {"all_reduce", "barrier"}
    assert all(row["verified"] and row["nodes"] == 2 and row["ranks"] == 2 for row in rows)
