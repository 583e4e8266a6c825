"""Runs a benchmark program and checks what it wrote: exit status, JSON lines, CSV, summary.

check_run.py [--ranks N] [--line-rate MB] [--launcher WORD...] -- PROGRAM ARG...

`--line-rate`: what every row must take for 100 %, in MB/s of a node, one way.

`--expect-error TEXT` among the arguments of the program turns the check round: it must fail, and
say TEXT exactly once, whatever the number of ranks.
"""

import csv
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BINDING = {"bench", "ranks", "pages", "buffers", "time_us", "mb_per_s", "verified"}


def arguments(words):
    """Splits the command line into what is expected, launcher and program."""
    expected = {"--ranks": 1, "--line-rate": None}
    while words and words[0] in expected:
        expected[words[0]] = int(words[1])
        words = words[2:]
    at = words.index("--")
    launcher = words[1:at]
    program = words[at + 1 :]
    if launcher:
        launcher.append("--")
    return expected["--ranks"], expected["--line-rate"], launcher, program


def fail(message, run):
    """Ends with the reason and all that the program said."""
    said = f"--- out\n{run.stdout}\n--- err\n{run.stderr}"
    sys.exit(f"{message}\n--- status {run.returncode}\n{said}")


def check_rows(lines, ranks, line_rate, run):
    """Checks the JSON lines against the format that all benches share."""
    machine, rows = lines[0], lines[1:]
    missing = {"host", "kernel", "cpu", "caches", "pages", "mpi", "commit"} - machine.keys()
    if machine.get("bench") != "machine" or missing:
        fail(f"the first line is not the machine: {machine}, without {missing}", run)
    if not rows:
        fail("no rows", run)
    if rows[0]["bench"] == "tune":
        check_tune_rows(rows, run)
        return len(rows)
    for row in rows:
        if row.get("memory") == "device":
            check_device_row(row, run)
        elif row.get("what") in ("contention", "replay"):
            check_attach_row(row, ranks, run)
        else:
            check_row(row, ranks, line_rate, run)
    return len(rows)


def check_row(row, ranks, line_rate, run):
    """Checks what rows with a time have in common, then what their bench promises."""
    if BINDING - row.keys():
        fail(f"row without {BINDING - row.keys()}: {row}", run)
    if row["verified"] is not True or row["ranks"] != ranks:
        fail(f"not verified, or not {ranks} ranks: {row}", run)
    if line_rate is not None and row["line_rate_mb_per_s"] != line_rate:
        fail(f"the line rate is not {line_rate} MB/s: {row}", run)
    times = row["time_us"]
    if not (0 < times["min"] <= times["median"] <= times["p99"] and times["n"] > 0):
        fail(f"times out of order: {row}", run)
    if row["bench"] == "itt":
        check_itt_row(row, run)
    if row["bench"] == "p2p":
        check_p2p_row(row, run)
    if row["bench"] == "attach":
        check_attach_row(row, ranks, run)


def check_attach_row(row, ranks, run):
    """Steps of a transfer, copies at once beside those of one rank, and counts of a trace that
    cover every request."""
    if row["ranks"] != ranks:
        fail(f"not {ranks} ranks: {row}", run)
    if row["what"] == "steps":
        steps = [row[f"{name}_us"] for name in ("make", "attach", "touch", "copy", "detach")]
        if min(steps) < 0 or row["copy_us"] <= 0 or not 0 <= row["registration_percent"] <= 100:
            fail(f"steps of no sense: {row}", run)
    elif row["what"] == "contention":
        if row["us"] <= 0 or (row["pattern"] == "alone" and row["times_alone"] != 1):
            fail(f"times of no sense: {row}", run)
    elif row["hits"] + row["misses"] != row["requests"]:
        fail(f"requests that are neither hits nor misses: {row}", run)


