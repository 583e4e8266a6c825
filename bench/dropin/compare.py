"""Unchanged benchmark programs without the drop-in and with it, in turns.

    bench/dropin/compare.py [--mpi PEER,...] [-n 2] [--time 100s] [--imb PATH] [--json FILE]
    bench/dropin/compare.py --passing                     what a call costs that is passed through

Compiles collectives.c and passing.c against each MPI's mpi.h, without a header or library of
ropewalk, and runs them under the MPI's own launcher; with the drop-in, LD_PRELOAD is all the
difference. Beside it, in the same turns, `ropewalk bench collectives` calls the same collectives
natively. --imb runs IMB-MPI1, a benchmark that nobody here compiled, the same way.

Peers: mpich, mpich-nodevice, openmpi, openmpi-ucx, intel, as in `ropewalk bench collectives`.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "programs"))
sys.path.insert(0, str(HERE.parent / "common"))
sys.path.insert(0, str(HERE.parents[1] / "python"))

import budget  # noqa: E402
import launching  # noqa: E402
from rows import Rows, times  # noqa: E402

from ropewalk.bench.peers import PEERS  # noqa: E402

PAIRS = 5
IMB_OPS = ("allreduce", "bcast", "alltoall", "allgather", "reduce", "barrier")


def parser():
    made = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    made.add_argument("--mpi", default="mpich,openmpi", help="peers, as a list (mpich,openmpi)")
    made.add_argument("-n", "--ranks", type=int, default=2)
    budget.add_options(made, "runs with and without", PAIRS)
    made.add_argument("--op", default="allreduce,bcast,alltoall,barrier")
    made.add_argument("--sizes", default="4,64,1K,4K,16K,64K,256K,1M,4M")
    made.add_argument("--rounds", type=int, default=7, help="rounds within a run (7)")
    made.add_argument("--loop", default="tight", choices=("tight", "apart"), help="collectives.c")
    made.add_argument("--memory", default="malloc", choices=("malloc", "static"))
    made.add_argument("--type", default="float", choices=("float", "char"))
    made.add_argument("--build", default=str(launching.ROOT / "build/release"))
    made.add_argument("--no-native", dest="native", action="store_false")
    made.add_argument("--imb", help="path of IMB-MPI1 (of the MPICH family's ABI)")
    made.add_argument("--passing", action="store_true", help="what a passed call costs")
    made.add_argument("--json", help="a file for the rows, as JSON lines")
    return made


def peers(options):
    chosen = options.mpi.split(",")
    for peer in chosen:
        if peer not in PEERS:
            raise SystemExit(f"--mpi: {peer}; expected {', '.join(PEERS)}")
    return chosen


def compile_program(source, mpi, folder):
    prefix = pathlib.Path(mpi.library).parents[1]
    program = folder / f"{source}-{mpi.name}"
    if not program.exists():
        words = ["gcc", "-O2", f"-I{prefix}/include", str(HERE / f"{source}.c"), mpi.library]
        subprocess.run([*words, "-o", str(program)], check=True)
    return str(program)


def run_own(mpi, options, folder, preload, variables):
    program = [compile_program("collectives", mpi, folder), "--op", options.op]
    program += ["--sizes", options.sizes, "--rounds", str(options.rounds)]
    program += ["--loop", options.loop, "--memory", options.memory, "--type", options.type]
    outcome = launching.start(mpi, options.ranks, program, preload, variables, 600)
    if outcome.status != 0 or "WRONG" in outcome.output:
        raise SystemExit(f"{mpi.name}: status {outcome.status}\n{outcome.output}{outcome.errors}")
    rows = [line.split() for line in outcome.output.splitlines()]
    return {(row[0], int(row[1])): float(row[2]) for row in rows if len(row) == 5}


def run_imb(mpi, options, folder, preload, variables):
    """t_avg of the ranks."""
    wanted = [op.capitalize() for op in options.op.split(",") if op in IMB_OPS]
    lengths = folder / "lengths"
    lengths.write_text("\n".join(str(size(text)) for text in options.sizes.split(",")) + "\n")
    program = [options.imb, *wanted, "-npmin", str(options.ranks), "-msglen", str(lengths)]
    program += ["-time", "1", "-mem", "1"]
    outcome = launching.start(mpi, options.ranks, program, preload, variables, 600)
    if outcome.status != 0:
        raise SystemExit(f"IMB: status {outcome.status}\n{outcome.output}{outcome.errors}")
    return dict(imb_rows(outcome.output))


def imb_rows(text):
    op = None
    for line in text.splitlines():
        words = line.split()
        if line.startswith("# Benchmarking"):
            op = words[2].lower()
        elif op == "barrier" and len(words) == 4 and words[0].isdigit():
            yield (op, 0), float(words[3])
        elif op and op != "barrier" and len(words) == 5 and words[0].isdigit() and int(words[0]):
            yield (op, int(words[0])), float(words[4])


def size(text):
    factor = {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)
    return int(text.rstrip("KM")) * factor


def run_native(mpi, options, folder, variables):
    """The native call in `ropewalk bench collectives`, hot buffers of the arena."""
    file = folder / "native.json"
    file.unlink(missing_ok=True)
    command = [ropewalk(), "bench", "collectives", "-n", str(options.ranks)]
    command += ["--mpi", str(pathlib.Path(mpi.library).parents[1]), "--op", options.op]
    command += ["--sizes", options.sizes, "--buffers", "hot", "--rounds", str(options.rounds)]
    for name, value in variables.items():
        command += ["--env", f"{name}={value}"]
    done = subprocess.run([*command, "--json", str(file)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ropewalk bench: {done.stdout}{done.stderr}")
    found = {}
    for line in file.read_text().splitlines():
        row = json.loads(line)
        if row.get("bench") == "collectives":
            found[row["op"], row["bytes"]] = row["time_us"]["median"]
    return found


def ropewalk():
    return os.environ.get("ROPEWALK_COMMAND") or str(
        pathlib.Path(launching.python()).with_name("ropewalk")
    )


def installed(peer):
    """The peer's MPI, or None, which is said, and the variables to start it with."""
    name, variables = PEERS[peer]
    mpi = launching.mpis().get(name)
    if mpi is None:
        print(f"{peer}: not installed")
    return mpi, variables


