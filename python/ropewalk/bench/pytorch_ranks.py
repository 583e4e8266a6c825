"""This module starts the ranks of `ropewalk bench torch` and defines what they measure."""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.distributed as dist

import ropewalk.torch

from .. import cores
from . import pytorch_box, pytorch_training
from .jobs import Row

if TYPE_CHECKING:
    from .pytorch import Options

Group: TypeAlias = "dist.ProcessGroup"
Call = Callable[[Group], Any]
# What the ranks do, with the options, a group of Gloo and one of ropewalk.
Body: TypeAlias = "Callable[[Options, Group, Group], list[Row]]"

# Each backend has this number of rounds, turn by turn. Medians are those of the rounds.
_ROUNDS = 11


def measure(options: Options, folder: str) -> list[Row] | None:
    """Starts the ranks and waits for them: once for the calls, and once for each number of ranks of
    the trainings. Returns their rows, or None where a rank has failed."""
    torch.set_num_threads(1)
    rows = _run(options.ranks, _sweep, options, folder)
    if rows is None or options.no_training:
        return rows
    print(f"\n{pytorch_training.HEADING}", flush=True)
    trained: list[Row] = []
    for ranks in options.counts:
        found = _run(ranks, pytorch_training.train, options, folder)
        if found is None:
            return None
        trained += found
        pytorch_training.add_efficiency(trained)
        print(*pytorch_training.lines(trained[-len(found) :]), sep="\n", flush=True)
    return rows + trained


