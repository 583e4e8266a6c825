"""What one-sided operations take without the drop-in and with it, in turns.

    bench/dropin/onesided.py [--mpi PEER,...] [--time 100s] [--sizes 8,512,4096,65536] [--json FILE]

Compiles onesided.c (its head says what is measured) against each MPI's mpi.h and runs it with two
ranks under the MPI's own launcher; LD_PRELOAD and ROPEWALK_ONESIDED=on are all the difference.

Peers: mpich, mpich-nodevice, openmpi, openmpi-ucx, intel, as in compare.py.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

from compare import PEERS, budget, compile_program, installed, launching, times, within_budget

PAIRS = 5


def parser():
    made = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    made.add_argument("--mpi", default="mpich,openmpi", help="peers, as a list (mpich,openmpi)")
    budget.add_options(made, "runs with and without", PAIRS)
    made.add_argument("--sizes", default="8,512,4096,65536", help="bytes, 8 to 1048576")
    made.add_argument("--rounds", type=int, default=9, help="rounds within a run (9)")
    made.add_argument("--build", default=str(launching.ROOT / "build/release"))
    made.add_argument("--json", help="a file for the rows, as JSON lines")
    return made


def run(mpi, variables, options, preload, folder):
    """(operation, bytes) -> microseconds"""
    program = [compile_program("onesided", mpi, folder)]
    program += ["--sizes", options.sizes, "--rounds", str(options.rounds)]
    more = {"ROPEWALK_ONESIDED": "on"} if preload else {}
    outcome = launching.start(mpi, 2, program, preload, {**variables, **more}, 300)
    if outcome.status != 0:
        raise SystemExit(f"{mpi.name}: status {outcome.status}\n{outcome.output}{outcome.errors}")
    rows = [line.split() for line in outcome.output.splitlines()]
    return {(row[0], int(row[1])): float(row[2]) for row in rows if len(row) == 3}


def measure(peer, options, preload, out, time):
    mpi, variables = installed(peer)
    if mpi is None:
        return
    plain, dropin = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in time.rounds():
            plain.append(run(mpi, variables, options, (), pathlib.Path(folder)))
            dropin.append(run(mpi, variables, options, preload, pathlib.Path(folder)))
    print(f"\n{peer}: 2 ranks, medians of {len(plain)} runs, us an operation")
    print(f"{'operation':>10} {'bytes':>8} {'plain':>9} {'drop-in':>9} {'plain/drop-in':>14}")
    for case in plain[0]:
        show(peer, case, [run[case] for run in plain], [run[case] for run in dropin], out)


def show(peer, case, plain, dropin, out):
    ratio = statistics.median(p / d for p, d in zip(plain, dropin, strict=True))
    plain_us, dropin_us = statistics.median(plain), statistics.median(dropin)
    print(f"{case[0]:>10} {case[1]:8} {plain_us:9.3f} {dropin_us:9.3f} {ratio:14.2f}", flush=True)
    row = {"bench": "onesided", "peer": peer, "mpi": PEERS[peer][0], "ranks": 2, "op": case[0]}
    row |= {"bytes": case[1], "time_us": times(dropin), "ratio": ratio}
    out.add(row | {"plain_us": plain_us, "plain_time_us": times(plain)})


def main():
    return within_budget(parser().parse_args(), PAIRS, measure)


if __name__ == "__main__":
    sys.exit(main())
