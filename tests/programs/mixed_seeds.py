"""Random programs of tests/dropin/mixed, by seed: the same plainly and under the drop-in.

A run is one start of the program with many seeds. One that hangs says where each rank stands; it is
recorded with the stacks, ended, and the seeds that are left are started anew. Used by prove.py.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import launching

SEED = re.compile(r"^seed (\d+): (.*)$", re.MULTILINE)
HANG = re.compile(r"^mixed: no end: rank (\d+) \(process (\d+)\): seed (\d+), (.*)$", re.MULTILINE)
WRONG = re.compile(r"^mixed: (?:not so|an error of MPI): .*seed (\d+), .*$", re.MULTILINE)
ROW = re.compile(r"^\s+([A-Z]\w+)\s+(\d+)\s+\d+ \S+\s+[\d.]+\s+(.*)$", re.MULTILINE)
# These may all be passed: nonblocking ones, those of communicators that are as new as their
# topology, persistent ones and Sendrecv, of which a run has few, what Open MPI does itself over
# nodes, and what is done with windows, some of which are MPI's.
UNPROVEN = re.compile(
    r"^I[a-z]|^Neighbor_|_init$|^Alltoallw$|^Sendrecv$"
    r"|^Win_|^R?(Put|Get|Accumulate|Get_accumulate)$|^Fetch_and_op$|^Compare_and_swap$"
)
BEGUN = "mixed: begins"
LINGER_S = 30  # for the debugger
QUIET_S = 60  # beyond the program's own limit: its watch has failed, or it has not begun
STARTS = 3  # Open MPI 5.0.11 loses a message in MPI_Init or the first split, one start in sixty


@dataclasses.dataclass
class Found:
    """What the starts of one column have given."""

    lines: dict = dataclasses.field(default_factory=dict)  # seed -> what rank 0 printed
    bad: dict = dataclasses.field(default_factory=dict)  # seed -> why
    served: dict = dataclasses.field(default_factory=dict)  # function -> calls a rank served
    passed: dict = dataclasses.field(default_factory=dict)
    complete: bool = False  # statistics are of all seeds
    restarts: int = 0
    seconds: float = 0


def seeds_of(text):
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("..")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def ranges(seeds):
    """1,2,3,7 as 1..3,7."""
    parts = []
    for seed in sorted(seeds):
        if parts and parts[-1][1] == seed - 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ",".join(str(a) if a == b else f"{a}..{b}" for a, b in parts)


def stacks(processes):
    gdb = shutil.which("gdb")
    if gdb is None:
        return "    (no gdb here: no stacks)\n"
    text = ""
    for process in processes:
        words = [gdb, "-p", process, "-batch", "-ex", "thread apply all bt 12"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=LINGER_S)
            frames = [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
        except subprocess.TimeoutExpired:
            frames = ["gdb did not end"]
        text += f"    process {process}\n" + "".join(f"      {line[:110]}\n" for line in frames)
    return text


class Start:
    """One start of the program, watched until it ends or hangs."""

    def __init__(self, mpi, ranks, program, preload, variables, limit):
        self.mpi, self.ranks, self.program = mpi, ranks, program
        self.preload, self.variables, self.limit = preload, variables, limit
        self.output = self.errors = self.trouble = ""
        self.status = None

    def run(self, seeds):
        words = [*self.program, "--seeds", ranges(seeds), "--limit", str(self.limit)]
        words += ["--linger", str(LINGER_S)]
        command = launching.command(self.mpi, self.ranks, words, self.preload, self.variables)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                command,
                env=launching.environment(self.mpi),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            try:
                self._watch(child, output, errors)
            finally:
                if child.poll() is None:
                    launching.end(child)
            self._read(output, errors)

    def _read(self, output, errors):
        self.output, self.errors = (
            os.pread(file.fileno(), 1 << 26, 0).decode(errors="replace")
            for file in (output, errors)
        )

    def _watch(self, child, output, errors):
        heard, last = 0, time.monotonic()
        while True:
            try:
                self.status = child.wait(0.2)
                return
            except subprocess.TimeoutExpired:
                pass
            self._read(output, errors)
            text = self.output + self.errors
            if len(text) > heard:
                heard, last = len(text), time.monotonic()
            if HANG.search(text):
                time.sleep(1)  # the other ranks say where they stand, too
                self._read(output, errors)
                where = HANG.findall(self.output + self.errors)
                self.trouble = "".join(f"    rank {r}: {what}\n" for r, _, _, what in sorted(where))
                self.trouble += stacks([process for _, process, _, _ in where])
                return
            if time.monotonic() - last > self.limit + QUIET_S:
                return

    def seed_of_hang(self):
        found = HANG.search(self.output + self.errors)
        return int(found[3]) if found else None

    def begun(self):
        return BEGUN in self.output


def note(start, found, seeds):
    """Adds what one start gave; returns the seeds that are left."""
    found.lines.update((int(seed), line) for seed, line in SEED.findall(start.output))
    for wrong in WRONG.finditer(start.errors):
        found.bad.setdefault(int(wrong[1]), "wrong: " + wrong[0])
    left = [seed for seed in seeds if seed not in found.lines and seed not in found.bad]
    hung = start.seed_of_hang()
    if hung is not None:
        found.bad[hung] = "HANGS\n" + start.trouble.rstrip("\n")
    elif start.status != 0 and left and len(left) == len(seeds) - len(SEED.findall(start.output)):
        # Which seed it was is the first in the program's own order: those without windows first.
        first = next((seed for seed in left if seed % 3), left[0])
        tail = "\n".join((start.output + start.errors).splitlines()[-8:])
        found.bad[first] = f"status {start.status}\n{tail}"
    return [seed for seed in left if seed not in found.bad]


def run(mpi, ranks, program, seeds, preload, variables, limit, most_bad):
    found = Found()
    began = time.monotonic()
    left, starts = list(seeds), STARTS
    while left and len(found.bad) < most_bad:
        start = Start(mpi, ranks, program, preload, variables, limit)
        start.run(left)
        if not start.begun() and starts > 1 and mpi.name == "openmpi":
            starts -= 1
            found.restarts += 1
            continue
        found.complete = len(left) == len(seeds) and start.status == 0
        add_statistics(start.errors, found)
        left = note(start, found, left)
        if not left and not found.bad and start.status != 0:
            tail = "\n".join((start.output + start.errors).splitlines()[-8:])
            found.bad[0] = f"status {start.status} after the last seed\n{tail}"
    found.seconds = time.monotonic() - began
    return found


def add_statistics(text, found):
    for function, calls, path in ROW.findall(text):
        column = found.passed if path.startswith("MPI:") else found.served
        column[function] = column.get(function, 0) + int(calls)


def unserved(found):
    """Blocking collectives that were called and of which none was served."""
    names = set(found.passed) - set(found.served)
    blocking = sorted(name for name in names if not UNPROVEN.search(name))
    return blocking or ([] if found.served else ["no call at all"])


def program_of(mpi, build):
    # Intel MPI has MPICH's ABI, and the library path of the run chooses between them.
    built_with = "mpich" if mpi.name == "intel" else mpi.name
    path = pathlib.Path(build).resolve() / "tests/dropin" / built_with / "mixed"
    if not path.exists():
        raise launching.Skip(f"not built: {path}")
    return str(path)


def compare(mpi, plain_mpi, ranks, options, preload):
    """Runs and prints one row, whose plain runs are with another MPI perhaps; returns it."""
    program, seeds = [program_of(mpi, options.build)], seeds_of(options.seeds)
    if options.synchronous:
        program.append("--synchronous")
    if options.multiple:
        program.append("--multiple")
    settings = dict(word.split("=", 1) for word in options.env)
    arguments = (options.limit, options.most_bad)
    plain_program = [program_of(plain_mpi, options.build), *program[1:]]
    plain = run(plain_mpi, ranks, plain_program, seeds, (), settings, *arguments)
    dropin = run(
        mpi, ranks, program, seeds, preload, settings | {"ROPEWALK_STATS": "1"}, *arguments
    )
    differ = sorted(
        seed
        for seed in plain.lines.keys() & dropin.lines.keys()
        if plain.lines[seed] != dropin.lines[seed]
    )
    row = {"bench": "mixed", "mpi": mpi.name, "ranks": ranks, "seeds": options.seeds}
    row |= {"equal": len(plain.lines.keys() & dropin.lines.keys()) - len(differ), "differ": differ}
    row |= {"plain_bad": plain.bad, "dropin_bad": dropin.bad}
    row |= {"plain_s": round(plain.seconds, 1), "dropin_s": round(dropin.seconds, 1)}
    row |= {"plain_restarts": plain.restarts, "dropin_restarts": dropin.restarts}
    row["served"] = sum(dropin.served.values())
    row["unserved"] = unserved(dropin) if dropin.complete and ranks > 1 else []
    show(row)
    return row


def show(row):
    print(
        f"{row['mpi']:10} {row['ranks']:5} {row['equal']:8} {len(row['differ']):9}"
        f" {len(row['plain_bad']):9} {len(row['dropin_bad']):11} {row['served']:13}"
        f" {row['plain_s']:8} {row['dropin_s']:10}"
    )
    for label, bad in (("plain", row["plain_bad"]), ("drop-in", row["dropin_bad"])):
        for seed, why in sorted(bad.items()):
            print(f"  {label}, {row['ranks']} ranks, seed {seed}: {why}")
    for seed in row["differ"]:
        print(f"  seed {seed}: another digest under the drop-in")
    for name in row["unserved"]:
        print(f"  never served: {name}")
    for label in ("plain", "dropin"):
        if row[f"{label}_restarts"]:
            print(
                f"  {label}: {row[f'{label}_restarts']} starts hung in MPI_Init or the first split"
            )
    sys.stdout.flush()


HEADING = (
    f"{'MPI':10} ranks    equal different bad plain bad drop-in served a rank"
    f" {'plain s':>8} {'drop-in s':>10}"
)


def holds(row):
    return row["equal"] > 0 and not (
        row["differ"] or row["plain_bad"] or row["dropin_bad"] or row["unserved"]
    )
