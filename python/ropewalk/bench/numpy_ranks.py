"""One rank of `ropewalk bench numpy`: collectives on NumPy's arrays, as Python programs call them,
beside the same call from C++ and mpi4py's."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

import ropewalk

from . import jobs
from .jobs import Row

Call = Callable[[], Any]

_DESCRIPTION = "Collectives on NumPy's arrays, beside mpi4py's and the compiled call alone."
_UNITS = {"K": 1 << 10, "M": 1 << 20}
_ROUNDS = 11  # turn by turn; medians are those of the rounds
_SIZES = "8,1K,4K,16K,64K,1M"
_QUICK_SIZES = "8,4K"


def _bytes(text: str) -> list[int]:
    return [int(one.rstrip("KM")) * _UNITS.get(one[-1], 1) for one in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("ropewalk bench numpy", description=_DESCRIPTION)
    made.add_argument("--sizes", type=_bytes, help=f"bytes of an array; default: {_SIZES}")
    made.add_argument("--quick", action="store_true", help=f"a few seconds, sizes {_QUICK_SIZES}")
    made.add_argument("--time", type=float, metavar="S", help="how many seconds to measure at most")
    made.add_argument("--json", metavar="FILE", help="write the rows as JSON lines")
    return made


class Cases:
    """Calls on arrays of one size, each beside the same one of mpi4py."""

    def __init__(self, comm: ropewalk.Communicator, world: MPI.Intracomm, size: int) -> None:
        self._comm, self._world = comm, world
        elements = -(-max(size // 8, 1) // comm.size) * comm.size  # the rows of an alltoall
        self.array = np.zeros(elements)
        self.out = np.zeros(elements)

    def all(self) -> dict[str, tuple[Call, Call]]:
        comm, world, array, out = self._comm, self._world, self.array, self.out
        stacked = (comm.size, *array.shape)
        return {
            "allreduce in place": (
                lambda: comm.allreduce(out, out=out),
                lambda: world.Allreduce(MPI.IN_PLACE, out),
            ),
            "allreduce with out": (
                lambda: comm.allreduce(array, out=out),
                lambda: world.Allreduce(array, out),
            ),
            "allreduce": (
                lambda: comm.allreduce(array),
                lambda: world.Allreduce(array, np.empty(array.shape)),
            ),
            "allgather": (
                lambda: comm.allgather(array),
                lambda: world.Allgather(array, np.empty(stacked)),
            ),
            "alltoall": (
                lambda: comm.alltoall(array),
                lambda: world.Alltoall(array, np.empty(array.shape)),
            ),
            "broadcast": (lambda: comm.broadcast(out), lambda: world.Bcast(out)),
        }

    def without_python(self, calls: int) -> float:
        """Returns the seconds of an allreduce in place as the compiled part makes it."""
        return self._comm._core.time_allreduce(self.out, calls) / calls


def _is_right(comm: ropewalk.Communicator) -> bool:
    """Returns whether results are what NumPy makes of all ranks' arrays, small and large."""
    for elements in (2, 100, 10_000):
        every = np.random.default_rng(elements).integers(-9, 9, (comm.size, elements)).astype("d")
        own = every[comm.rank]
        in_place = own.copy()
        comm.allreduce(in_place, out=in_place)
        fine = np.array_equal(comm.allreduce(own), every.sum(0))
        fine &= np.array_equal(in_place, every.sum(0))
        fine &= np.array_equal(comm.allgather(own), every)
        if not fine:
            return False
    return True


def _time(call: Call, calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begun) / calls


def _measure(comm: ropewalk.Communicator, cases: Cases, name: str, seconds: float) -> list[float]:
    """Returns the microseconds of a call: ropewalk's, mpi4py's, and the compiled one."""

    def longest(found: float) -> float:
        return float(comm.allreduce(np.array([found]), op="max")[0])

    ours, theirs = cases.all()[name]
    timed: list[Callable[[int], float]] = [
        lambda calls: _time(ours, calls),
        lambda calls: _time(theirs, calls),
        cases.without_python,
    ]
    once = [longest(min(one(10) for _ in range(3))) for one in timed]
    counts = [max(1, int(seconds / len(timed) / _ROUNDS / each)) for each in once]
    times: list[list[float]] = [[] for _ in timed]
    for _ in range(_ROUNDS):
        for one, count, found in zip(timed, counts, times, strict=True):
            comm.barrier()
            found.append(longest(one(count)) * 1e6)
    return [statistics.median(found) for found in times]


def _row(name: str, size: int, ranks: int, found: list[float], verified: bool) -> Row:
    ours, theirs, compiled = (round(each, 3) for each in found)
    row: Row = {
        "bench": "numpy",
        "op": name,
        "bytes": size,
        "ranks": ranks,
        "dtype": "float64",
        "time_us": {"median": ours, "n": _ROUNDS},
        "peer": "mpi4py",
        "peer_us": theirs,
        "ratio": round(theirs / ours, 3),
        "verified": verified,
    }
    if name == "allreduce in place":
        row["compiled_us"] = compiled
    return row


def _line(row: Row) -> str:
    compiled = f"{row['compiled_us']:>12.2f}" if "compiled_us" in row else f"{'':12}"
    ours = row["time_us"]["median"]
    return (
        f"{row['op']:18} {row['bytes']:>9} {ours:>12.2f} {compiled} {row['peer_us']:>10.2f} "
        f"{row['ratio']:>7.2f}{'' if row['verified'] else '  WRONG DATA'}"
    )


def main(words: Sequence[str]) -> int:
    options = _parser().parse_args(words)
    sizes = options.sizes or _bytes(_QUICK_SIZES if options.quick else _SIZES)
    seconds = options.time or (4.0 if options.quick else 40.0)
    rows: list[Row] = []
    with ropewalk.Communicator(MPI.COMM_WORLD) as comm:
        verified = _is_right(comm)
        if comm.rank == 0:
            print(f"{'call':18} {'bytes':>9} {'ropewalk us':>12} {'compiled us':>12} ", end="")
            print(f"{'mpi4py us':>10} {'ratio':>7}", flush=True)
        for size in sizes:
            cases = Cases(comm, MPI.COMM_WORLD, size)
            names = list(cases.all())
            for name in names:
                found = _measure(comm, cases, name, seconds / len(sizes) / len(names))
                rows.append(_row(name, size, comm.size, found, verified))
                if comm.rank == 0:
                    print(_line(rows[-1]), flush=True)
        if comm.rank == 0 and options.json:
            jobs.write_rows(options.json, [_machine(), *rows])
    return 0 if verified else 1


def _machine() -> Row:
    version = MPI.Get_library_version().splitlines()[0]
    return {**jobs.machine("numpy", sys.argv[1:]), "numpy": np.__version__, "mpi": version}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