def _run(ranks: int, body: Body, options: Options, folder: str) -> list[Row] | None:
    """Calls `body` in `ranks` children, and returns the rows of rank 0."""
    sys.stdout.flush()
    if options.nodes > 1:
        own = tempfile.mkdtemp(dir=folder)
        return pytorch_box.run(ranks, functools.partial(live, body), options, own)
    children = []
    with tempfile.TemporaryDirectory(dir=folder) as own:
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                os._exit(live(body, rank, ranks, options, own))
            children.append(child)
        if not _all_fine(children):
            return None
        with open(os.path.join(own, "rows"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def _all_fine(children: list[int]) -> bool:
    """Waits for all ranks. When one has failed, the others, which would wait for it, are ended."""
    left, fine = set(children), True
    while left:
        child, status = os.wait()
        left.discard(child)
        if status and fine:
            fine = False
            for other in left:
                os.kill(other, signal.SIGTERM)
    return fine


def live(body: Body, rank: int, ranks: int, options: Options, folder: str) -> int:
    """Lives as one rank; returns the status of its process."""
    if not options.no_bind:
        os.sched_setaffinity(0, cores.share_of_rank(rank, ranks))
    try:
        store = dist.FileStore(os.path.join(folder, "store"), ranks)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
        ours = dist.new_group(backend="ropewalk")
        rows = body(options, dist.group.WORLD, ours)
        dist.destroy_process_group()
        if rank == 0:
            with open(os.path.join(folder, "rows"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        sys.stdout.flush()
        return 0
    except Exception:
        traceback.print_exc()
        return 1


def _sweep(options: Options, gloo: Group, ours: Group) -> list[Row]:
    rank = dist.get_rank()
    if rank == 0:
        print(
            f"{'call':15} {'bytes':>9} {'tensors':9} "
            f"{'Gloo us':>10} {'ropewalk us':>11} {'ratio':>7}"
        )
    ops, places = options.ops.split(","), options.tensors.split(",")
    cases = [
        (op, size, where)
        for op in ops
        for size in (options.bytes if op != "barrier" else [0])
        for where in (places if op != "barrier" else places[:1])
    ]
    budget = options.seconds_of_calls / max(1, len(cases))
    rows = []
    for op, size, where in cases:
        row = _measure_case(op, size, where, budget, (gloo, ours), options)
        rows.append(row)
        if rank == 0:
            print(
                f"{op:15} {size:>9} {where:9} "
                f"{row['peer_us']:>10.1f} {row['time_us']['median']:>11.2f} {row['ratio']:>7.1f}",
                flush=True,
            )
    if rank == 0:
        for op in ops:
            ratios = [row["ratio"] for row in rows if row["op"] == op]
            print(f"{op:15} {'geometric mean':>43} {statistics.geometric_mean(ratios):>13.1f}")
    return rows


def _measure_case(
    op: str, size: int, where: str, budget: float, groups: tuple[Group, Group], options: Options
) -> Row:
    gloo, ours = groups
    with pytorch_training.tensors_in(where):
        call, check = make_case(op, size, where == "arena")
    wrong = 0.0
    for group in (gloo, ours):
        wrong += not check(group)
    verified = _agree(wrong, ours) == 0
    # Each turn makes as many calls as fit the budget. The number is the same on all ranks.
    calls = []
    for group in (gloo, ours):
        once = _agree(max(_time(call, group, 1) for _ in range(3)), ours)
        calls.append(max(1, min(20_000, int(budget / 2 / _ROUNDS / once))))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for group, count, found in zip((gloo, ours), calls, times, strict=True):
            found.append(_agree(_time(call, group, count), ours) * 1e6)
    peer, own = statistics.median(times[0]), statistics.median(times[1])
    return {
        "bench": "torch",
        "op": op,
        "bytes": size,
        "ranks": dist.get_world_size(),
        **options.network(),
        "dtype": "float32",
        "buffers": "hot",
        "memory": where,
        "time_us": {
            "median": round(own, 3),
            "min": round(min(times[1]), 3),
            "p99": round(max(times[1]), 3),
            "n": _ROUNDS,
        },
        "peer": "gloo",
        "peer_us": round(peer, 3),
        "ratio": round(peer / own, 3),
        "verified": verified,
    }


def _time(call: Call, group: Group, count: int) -> float:
    """Returns the seconds that one of `count` calls takes on average."""
    dist.barrier(group)
    begun = time.perf_counter()
    for _ in range(count):
        call(group)
    return (time.perf_counter() - begun) / count


def _agree(seconds: float, group: Group) -> float:
    """Returns the longest time that any rank of the group has given."""
    found = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX, group)
    return float(found)


def make_case(op: str, size: int, arena: bool) -> tuple[Call, Callable[[Group], bool]]:
    """Returns a call on tensors of `size` bytes, and a check of its results. Where a call has a
    tensor for each rank, all of these together have `size` bytes."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    count = max(1, size // 4)
    part = math.ceil(count / ranks)
    new = ropewalk.torch.empty if arena else torch.empty
    whole, block, tensor = new(part * ranks), new(part), new(count)
    received, message = new(part * ranks), new(count)
    following, before = (rank + 1) % ranks, (rank - 1) % ranks

    def exchange(group: Group) -> None:
        if ranks == 1:
            return
        if rank % 2 == 0:
            dist.send(tensor, following, group)
            dist.recv(message, before, group)
        else:
            dist.recv(message, before, group)
            dist.send(tensor, following, group)

    # These calls have new names since torch 2.13.
    all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    reduce_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
    calls: dict[str, Call] = {
        "all_reduce": lambda group: dist.all_reduce(tensor, group=group),
        "broadcast": lambda group: dist.broadcast(tensor, 0, group),
        "all_gather": lambda group: all_gather(whole, block, group),
        "reduce_scatter": lambda group: reduce_scatter(block, whole, group=group),
        "all_to_all": lambda group: dist.all_to_all_single(received, whole, group=group),
        "send_recv": exchange,
        "barrier": lambda group: dist.barrier(group),
    }

    def check(group: Group) -> bool:
        if op == "barrier":
            return _nobody_leaves_early(group)
        for each in (tensor, block, whole, message):
            each.fill_(rank + 1.0)
        calls[op](group)
        total = ranks * (ranks + 1) / 2
        result, expected = {
            "all_reduce": (tensor, torch.full_like(tensor, total)),
            "broadcast": (tensor, torch.ones_like(tensor)),
            "all_gather": (whole, torch.arange(1.0, ranks + 1).repeat_interleave(part)),
            "reduce_scatter": (block, torch.full_like(block, total)),
            "all_to_all": (received, torch.arange(1.0, ranks + 1).repeat_interleave(part)),
            "send_recv": (message, torch.full_like(message, before + 1.0)),
        }[op]
        fine = bool(torch.equal(result, expected))
        for each in (tensor, block, whole):
            each.zero_()  # sums of sums would overflow
        return fine

    return calls[op], check


def _nobody_leaves_early(group: Group) -> bool:
    """Returns whether no rank has left a barrier before the last one came. The clock is the
    machine's."""
    time.sleep(0.002 * dist.get_rank())
    came = time.monotonic_ns()
    dist.barrier(group)
    left = time.monotonic_ns()
    last, first = torch.tensor([came]), torch.tensor([left])
    dist.all_reduce(last, dist.ReduceOp.MAX)
    dist.all_reduce(first, dist.ReduceOp.MIN)
    return bool(first >= last)