def compare(peer, options, preload, rows, time):
    mpi, variables = installed(peer)
    if mpi is None:
        return
    run = run_imb if options.imb else run_own
    columns = {"plain": [], "dropin": [], "native": []}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for _ in time.rounds():
            columns["plain"].append(run(mpi, options, folder, (), variables))
            columns["dropin"].append(run(mpi, options, folder, preload, variables))
            if options.native:
                columns["native"].append(run_native(mpi, options, folder, variables))
    runs = len(columns["plain"])
    print(f"\n{peer}, {options.ranks} ranks, median of {runs} runs, us a call")
    print(f"{'op':>10} {'bytes':>9} {'plain':>10} {'drop-in':>10} {'ratio':>6}", end="")
    print(f" {'native':>10} {'added':>8}" if options.native else "")
    for key in columns["plain"][0]:
        show(key, columns, peer, options, rows)


def show(key, columns, peer, options, rows):
    plain, dropin, native = ([run[key] for run in columns[c] if key in run] for c in columns)
    ratio = statistics.median(p / d for p, d in zip(plain, dropin, strict=True))
    plain_us, dropin_us = statistics.median(plain), statistics.median(dropin)
    line = f"{key[0]:>10} {key[1]:9} {plain_us:10.3f} {dropin_us:10.3f} {ratio:6.2f}"
    row = {"bench": "dropin", "program": "IMB-MPI1" if options.imb else "collectives.c"}
    row.update(peer=peer, ranks=options.ranks, op=key[0], bytes=key[1], ratio=ratio)
    row.update(loop=options.loop, memory=options.memory, type=options.type)
    row.update(mpi=PEERS[peer][0], time_us=times(dropin), plain_us=plain_us)
    row.update(plain_time_us=times(plain))
    if native:
        row["native_us"] = statistics.median(native)
        row["added_us"] = statistics.median(d - n for d, n in zip(dropin, native, strict=True))
        line += f" {row['native_us']:10.3f} {row['added_us']:+8.3f}"
    print(line, flush=True)
    rows.add(row)


def passing(peer, options, preload):
    mpi, variables = installed(peer)
    if mpi is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        program = [compile_program("passing", mpi, pathlib.Path(folder))]
        for label, libraries, more in (
            ("without the drop-in", (), {}),
            ("under the drop-in", preload, {}),
            ("under the drop-in, ROPEWALK_DISABLE=1", preload, {"ROPEWALK_DISABLE": "1"}),
        ):
            outcome = launching.start(
                mpi, options.ranks, program, libraries, {**variables, **more}, 300
            )
            print(f"\n{peer}, {label}: ns of the plain call, and what MPI_X takes besides")
            print(outcome.output + (outcome.errors if outcome.status else ""), end="")


def dropin_libraries(options):
    """What the drop-in preloads; ends the program where it is not built."""
    try:
        return launching.preloads(options.build)
    except launching.Skip as reason:
        raise SystemExit(str(reason)) from None


def within_budget(options, pairs, measure):
    """measure(peer, options, libraries, rows, time) for each peer; says how long that takes."""
    preload = dropin_libraries(options)
    rows = Rows(options.json, options.mpi)
    chosen = peers(options)
    time = budget.Budget(options, len(chosen), pairs)
    print(f"# time: {time.text()}")
    for peer in chosen:
        measure(peer, options, preload, rows, time)
    print(f"# took {time.took()}")
    return 0


def main():
    options = parser().parse_args()
    if not options.passing:
        return within_budget(options, PAIRS, compare)
    preload = dropin_libraries(options)
    for peer in peers(options):
        passing(peer, options, preload)
    return 0


if __name__ == "__main__":
    sys.exit(main())