def check_tune_rows(rows, run):
    """The machine, then thresholds with what they rest on, and costs, as `ropewalk tune` reads
    them."""
    kinds = [row["what"] for row in rows]
    if kinds[0] != "machine" or kinds.count("machine") != 1 or "machine.cpu" not in rows[0]:
        fail(f"not one machine, or not first: {rows[0]}", run)
    for row in rows[1:]:
        if row["what"] == "threshold":
            check_threshold(row, run)
        elif row["what"] == "situation":
            if row["nodes"] * row["ranks"] < 2:
                fail(f"not several ranks: {row}", run)
        elif not row["us"] > 0:
            fail(f"a time is none: {row}", run)
        elif row["what"] == "choice" and row["best_us"] > row["us"]:
            fail(f"the best is not the best: {row}", run)


def check_threshold(row, run):
    if bool(row["skipped"]) == bool(row["sizes"]):
        fail(f"neither measured nor skipped: {row}", run)
    if (row["value"] != row["before"]) != (row["gain"] >= 0.03):
        fail(f"changed for less than 3 %: {row}", run)
    for size in row["sizes"]:
        least = min((us for call in size.get("calls", []) for us in call["us"]), default=1)
        if size["ratio"][0] != 1 or least <= 0:
            fail(f"the first way is not 1, or a time is none: {size}", run)


def check_device_row(row, run):
    """Measured where there is a device, or skipped with the reason."""
    if "skipped" in row:
        if row["skipped"] != "no device" or os.environ.get("EXPECT_DEVICES"):
            fail(f"skipped: {row}", run)
    elif not (row["verified"] and row["time_us"]["median"] > 0 and row["path"] != "none"):
        fail(f"not a measured message: {row}", run)


