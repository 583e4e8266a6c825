"""Ranks of `ropewalk bench torch --nodes` live on the hosts of a cluster in a box, where messages
between nodes go over TCP, ropewalk's as Gloo's. No MPI is needed.

As a program it is one rank: `python -m ropewalk.bench.pytorch_box RANK RANKS FOLDER`.
"""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..cluster.box import Box
from .jobs import Row

if TYPE_CHECKING:
    from ..cluster import session
    from .pytorch import Options

# What a rank does with its number, that of all, the options and the folder of the rows. It is
# called in another process, and so pickled.
Live: TypeAlias = "Callable[[int, int, Options, str], int]"


def run(ranks: int, live: Live, options: Options, folder: str) -> list[Row] | None:
    """Calls `live` in the ranks, which are dealt to the hosts in blocks, and returns the rows of
    rank 0, or None where a rank has failed."""
    pathlib.Path(folder, "task").write_bytes(pickle.dumps((live, options)))
    with Box(min(options.nodes, ranks), rate=options.rate) as box:
        fine = _all_fine([_start(box, rank, ranks, folder) for rank in range(ranks)])
    if not fine:
        return None
    with open(os.path.join(folder, "rows"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _start(box: Box, rank: int, ranks: int, folder: str) -> session.Command:
    words = [sys.executable, "-m", "ropewalk.bench.pytorch_box", str(rank), str(ranks), folder]
    own = {**os.environ, "GLOO_SOCKET_IFNAME": box.network.interfaces[0]}
    node = box.nodes[rank * len(box.nodes) // ranks]
    with open(os.devnull, "rb") as nothing:
        return box.start(words, node, own, files=(nothing.fileno(), 1, 2), own=True)


def _all_fine(commands: list[session.Command]) -> bool:
    """Waits for all ranks, or for one that fails. The others would wait for it, and end with the
    box."""
    left = list(commands)
    while left:
        for command in select.select(left, [], [])[0]:
            if command.status():
                return False
            left.remove(command)
    return True


def main(words: list[str]) -> int:
    rank, ranks, folder = int(words[0]), int(words[1]), words[2]
    live, options = pickle.loads(pathlib.Path(folder, "task").read_bytes())
    status: int = live(rank, ranks, options, folder)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
