"""What a round of a persistent collective takes, without the drop-in and with it, in turns.

    bench/dropin/persistent.py [--mpi PEER,...] [-n 2] [--time 100s] [--op allreduce,...]
                               [--sizes 8,...] [--memory malloc] [--json FILE]

Compiles persistent.c (its head says what is measured) against each MPI's mpi.h and runs it under
the MPI's own launcher; LD_PRELOAD is all the difference. Beside the persistent round stands the
blocking call of the same run; `best plain` is the better of the two without the drop-in.

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
    made.add_argument("-n", "--ranks", type=int, default=2)
    budget.add_options(made, "runs with and without", PAIRS)
    made.add_argument("--op", default="barrier,allreduce,bcast,alltoall")
    made.add_argument("--sizes", default="8,512,4096,16384,65536,262144,1048576", help="bytes")
    made.add_argument("--memory", default="malloc", choices=("malloc", "static"))
    made.add_argument("--rounds", type=int, default=9, help="rounds within a run (9)")
    made.add_argument("--build", default=str(launching.ROOT / "build/release"))
    made.add_argument("--json", help="a file for the rows, as JSON lines")
    return made


def run(mpi, variables, options, preload, folder):
    """(operation, bytes) -> (persistent, blocking), microseconds"""
    program = [compile_program("persistent", mpi, folder), "--op", options.op]
    program += ["--sizes", options.sizes, "--rounds", str(options.rounds)]
    program += ["--memory", options.memory]
    outcome = launching.start(mpi, options.ranks, program, preload, variables, 300)
    if outcome.status != 0 or "WRONG" in outcome.output:
        raise SystemExit(f"{mpi.name}: status {outcome.status}\n{outcome.output}{outcome.errors}")
    rows = [line.split() for line in outcome.output.splitlines()]
    return {(row[0], int(row[1])): (float(row[2]), float(row[3])) for row in rows if len(row) == 5}


def measure(peer, options, preload, out, time):
    mpi, variables = installed(peer)
    if mpi is None:
        return
    plain, dropin = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in time.rounds():
            plain.append(run(mpi, variables, options, (), pathlib.Path(folder)))
            dropin.append(run(mpi, variables, options, preload, pathlib.Path(folder)))
    print(f"\n{peer}: {options.ranks} ranks, {options.memory}, medians of {len(plain)} runs, us")
    print(f"{'':20} {'plain MPI':^21} {'drop-in':^21} {'persistent of the drop-in':^27}")
    print(f"{'operation':>10} {'bytes':>9} {'persistent':>10} {'blocking':>10}", end=" ")
    print(f"{'persistent':>10} {'blocking':>10} {': blocking':>12} {': best plain':>14}")
    for case in plain[0]:
        show(peer, case, [run[case] for run in plain], [run[case] for run in dropin], options, out)


def show(peer, case, plain, dropin, options, out):
    columns = [[pair[i] for pair in runs] for runs in (plain, dropin) for i in (0, 1)]
    medians = [statistics.median(column) for column in columns]
    to_blocking = statistics.median(d[0] / d[1] for d in dropin)
    to_plain = statistics.median(d[0] / min(p) for p, d in zip(plain, dropin, strict=True))
    figures = " ".join(f"{median:10.3f}" for median in medians)
    print(f"{case[0]:>10} {case[1]:9} {figures} {to_blocking:12.2f} {to_plain:14.2f}", flush=True)
    row = {"bench": "persistent", "peer": peer, "mpi": PEERS[peer][0], "ranks": options.ranks}
    row |= {"op": case[0], "bytes": case[1], "memory": options.memory}
    row |= {"time_us": times(columns[2]), "blocking_us": medians[3], "plain_us": medians[0]}
    out.add(row | {"plain_blocking_us": medians[1], "to_blocking": to_blocking})


def main():
    return within_budget(parser().parse_args(), PAIRS, measure)


if __name__ == "__main__":
    sys.exit(main())
