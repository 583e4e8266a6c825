"""`ropewalk bench` with a made-up program."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

from conftest import write_program
from ropewalk import bench as package
from ropewalk.bench import command as bench
from ropewalk.bench import jobs, summary
from support import PATIENCE, environment, run_bench


def test_options_of_the_program_pass_through(programs, prefix):
    done = run_bench("comms", "--mpi", prefix("mpich"), "--L", "4,8", "-n", 1, "--pages=huge")
    assert done.stdout == "ran --L 4,8 --pages=huge\n"
    assert done.returncode == 0


def test_a_bench_of_python_is_a_module(programs, prefix):
    done = run_bench("numpy", "--mpi", prefix("mpich"), "--dry-run", "--sizes", "8")
    assert done.returncode == 0
    assert "-m ropewalk.bench.numpy_ranks --sizes 8" in done.stdout
    assert "1/1: numpy under" not in done.stderr  # nothing is started
    refused = run_bench("numpy", "--against", "mpich")
    assert refused.returncode == 2
    assert "--against: it compares" in refused.stderr


def test_torch_says_what_it_waits_for_before_torch_is_loaded(monkeypatch, capsys):
    told = []
    ranks = types.ModuleType("pytorch_ranks")
    ranks.measure = lambda options, folder: told.append(capsys.readouterr().err)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "ropewalk.bench.pytorch_ranks", ranks)
    monkeypatch.setattr(package, "pytorch_ranks", ranks, raising=False)
    assert bench.main(["torch", "-n", "3"]) == 1  # the made-up ranks have no rows
    assert told == ["-- torch: ropewalk beside Gloo, 3 ranks; PyTorch is loading\n"]


def test_several_mpis_join_their_rows(programs, prefix, tmp_path):
    one, two = prefix("mpich"), prefix("openmpi")
    file = tmp_path / "rows.json"
    done = run_bench("comms", "--mpi", f"{one},{two}", "--json", file, "--quick")
    assert done.returncode == 0
    assert "2/2: comms under Open MPI" in done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["bench"], row["mpi_family"]) for row in rows] == [
        ("machine", "mpich"),
        ("comms", "mpich"),
        ("machine", "openmpi"),
        ("comms", "openmpi"),
    ]
    assert "1200 MB/s" in done.stdout


def test_one_mpi_writes_the_file_itself(programs, prefix, tmp_path):
    file = tmp_path / "rows.json"
    done = run_bench("comms", "--mpi", prefix("mpich"), "--json", file)
    assert done.stdout == f"ran --json {file}\n"
    assert file.exists()


def test_status_of_the_program(programs, prefix):
    assert run_bench("comms", "--mpi", prefix("mpich"), "--fail").returncode == 9


def test_suite(programs, prefix):
    done = run_bench("--mpi", prefix("mpich"))
    assert done.returncode == 0
    assert done.stdout.count("ran --quick") == 2
    assert "1/" in done.stderr
    assert "Summary" in done.stdout


def test_help(programs):
    text = run_bench("--help").stdout
    assert "benches: comms, memory" in text
    text = run_bench("comms", "--help").stdout
    assert "--launcher-option" in text
    assert text.rstrip().endswith("ran --help")


def test_dry_run(programs, prefix):
    done = run_bench("comms", "--mpi", prefix("mpich"), "--dry-run", "--lanes", 3)
    assert "MPIR_CVAR_CH4_NUM_VCIS=4" in done.stdout
    assert "ran --" not in done.stdout


GROUP = "/proc/self/autogroup"
# The program lowers its group, which everybody may, and ends without restoring it.
LOWERS = f"#!/bin/sh\necho 7 >{GROUP} && cat {GROUP}\nkill -%s %s\nsleep 1000\n"


@pytest.mark.skipif(not os.path.exists(GROUP), reason="this kernel has no autogroups")
@pytest.mark.parametrize("end", [("KILL", "$$"), ("TERM", "$PPID")])
def test_the_scheduling_group_is_put_back(programs, prefix, end):
    write_program(programs / "ropewalk-bench-comms", LOWERS % end)
    words = [sys.executable, "-m", "ropewalk", "bench", "comms", "--mpi", str(prefix("mpich"))]
    done = subprocess.run(
        ["sh", "-c", f'cat {GROUP}; "$@"; cat {GROUP}', "sh", *words],
        env={**environment(), "ROPEWALK_LIBEXEC": str(programs)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        start_new_session=True,  # a group of its own
    )
    before, while_running, after = done.stdout.splitlines()
    assert while_running.endswith("nice 7"), done.stderr
    assert after == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], ["NAME: 'nope'", "comms"]),
        (["--L", "4"], ["--L", "name the bench"]),
        (["comms", "--mpi", "/nonexistent"], ["--mpi", "/nonexistent"]),
        (["comms", "--mpi", "1.1.1.2"], ["--mpi: '1.1.1.2'", "write --mpi-grid 1.1.1.2"]),
        (["comms", "-n", "0"], ["-n: 0 ranks, expected"]),
    ],
)
def test_errors(programs, arguments, words):
    done = run_bench(*arguments)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr


def test_lanes_reach_the_program(programs, prefix):
    done = run_bench("comms", "--mpi", prefix("mpich"), "--lanes", 3, "-n", 1)
    assert done.stdout == "ran --lanes 3\n"
    done = run_bench("memory", "--mpi", prefix("mpich"), "--lanes", 3)
    assert done.stdout == "ran \n"


def test_folders_of_files_are_looked_for_first(programs, prefix, tmp_path):
    file = tmp_path / "none" / "rows.json"
    done = run_bench("comms", "--mpi", prefix("mpich"), "--json", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--json: there is no folder" in done.stderr


def test_no_programs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "folders", lambda: iter([str(tmp_path)]))
    with pytest.raises(bench.CommandError, match="make build"):
        bench.main(["comms"])


def test_summary_shows_wrong_data():
    rows = [{"bench": "comms", "mb_per_s": {"median": 5.0}, "verified": False, "L": 4}]
    text = "\n".join(summary.lines(rows, 1))
    assert "5 MB/s" in text
    assert "WRONG DATA" in text


def test_summary_of_each_bench():
    def comms(pages, rate):
        return {"bench": "comms", "pages": pages, "mb_per_s": rate, "L": "4", "strategy": "s"}

    rows = [
        comms("huge", 30.0),
        comms("memalign", 10.0),
        {"bench": "memory", "bytes": 1, "mb_per_s": 99, "limit_percent": 50},
        {"bench": "memory", "bytes": 2, "mb_per_s": 7, "limit_percent": 90.4},
        {"bench": "pages", "bytes": 4, "ratio_to_huge": 2.5, "transfer": "fresh"},
        {"bench": "pages", "bytes": 8, "ratio_to_huge": 1.5, "transfer": "steady"},
    ]
    rows += [{"bench": "collectives", "op": op, "ratio": r} for op, r in (("a", 8), ("b", 2))]
    rows += [{"bench": "p2p", "op": "rate", "mechanism": "choice", "ratio": 3}]
    rows += [{"bench": "p2p", "op": "rate", "mechanism": "both", "mb_per_s": 9e9}]
    text = summary.lines(rows, 1)
    assert "4.00 x the plain MPI; least 2.00 x (b)" in text[4]
    assert "3.00 x the plain MPI; least 3.00 x (rate)" in text[5]
    assert "30 MB/s" in text[1]
    assert "3.00 x memalign" in text[1]
    assert "7 MB/s" in text[2]
    assert "90 % of the limit" in text[2]
    assert "2.50 x huge" in text[3]
    assert "fresh" in text[3]


def test_programs_folder_of_the_tree(monkeypatch):
    monkeypatch.delenv("ROPEWALK_LIBEXEC", raising=False)
    top = pathlib.Path(jobs.__file__).resolve().parents[3]
    assert str(top / "build/release/bench") in list(jobs.folders())


def test_summary_of_itt():
    row = {"bench": "itt", "ranks": 2, "threads": 1, "mpi_family": "mpich", "mb_per_s": 5e5}
    operator = row | {"table": "summary", "op": "DWF4", "L": 8, "mflops_per_node": 99.0}
    text = "\n".join(summary.lines([row | {"table": "memory"}, operator], 1))
    assert "99 Mflop/s per node (DWF4, L=8)" in text
    point = row | {"table": "comparison", "mflops_per_node": 88.0}
    text = "\n".join(summary.lines([operator, point], 1))
    assert "comparison point, Mflop/s per node: 88 (2 x 1)" in text
