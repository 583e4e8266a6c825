"""Programs with and without the malloc library, in interleaved pairs.

    python3 bench/malloc/compare.py build/release/preload/malloc/libropewalk-malloc.so \
        build/release/bench/malloc-workloads [--time 100s] [--only PART] [--json FILE]

Beside the workloads of malloc-workloads, which time themselves, whole programs are timed: Python's
start, JSON and SQLite, and a compilation where there is a compiler. For each: the medians and the
median of the ratios of the pairs; above 1 the library is slower.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))

from budget import Budget, add_options
from rows import Rows, times

PAIRS = 9

PROGRAMS = {
    "python-start": [sys.executable, "-c", "pass"],
    "python-json": [
        sys.executable,
        "-c",
        "import json\nx = [json.dumps({str(i): list(range(50))}) for i in range(8000)]\n"
        "y = [json.loads(z) for z in x]",
    ],
    "python-lists": [
        sys.executable,
        "-c",
        "x = [[i] * 30 for i in range(100000)]\nx.sort(reverse=True)\nb = bytearray()\n"
        "for i in range(200000): b += b'0123456789' * 8",
    ],
    "sqlite": [
        sys.executable,
        "-c",
        "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table t(a, b)')\n"
        "d.executemany('insert into t values(?, ?)', ((i * 7919 % 99991, str(i)) for i in"
        " range(60000)))\nd.execute('create index i on t(a)')\n"
        "print(len(d.execute('select a, count(*) from t group by b order by a').fetchall()))",
    ],
}
SOURCE = "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n" + (
    'int main() { std::map<std::string, std::vector<int>> m; m["a"] = {3, 1, 2};'
    ' std::sort(m["a"].begin(), m["a"].end()); return m["a"][0] - 1; }\n'
)


def timed(command: list[str], preload: str, reports: bool) -> float:
    """Microseconds: what the command says itself, else of the whole process."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    if preload:
        environment["LD_PRELOAD"] = preload
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=environment, input=SOURCE, capture_output=True, text=True, check=True
    )
    whole = 1e6 * (time.perf_counter() - begin)
    return float(done.stdout) if reports else whole


def compare(name: str, command: list[str], library: str, budget: Budget, reports: bool) -> dict:
    """One row of the table."""
    plain, with_library = [], []
    for pair in budget.rounds():
        order = ["", library] if pair % 2 == 0 else [library, ""]
        for preload in order:
            (with_library if preload else plain).append(timed(command, preload, reports))
    ratios = [one / other for one, other in zip(with_library, plain, strict=True)]
    return {
        "bench": "malloc",
        "workload": name,
        "plain_us": round(statistics.median(plain), 1),
        "plain_time_us": times(plain),
        "time_us": times(with_library),
        "ratio": round(statistics.median(ratios), 3),  # above 1 the library is slower
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("workloads")
    add_options(parser, "runs with and without the library", PAIRS)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--json", default="")
    arguments = parser.parse_args()
    names = subprocess.run(
        [arguments.workloads, "list"], capture_output=True, text=True, check=True
    ).stdout.split()
    rows = [(name, [arguments.workloads, name], True) for name in names]
    programs = dict(PROGRAMS)
    if compiler := shutil.which("g++"):
        programs["compile"] = [compiler, "-O1", "-x", "c++", "-", "-S", "-o", os.devnull]
    rows += [(name, command, False) for name, command in programs.items()]
    library = os.path.abspath(arguments.library)
    out = Rows(arguments.json or None)
    rows = [row for row in rows if arguments.only in row[0]]
    budget = Budget(arguments, len(rows), PAIRS)
    print(f"# time: {budget.text()}")
    print(f"{'workload':16}{'libc us':>14}{'library us':>14}{'ratio':>8}")
    for name, command, reports in rows:
        row = compare(name, command, library, budget, reports)
        print(f"{name:16}{row['plain_us']:14}{row['time_us']['median']:14}{row['ratio']:8}")
        out.add(row)
    print(f"# took {budget.took()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
