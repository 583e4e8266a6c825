"""Runs a C program of this folder on a plain MPI and with the drop-in, in turns.

The program prints a line a case: its operation, bytes, and microseconds. LD_PRELOAD is all the
difference.
"""

import argparse
import pathlib
import statistics
import tempfile
from dataclasses import dataclass, field

from compare import PEERS, budget, compile_program, installed, launching, times, within_budget

PAIRS = 5


@dataclass
class Benchmark:
    """The program is `name`.c, and `name` is what the rows are called."""

    name: str
    sizes: str
    arguments: list = field(default_factory=list)  # of the program
    row: dict = field(default_factory=dict)  # what each row says beside the figures

    def parser(self, description):
        made = argparse.ArgumentParser(description=description.split("\n\n")[0])
        made.add_argument("--mpi", default="mpich,openmpi", help="peers, as a list (mpich,openmpi)")
        budget.add_options(made, "runs with and without", PAIRS)
        made.add_argument("--sizes", default=self.sizes, help="bytes")
        made.add_argument("--rounds", type=int, default=9, help="rounds within a run (9)")
        made.add_argument("--build", default=str(launching.ROOT / "build/release"))
        made.add_argument("--json", help="a file for the rows, as JSON lines")
        return made

    def run(self, mpi, variables, options, preload, folder):
        """(operation, bytes) -> microseconds"""
        program = [compile_program(self.name, mpi, folder), *self.arguments]
        program += ["--sizes", options.sizes, "--rounds", str(options.rounds)]
        outcome = launching.start(mpi, 2, program, preload, variables, 300)
        if outcome.status != 0:
            raise SystemExit(
                f"{mpi.name}: status {outcome.status}\n{outcome.output}{outcome.errors}"
            )
        rows = [line.split() for line in outcome.output.splitlines()]
        return {(row[0], int(row[1])): float(row[2]) for row in rows if len(row) == 3}

    def measure(self, peer, options, preload, out, time):
        mpi, variables = installed(peer)
        if mpi is None:
            return
        plain, dropin = [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in time.rounds():
                plain.append(self.run(mpi, variables, options, (), pathlib.Path(folder)))
                dropin.append(self.run(mpi, variables, options, preload, pathlib.Path(folder)))
        print(f"\n{peer}: 2 ranks, medians of {len(plain)} runs, us an operation")
        print(f"{'operation':>10} {'bytes':>8} {'plain':>9} {'drop-in':>9} {'plain/drop-in':>14}")
        for case in plain[0]:
            self.show(peer, case, [run[case] for run in plain], [run[case] for run in dropin], out)

    def show(self, peer, case, plain, dropin, out):
        ratio = statistics.median(p / d for p, d in zip(plain, dropin, strict=True))
        plain_us, dropin_us = statistics.median(plain), statistics.median(dropin)
        print(
            f"{case[0]:>10} {case[1]:8} {plain_us:9.3f} {dropin_us:9.3f} {ratio:14.2f}", flush=True
        )
        row = {"bench": self.name, "peer": peer, "mpi": PEERS[peer][0], "ranks": 2, "op": case[0]}
        row |= {"bytes": case[1], "time_us": times(dropin), "ratio": ratio}
        out.add(row | {"plain_us": plain_us, "plain_time_us": times(plain)} | self.row)

    def main(self, options):
        return within_budget(options, PAIRS, self.measure)