def check_p2p_row(row, run):
    """Works the rates and ratios of messages out again from their times."""
    us = row["time_us"]["median"]
    directions = 2 if row["op"] == "bidirectional" else 1
    messages = 1e6 * directions * (row["ranks"] // 2) / us
    expected = {
        "messages_per_s": messages,
        "mb_per_s": messages * row["bytes"] / 1e6,
    }
    # Up to a cache line, only a ping-pong has one.
    if row["op"] == "latency" or row["bytes"] > 64:
        expected["limit_ratio"] = us / row["limit_us"]
    if row["mechanism"] == "choice":
        expected["ratio"] = row["plain_us"] / us
    for name, value in expected.items():
        # Both sides are rounded to thousandths, and times may be as short as tens of nanoseconds.
        if abs(row[name] - value) > 0.02 * value + 0.51:
            fail(f"{name}: {row[name]}, its times say {value}: {row}", run)
    if row["mechanism"] not in ("choice", row["path"]):
        fail(f"another mechanism than the one that was forced: {row}", run)
    if row["window"] > 1 and row["op"] == "latency":
        fail(f"a ping-pong has one message at a time: {row}", run)


def check_rates(rates, value, times, run, error=None):
    """Mean, error, least and most of a rate as Grid makes them of times: X/mean, X err/mean^2,
    X/max, X/min."""
    expected = {
        "mean": value / times["mean"],
        "median": value / times["median"],
        "error": value * times["error"] / times["mean"] ** 2 if error is None else error,
        "min": value / times["max"],
        "max": value / times["min"],
    }
    for name, rate in expected.items():
        # Both sides are rounded: times to six digits, rates to a tenth.
        if abs(rates[name] - rate) > 1e-4 * abs(rate) + 0.051:
            fail(f"{name}: {rates[name]}, its times say {rate}: {rates}, {times}", run)


def check_operator_case(one, flops, ranks, peak, run):
    times = one["time_us"]
    error = flops / times["min"] * times["error"] / times["mean"]
    check_rates(one["mflops"], flops, times, run, error)
    intensity = flops / ranks / one["bytes_a_rank"]
    roof = min(peak, intensity * one["bandwidth_mb_per_s"] / 1e3)
    if (
        abs(one["intensity"] - intensity) > 1e-3
        or abs(one["roof_gflops"] - roof) > 0.2 + 1e-3 * roof
    ):
        fail(f"intensity {intensity} and roof {roof} expected: {one}", run)
    share = 100 * flops / times["median"] / 1e3 / roof
    if abs(one["roof_percent"] - share) > 0.2 + 2e-2 * share:
        fail(f"{share} % of the roof expected: {one}", run)


def check_itt_row(row, run):
    """Works every number of the report out again from what the row says of its times."""
    table, times, ranks = row["table"], row["time_us"], row["ranks"]
    if not times["min"] <= times["mean"] <= times["max"] or times["error"] < 0:
        fail(f"times out of order: {row}", run)
    if table == "memory":
        number = 8 if row["precision"] == "double" else 4
        sites = 8 * row["L"] ** 4 * ranks
        if row["bytes"] != 3 * number * sites or row["flops"] != 2 * sites:
            fail(f"bytes and flops of a*x + y: {row}", run)
        check_rates(row["gb_per_s"], row["bytes"] / 1e3, times, run)
    elif table == "stencil":
        if row["bytes"] != row["L"] ** 3 * row["Ls"] * 96:
            fail(f"bytes of a message: {row}", run)
        check_rates(row["uni_mb_per_s"], row["node_bytes"], times, run)
        check_rates(row["bidi_mb_per_s"], 2 * row["node_bytes"], times, run)
    elif table in ("summary", "operators"):
        volume = math.prod(int(extent) for extent in row["local"].split(".")) * row["Ls"] * ranks
        half = row["op"] not in ("D_w", "sD_w", "Wilson D_w")
        volume *= row["fields"]
        if row["flops"] != row["flops_a_site"] * (volume // 2 if half else volume):
            fail(f"flops of a call: {row}", run)
        means = [one["time_us"]["mean"] for one in row["cases"].values()]
        for one in row["cases"].values():
            check_operator_case(one, row["flops"], ranks, row["peak_gflops"], run)
        node = row["flops"] / min(means) / row["nodes"]
        if abs(row["mflops_per_node"] - node) > 0.051 + 1e-4 * node:
            fail(f"{node} Mflop/s a node expected: {row}", run)
        if abs(row["robustness"] - min(means) / max(means)) > 1e-3:
            fail(f"robustness: worst over best expected: {row}", run)
    elif table == "comparison":
        if abs(row["mflops_per_node"] - sum(row["of"]) / 2) > 0.11:
            fail(f"half of the two: {row}", run)
    elif table != "roofline":
        fail(f"no such table: {row}", run)


def check_success(command, ranks, line_rate):
    """Runs with --json and --csv, and checks both files and the last line."""
    with tempfile.TemporaryDirectory() as folder:
        json_file = pathlib.Path(folder) / "rows.json"
        csv_file = pathlib.Path(folder) / "rows.csv"
        command = [*command, "--json", str(json_file), "--csv", str(csv_file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            fail("the program failed", run)
        lines = [json.loads(line) for line in json_file.read_text().splitlines()]
        rows = check_rows(lines, ranks, line_rate, run)
        with csv_file.open(newline="") as file:
            table = list(csv.DictReader(file))
        if len(table) != rows or any(None in row for row in table):
            fail(f"CSV has {len(table)} rows, JSON {rows}", run)
    said = run.stdout.strip().splitlines()
    if not said or not said[-1].startswith("summary: "):
        fail("the last line is no summary", run)
    heading = [line for line in said if line.startswith("# time: about ")]
    if len(heading) != 1 or not re.fullmatch(r"# took .+ s; announced: about .+ s", said[-2]):
        fail("what it takes is not announced, or not compared with what it took", run)


def check_error(command, expected):
    """The program must fail and name the reason once."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        fail("the program succeeded, an error was expected", run)
    said = run.stdout + run.stderr
    if said.count(expected) != 1:
        fail(f"expected once: {expected}", run)


def main():
    ranks, line_rate, launcher, program = arguments(sys.argv[1:])
    if "--expect-error" in program:
        at = program.index("--expect-error")
        expected = program[at + 1]
        check_error([*launcher, *program[:at], *program[at + 2 :]], expected)
    else:
        check_success([*launcher, *program], ranks, line_rate)


if __name__ == "__main__":
    main()
