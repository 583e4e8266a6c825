"""Estimates where the very call was not measured: on other numbers of nodes from the latency and
the bandwidth of the wire, and on other numbers of ranks from the kernel's copies.

An estimate leaves out what flags, arithmetic and copies inside a node take, so it is a least time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

from . import model

Costs = Mapping[tuple[str, str, str], model.Model]


@dataclasses.dataclass(frozen=True)
class Wire:
    """A message between two nodes takes `latency` and `rate` for each byte, in microseconds. A node
    sends and receives all its bytes at that rate, however many of its ranks do."""

    latency: float
    rate: float


def wire_of(costs: Costs) -> Wire | None:
    """Returns the wire that a profile has measured, or None. Its bandwidth is that of long messages
    both ways at once: where each waits for the one before, a network that limits its rate by tokens
    lends some meanwhile."""
    one = costs.get(("wire", "arena", "one_way"))
    both = costs.get(("wire", "arena", "both_ways"))
    if one is None or both is None or len(both.points) < 2:
        return None
    (size, us), (larger, longer) = both.points[-2:]
    return Wire(one.points[0][1], max(0.0, longer - us) / (larger - size))


@dataclasses.dataclass(frozen=True)
class Call:
    """What a collective is called with: `size` as `ropewalk explain` takes it."""

    size: int
    nodes: int
    ranks: int  # on each node

    @property
    def tree(self) -> int:
        """The steps of a tree of all ranks."""
        return math.ceil(math.log2(self.nodes * self.ranks))

    @property
    def node_tree(self) -> int:
        """The steps of a tree of nodes."""
        return math.ceil(math.log2(self.nodes))

    @property
    def others(self) -> int:
        """The number of other nodes."""
        return self.nodes - 1

    @property
    def share(self) -> float:
        """What one node needs of the others' parts of a vector."""
        return self.size * self.others / self.nodes

    @property
    def blocks(self) -> int:
        """The bytes of the blocks of all ranks of the other nodes."""
        return self.size * self.others * self.ranks


# By subject and algorithm: messages one after the other, and bytes over the busiest wire.
_Term = Callable[[Call], tuple[float, float]]
_OVER_NODES: dict[tuple[str, str], _Term] = {
    ("allreduce", "flat"): lambda c: (c.tree, c.node_tree * c.ranks * c.size),
    ("allreduce", "mpi"): lambda c: (2 * c.node_tree, 2 * c.share),
    ("allreduce", "ring"): lambda c: (2 * c.others, 2 * c.share),
    ("reduce", "whole"): lambda c: (c.tree, c.node_tree * c.size),
    ("reduce", "chain"): lambda c: (c.others, c.size),
    ("bcast", "whole"): lambda c: (c.tree, c.node_tree * c.size),
    ("bcast", "flat"): lambda c: (c.tree, c.node_tree * c.size),
    ("bcast", "tree"): lambda c: (c.node_tree, c.node_tree * c.size),
    ("bcast", "chain"): lambda c: (c.others, c.size),
    ("allgather", "whole"): lambda c: (c.tree, c.blocks),
    ("allgather", "leaders"): lambda c: (c.node_tree, c.blocks),
    ("allgather", "slices"): lambda c: (c.others, c.blocks),
    ("reduce_scatter", "whole"): lambda c: (c.tree, c.share),
    ("reduce_scatter", "chunks"): lambda c: (c.others, c.share),
    ("alltoall", "whole"): lambda c: (c.nodes * c.ranks - 1, c.ranks * c.blocks),
    ("alltoall", "together"): lambda c: (c.others, c.ranks * c.blocks),
    ("alltoall", "each"): lambda c: (c.others * c.ranks, c.ranks * c.blocks),
    ("gather", "whole"): lambda c: (c.tree, c.blocks),
    ("gather", "rooted"): lambda c: (c.others, c.blocks),
    ("scatter", "whole"): lambda c: (c.tree, c.blocks),
    ("scatter", "rooted"): lambda c: (c.others, c.blocks),
}


def over_nodes(wire: Wire, subject: str, algorithm: str, call: Call) -> float | None:
    """Returns the microseconds by the wire alone, or None for an algorithm without an estimate."""
    term = _OVER_NODES.get((subject, algorithm))
    if term is None:
        return None
    messages, size = term(call)
    return wire.latency * messages + wire.rate * size


# ---- copies of the kernel, by the number of ranks that read at once ------------------------------


def _count(pattern: str, path: str, ranks: int) -> int | None:
    """Returns how many ranks read at once in a measured path, or None for another pattern."""
    if path == "alone":
        return 1
    if path == pattern:  # all ranks took part
        return ranks if pattern == "all_to_all" else ranks - 1
    name, _, number = path.rpartition("_")
    return int(number) if name == pattern and number.isdecimal() else None


def readers(costs: Costs, ranks: int, pattern: str, at_once: int, size: int) -> float | None:
    """Returns the microseconds of one copy of the kernel while so many ranks read: from one rank
    (`one_to_all`), or each from another one (`all_to_all`); by a profile of `ranks` ranks. Between
    two numbers of readers it lies on the line between them; beyond the largest it continues in
    proportion. None: not measured."""
    measured: dict[int, float] = {}
    for (subject, _, path), cost in costs.items():
        count = _count(pattern, path, ranks) if subject == "kernel" else None
        if count is not None:
            measured[count] = cost.predicted(size)
    if not measured:
        return None
    return model.fit(list(measured.items()), ()).predicted(at_once)


# By subject: the pattern, how often it is done, and the share of the size that one copy has.
_Kernel = Callable[[int], tuple[str, int, float]]
_BY_KERNEL: dict[str, _Kernel] = {
    "bcast": lambda n: ("one_to_all", 1, 1),
    "scatter": lambda n: ("one_to_all", 1, 1),
    "gather": lambda n: ("alone", n - 1, 1),
    "allgather": lambda n: ("all_to_all", n - 1, 1),
    "alltoall": lambda n: ("all_to_all", n - 1, 1),
    "reduce_scatter": lambda n: ("all_to_all", n - 1, 1 / n),
    "allreduce": lambda n: ("all_to_all", 2 * (n - 1), 1 / n),
}


def by_kernel(
    costs: Costs, measured_ranks: int, subject: str, ranks: int, size: int
) -> float | None:
    """Returns the microseconds that the kernel's copies of a collective take among so many ranks of
    one node, by a profile of others, or None where nothing was measured."""
    if subject not in _BY_KERNEL or ranks < 2:
        return None
    pattern, times, share = _BY_KERNEL[subject](ranks)
    at_once = {"one_to_all": ranks - 1, "all_to_all": ranks, "alone": 1}[pattern]
    one = readers(costs, measured_ranks, pattern, at_once, round(size * share))
    return None if one is None else times * one
