"""What a rank that waits costs those that need it, without the drop-in and with it, in turns.

    bench/dropin/progress.py [--mpi PEER,...] [--time 100s] [--operations 200] [--json FILE]

Compiles progress.c (its head says what is measured) against each MPI's mpi.h and runs it with two
ranks under the MPI's own launcher; LD_PRELOAD is all the difference. plain: MPI_Barrier without the
drop-in; drop-in: with it; PMPI: PMPI_Barrier in the same process as the latter. Times are
microseconds an operation, `idle` is the percentage of a core that a rank uses which waits.

Peers: mpich, mpich-nodevice, openmpi, openmpi-ucx, intel, as in compare.py.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

from compare import PEERS, budget, compile_program, installed, launching, times, within_budget

PAIRS = 3


def parser():
    made = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    made.add_argument("--mpi", default="mpich,openmpi", help="peers, as a list (mpich,openmpi)")
    budget.add_options(made, "runs with and without", PAIRS)
    made.add_argument("--operations", type=int, default=200, help="in a wait (200)")
    made.add_argument("--rounds", type=int, default=3, help="waits of a case in a run (3)")
    made.add_argument("--away-ms", type=int, default=300, help="before the operations (300)")
    made.add_argument("--build", default=str(launching.ROOT / "build/release"))
    made.add_argument("--no-unreceived", action="store_true", help="leave out those cases")
    made.add_argument("--timeout", type=float, default=300, help="seconds for one run (300)")
    made.add_argument("--json", help="a file for the rows, as JSON lines")
    return made


def run(mpi, variables, options, preload, folder):
    """case -> (figure by MPI_Barrier, by PMPI_Barrier)"""
    program = [compile_program("progress", mpi, folder)]
    for name in ("operations", "rounds", "away_ms"):
        program += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    program += ["--unreceived", "0" if options.no_unreceived else "1"]
    outcome = launching.start(mpi, 2, program, preload, variables, options.timeout)
    rows = [line.split() for line in outcome.output.splitlines() if line]
    if outcome.status != 0:
        label = "drop-in" if preload else "plain"
        ended = "did not end" if outcome.status is None else f"status {outcome.status}"
        print(f"  {label}: {ended} after: {', '.join(row[0] for row in rows) or 'nothing'}")
    return {row[0]: (float(row[1]), float(row[2])) for row in rows if len(row) == 3}


def measure(peer, options, preload, out, time):
    mpi, variables = installed(peer)
    if mpi is None:
        return
    settings = " ".join(f"{key}={value}" for key, value in variables.items())
    print(f"\n{peer} {settings}: 2 ranks, medians of the runs, us an operation")
    print(f"{'case':18} {'plain':>10} {'drop-in':>10} {'PMPI':>10} {'plain/drop-in':>14}")
    plain, dropin = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in time.rounds():
            plain.append(run(mpi, variables, options, (), pathlib.Path(folder)))
            dropin.append(run(mpi, variables, options, preload, pathlib.Path(folder)))
    for case in plain[0]:
        pairs = [(p[case], d[case]) for p, d in zip(plain, dropin, strict=True) if case in d]
        if pairs:
            show(peer, case, pairs, options, out)


def show(peer, case, pairs, options, out):
    plain, served, pmpi = (
        statistics.median(figures)
        for figures in zip(*((p[0], d[0], d[1]) for p, d in pairs), strict=True)
    )
    ratio = statistics.median(p[0] / d[0] for p, d in pairs)
    unit = " %" if case.startswith("idle") else ""
    shown = f"{ratio:14.2f}" if not unit else ""
    print(f"{case:18} {plain:10.3f} {served:10.3f} {pmpi:10.3f} {shown}{unit}", flush=True)
    row = {"bench": "progress", "peer": peer, "mpi": PEERS[peer][0], "ranks": 2, "case": case}
    row |= {"operations": options.operations, "away_ms": options.away_ms}
    if unit:
        row |= {"plain_percent": plain, "percent": served}
    else:
        row |= {"time_us": times(d[0] for _, d in pairs), "ratio": ratio}
        row |= {"plain_us": plain, "plain_time_us": times(p[0] for p, _ in pairs), "pmpi_us": pmpi}
    out.add(row)


def main():
    return within_budget(parser().parse_args(), PAIRS, measure)


if __name__ == "__main__":
    sys.exit(main())
