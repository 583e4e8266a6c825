"""Which rank goes to which node, so that each node has a compact block of the program's grid.

A program that numbers its grid row by row, as MPI_Cart_create does without reordering, has rank r
on the r-th cell. The launcher starts that rank on the node whose block has the cell. Ranks of the
library do the same among themselves with RankOrder::by_node, which compares the same blocks
(src/halo/rank_order.cc) and knows which dimensions are periodic; here they all count as such.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from .batch import Job

Extents = tuple[int, ...]

# Options of launchers that place ranks themselves.
PLACING_OPTIONS = (
    *("rankmap", "hosts", "f", "machinefile", "ppn", "map-by", "host", "rankfile"),
    *("distribution", "m", "nodelist", "w", "ntasks-per-node"),
)


@dataclass(frozen=True)
class Placement:
    """Where the ranks of a grid go."""

    extents: Extents
    hosts: tuple[str, ...]
    nodes: tuple[int, ...]  # of each rank: an index into hosts
    block: Extents | None  # the part of each node; None: ranks in their own order
    links: int  # between neighbours on different nodes
    links_in_order: int  # the same with ranks placed node by node

    @property
    def per_node(self) -> int:
        return len(self.nodes) // len(self.hosts)

    @property
    def host_of_each(self) -> list[str]:
        return [self.hosts[node] for node in self.nodes]

    def __str__(self) -> str:
        part = dotted(self.block) if self.block else f"{self.per_node} ranks in their order"
        return (
            f"grid {dotted(self.extents)}: each node has {part}; {self.links} links between "
            f"nodes, {self.links_in_order} with ranks in their order"
        )


def dotted(extents: Sequence[int]) -> str:
    return ".".join(map(str, extents))


def extents_of(text: str) -> Extents:
    """The extents in "2.2.2.2", the value of --grid."""
    parts = text.split(".")
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise CommandError(
            f"--grid: '{text}', expected the ranks in each dimension with dots between, as in "
            "--grid 2.2.2.2"
        )
    return tuple(map(int, parts))


def place(extents: Extents, hosts: Sequence[str]) -> Placement:
    """The block for each host with the fewest links between nodes in a periodic grid, and of
    those the fewest in an open one; the order of ranks if no block has fewer."""
    cells, nodes = math.prod(extents), len(hosts)
    in_order = [rank * nodes // cells for rank in range(cells)]
    before = best_links = _links(extents, in_order)
    best, block = in_order, None
    for one in _blocks(extents, cells // nodes):
        found = _in_blocks(extents, one)
        links = _links(extents, found)
        if links < best_links or (block is None and found == best):
            best, block, best_links = found, one, links
    return Placement(extents, tuple(hosts), tuple(best), block, best_links[0], before[0])


def _links(extents: Extents, nodes: Sequence[int]) -> tuple[int, int]:
    return crossing_links(extents, nodes, True), crossing_links(extents, nodes, False)


def crossing_links(extents: Extents, nodes: Sequence[int], periodic: bool) -> int:
    """Links between neighbours towards + of which the two cells are on different nodes."""
    crossing = 0
    for dimension, extent in enumerate(extents):
        stride = math.prod(extents[dimension + 1 :])
        for cell, node in enumerate(nodes):
            at_end = cell // stride % extent == extent - 1
            if periodic or not at_end:
                crossing += node != nodes[cell + stride - (stride * extent if at_end else 0)]
    return crossing


def _blocks(extents: Extents, cells: int) -> Iterator[Extents]:
    """The extents of all blocks of so many cells that divide the grid evenly."""
    divisors = ([part for part in range(1, whole + 1) if whole % part == 0] for whole in extents)
    return (block for block in itertools.product(*divisors) if math.prod(block) == cells)


def _in_blocks(extents: Extents, block: Extents) -> list[int]:
    """The block of each cell, both counted row by row."""
    numbers = []
    for cell in itertools.product(*map(range, extents)):
        number = 0
        for at, whole, part in zip(cell, extents, block, strict=True):
            number = number * (whole // part) + at // part
        numbers.append(number)
    return numbers


# ---- what was asked for, against the nodes there are ---------------------------------------------


def checked(extents: Extents, job: Job, hosts: Sequence[str], per_node: int | None) -> Placement:
    """The placement over the nodes of --nodes or of the job, of which as many are used as
    --ranks-per-node says."""
    ranks, names = math.prod(extents), hosts or job.names
    if not names and job.nodes > 1:
        raise CommandError(
            f"--grid: the names of the job's {job.nodes} nodes are not known; give --nodes"
        )
    names = names or ("localhost",)
    if per_node is None and not hosts and len(set(dict(job.hosts).values())) > 1:
        shown = ", ".join(f"{name}: {places}" for name, places in job.hosts)
        raise CommandError(
            f"--grid: the nodes hold different numbers of ranks ({shown}), expected equal ones; "
            "give --ranks-per-node"
        )
    used = ranks // per_node if per_node else len(names)
    if ranks % (per_node or used) != 0:
        what = f"{per_node} on each node" if per_node else f"equal parts on {used} nodes"
        raise CommandError(
            f"--grid: {dotted(extents)} has {ranks} ranks, which cannot be {what}; change the "
            "grid, --nodes or --ranks-per-node"
        )
    return place(extents, names[:used])
