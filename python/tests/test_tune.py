"""These tests check the model and the profile of `ropewalk tune`, and run it with a program that
writes given rows instead of measuring."""

import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from conftest import write_program
from ropewalk import command
from ropewalk.errors import CommandError
from ropewalk.tune import check, model, predict, profile
from support import PATIENCE, environment, run

CACHES = "L1 32K for 1, L2 1024K for 1, L3 16384K for 2"


# ---- the model -----------------------------------------------------------------------------------


def test_limits_are_where_two_buffers_leave_a_cache():
    assert model.cache_limits(CACHES) == (16 << 10, 512 << 10, 4 << 20)
    assert model.cache_limits("unknown") == ()


def test_a_fit_finds_the_terms_that_made_the_points():
    limits = (1 << 14, 1 << 19)
    made = model.Model(0.25, (1e-5, 4e-5, 1e-4), limits, ())
    sizes = [64, 512, 4096, 1 << 14, 1 << 16, 1 << 18, 1 << 19, 1 << 20, 1 << 22]
    found = model.fit([(size, made.fitted(size)) for size in sizes], limits)
    assert found.latency == pytest.approx(0.25)
    assert found.rates == pytest.approx(made.rates)
    for size in (*sizes, 1 << 25):
        assert found.predicted(size) == pytest.approx(made.fitted(size))


def test_the_fit_is_at_least_as_good_as_terms_near_it():
    """Compares with a search of the neighbourhood, which knows nothing of normal equations."""
    random.seed(3)
    points = [(1 << i, (0.3 + 5e-5 * (1 << i)) * random.uniform(0.8, 1.2)) for i in range(6, 22)]

    def error(latency, rate):
        return sum(((latency + rate * size) / us - 1) ** 2 for size, us in points)

    found = model.fit(points, ())
    least = error(found.latency, *found.rates)
    for a, b in itertools.product((0.8, 0.95, 1, 1.05, 1.2), repeat=2):
        assert least <= error(found.latency * a, found.rates[0] * b) + 1e-12


def test_predictions_never_fall_with_the_size():
    random.seed(4)
    for _ in range(50):
        sizes = sorted(random.sample(range(1, 1 << 22), 8))
        points = [(size, random.uniform(0.1, 100)) for size in sizes]
        found = model.fit(points, (1 << 14, 1 << 19))
        times = [found.predicted(size) for size in range(0, 1 << 23, 4099)]
        assert all(a <= b for a, b in itertools.pairwise(times))
        assert times[0] >= 0


def test_a_level_without_measurements_joins_the_one_below():
    found = model.fit([(64, 1.0), (4096, 2.0)], (1 << 14, 1 << 19))
    assert found.limits == ()
    assert found.predicted(4096) == pytest.approx(2.0)


def test_between_two_points_each_byte_takes_the_same_time():
    points = [(100, 1.0), (200, 3.0), (400, 4.0)]
    found = model.fit(points, ())
    assert found.predicted(150) == pytest.approx(2.0)
    assert found.predicted(300) == pytest.approx(3.5)
    assert [found.predicted(size) for size, _ in points] == [1.0, 3.0, 4.0]
    assert found.predicted(10) == 1.0
    assert found.rests_on(150) == ((100, 1.0), (200, 3.0))
    assert found.rests_on(200) == ((200, 3.0),)
    assert found.rests_on(10) == ((100, 1.0),)
    assert found.rests_on(900) == ((400, 4.0),)
    # Without the point at 200, a third of the way from 1 to 4 is predicted there.
    assert found.error() == pytest.approx(abs(2.0 / 3.0 - 1))


def test_a_single_point_is_a_latency():
    assert model.fit([(0, 0.07)], (1 << 14,)).predicted(0) == pytest.approx(0.07)


# ---- the profile ---------------------------------------------------------------------------------


def threshold(name, value, *, standard=4096, before=None, skipped="", unit="bytes"):
    sizes = [{"bytes": 4096, "ratio": [1.0, 0.8], "noise": [0, 0.01], "calls": []}]
    return {
        "bench": "tune",
        "what": "threshold",
        "name": name,
        "unit": unit,
        "border": True,
        "default": standard,
        "before": standard if before is None else before,
        "value": value,
        "gain": 0.2 if value != standard else 0,
        "noise": 0.01,
        "skipped": skipped,
        "sizes": [] if skipped else sizes,
    }


def cost(size, us, path="mapped", subject="allreduce", memory="arena"):
    row = {"bench": "tune", "what": "cost", "subject": subject, "memory": memory, "path": path}
    return row | {"bytes": size, "us": us}


def situation(nodes=1, ranks=2, *, crowded=False):
    row = {"bench": "tune", "what": "situation", "nodes": nodes, "ranks": ranks}
    return row | {"crowded": crowded}


ROWS = [
    {"bench": "tune", "what": "machine", "machine.cpu": "A CPU", "machine.caches": CACHES},
    situation(),
    threshold("channel.slot_bytes", 8192),
    threshold("node.cma_bytes", 16384, standard=16384),
    threshold("node.two_level_bytes", 16384, standard=16384, skipped="one cache domain"),
    cost(1024, 0.5),
    cost(65536, 8.0),
]


def test_a_profile_comes_back(tmp_path):
    path = tmp_path / "p"
    profile.write(str(path), profile.text(ROWS, ["made by a test"]))
    notes = profile.read(str(path))
    assert notes.ranks == 2
    assert notes.measured["channel.slot_bytes"] == (
        "time above/below: 4K 0.80; 8K saves 20 % of 4K, noise 1 %"
    )
    assert notes.measured["node.two_level_bytes"] == "not measured: one cache domain"
    assert notes.costs["allreduce", "arena", "mapped"].points == ((1024, 0.5), (65536, 8.0))


def test_values_that_are_the_defaults_are_left_to_the_library():
    lines = profile.text(ROWS, []).splitlines()
    assert "channel.slot_bytes = 8K  # default 4K" in lines
    assert not [line for line in lines if line.startswith("node.cma_bytes")]
    assert "machine.cpu = A CPU" in lines


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("cost.allreduce.mapped = 1:2", "expected cost.SUBJECT.MEMORY.PATH"),
        ("cost.a.arena.mapped = 64:0.5 x", 'cost.a.arena.mapped: found "x", expected BYTES:'),
        ("cost.a.arena.mapped = 64:-1", 'found "64:-1", expected BYTES:MICROSECONDS'),
        ("cost.a.arena.mapped = 64:nan", 'found "64:nan", expected BYTES:MICROSECONDS'),
        ("cost.a.arena.mapped =", "found nothing, expected BYTES:MICROSECONDS"),
        ("cost.ranks = none", 'cost.ranks: found "none", expected a number of ranks'),
    ],
)
def test_a_malformed_cost_is_named_with_its_line(tmp_path, line, problem):
    path = tmp_path / "p"
    path.write_text(f"# a comment\n\n{line}\n")
    with pytest.raises(CommandError, match=r"p:3: ") as error:
        profile.read(str(path))
    assert problem in str(error.value)
    assert "`ropewalk tune`" in str(error.value)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(CommandError, match="--output: "):
        profile.write(str(target), "text")
    assert list(tmp_path.iterdir()) == [target]


# ---- explain -------------------------------------------------------------------------------------


@pytest.fixture
def explained(tmp_path, monkeypatch, capsys):
    """explained(WORD...) returns the answer under a profile that has costs and names no machine."""
    pytest.importorskip("ropewalk._core")
    path = tmp_path / "p"
    path.write_text(profile.text(ROWS[1:], []))
    monkeypatch.setenv("ROPEWALK_PROFILE", str(path))

    def ask(*words):
        assert command.main(["explain", *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def test_explain_predicts_by_the_model(explained, tmp_path):
    cost_model = profile.read(str(tmp_path / "p")).costs["allreduce", "arena", "mapped"]
    for size in (1024, 5000, 65536):
        ways = explained("allreduce", "-s", str(size), "-n", "2")["alternatives"]
        times = {one["path"]: one["predicted_us"] for one in ways if one["how"][:8] == "straight"}
        assert times["mapped"] == pytest.approx(cost_model.predicted(size))
        assert all(one["predicted_us"] is None for one in ways if one["path"] != "mapped")
    (mapped,) = [one for one in ways if one["taken"]]
    assert mapped["measured_us"] == 8.0


def test_explain_says_where_no_time_is_known(explained):
    answer = explained("allreduce", "-n", "4")
    assert all(one["predicted_us"] is None for one in answer["alternatives"])
    of = "the profile's are of 2 ranks on one node, each with a core"
    assert f"times are estimates where there are any: {of}" in answer["assumed"]
    crowded = explained("allreduce", "-n", "2", "--crowded")
    assert all(one["predicted_us"] is None for one in crowded["alternatives"])
    beyond = explained("allreduce", "-n", "2", "-s", "1G")["assumed"]
    assert "times beyond the sizes that were measured continue as those of the last ones" in beyond


OVER_NODES = [
    situation(2, 2, crowded=True),
    *(cost(64 << 10, us, of, "reduce", "nodes") for us, of in ((400, "whole"), (300, "chain"))),
    *(cost(256 << 10, us, of, "reduce", "nodes") for us, of in ((900, "whole"), (700, "chain"))),
    # 20 us and 100 MB/s.
    *(cost(size, 20 + size / 100, "one_way", "wire") for size in (8, 1 << 16, 1 << 20)),
    *(cost(size, 30 + size / 100, "both_ways", "wire") for size in (8, 1 << 16, 1 << 20)),
]


@pytest.fixture
def explained_over_nodes(explained, tmp_path):
    (tmp_path / "p").write_text(profile.text(OVER_NODES, []))
    return explained


def test_explain_predicts_every_algorithm_between_nodes(explained_over_nodes):
    answer = explained_over_nodes("reduce", "-s", "160K", "-n", "2", "--nodes", "2", "--crowded")
    times = {one["algorithm"]: one["predicted_us"] for one in answer["alternatives"]}
    assert times == {"whole": pytest.approx(650), "chain": pytest.approx(500)}
    for one in answer["alternatives"]:
        assert [text.partition(" ")[0] for text in one["rests_on"]] == ["64K", "256K"]


def test_other_numbers_of_nodes_are_estimated_from_the_wire(explained_over_nodes):
    size, nodes = 1 << 20, 4
    answer = explained_over_nodes("allreduce", "-s", "1M", "-n", "2", "--nodes", "4", "--crowded")
    times = {one["algorithm"]: one["predicted_us"] for one in answer["alternatives"]}
    link = 2 * (nodes - 1) / nodes * size / 100  # the bytes of the lower bound
    assert times["ring"] == pytest.approx(2 * (nodes - 1) * 20 + link, rel=1e-2)
    assert times["mpi"] == pytest.approx(4 * 20 + link, rel=1e-2)
    assert times["flat"] == pytest.approx(3 * 20 + 2 * 2 * size / 100, rel=1e-2)
    (ring,) = [one for one in answer["alternatives"] if one["taken"]]
    assert ring["rests_on"] == ["the wire alone: 20.1 us, 100 MB/s"]
    assert "2 ranks on each of 2 nodes, sharing cores" in " ".join(answer["assumed"])


def test_every_algorithm_over_nodes_has_an_estimate(explained_over_nodes):
    for subject in ("allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "alltoall",
                    "gather", "scatter"):  # fmt: skip
        for size in ("8", "64K", "16M"):
            ways = explained_over_nodes(subject, "-s", size, "-n", "3", "--nodes", "8")
            for one in ways["alternatives"]:
                assert one["algorithm"], one
                assert one["predicted_us"] > 0, one


def test_the_kernels_copies_are_estimated_by_the_number_of_readers(explained, tmp_path):
    rows = [situation(1, 8), *(cost(1 << 20, us, path, "kernel", "private") for path, us in (
        ("alone", 100.0), ("one_to_all_2", 150.0), ("one_to_all_4", 300.0), ("one_to_all", 700.0),
    ))]  # fmt: skip
    (tmp_path / "p").write_text(profile.text(rows, []))
    for ranks, us in ((3, 150.0), (4, 225.0), (5, 300.0), (7, 300 + 400 * 2 / 3)):
        words = ("broadcast", "-s", "1M", "-n", str(ranks), "--memory", "private")
        (cma,) = [one for one in explained(*words)["alternatives"] if one["path"] == "cma"]
        assert cma["predicted_us"] == pytest.approx(us)


def compared_rows(*us):
    return [situation(), *(cost(size, one) for size, one in zip((4096, 32768), us, strict=True))]


def test_a_check_names_the_worst_case(tmp_path, capsys):
    (tmp_path / "p").write_text(profile.text(ROWS, []))
    notes = profile.read(str(tmp_path / "p"))
    cost_model = notes.costs["allreduce", "arena", "mapped"]
    rows = compared_rows(cost_model.predicted(4096) / 1.1, cost_model.predicted(32768) / 1.5)
    assert check.show(rows, notes, as_json=False) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "allreduce arena mapped 2 1 30 % +50 % 32K" in text
    assert "predicted within 15 %: 1 of 2; the worst: allreduce arena mapped, 32K: " in text
    assert check.show(rows, notes, as_json=True) == 0
    (first, _) = json.loads(capsys.readouterr().out)["compared"]
    assert first["error"] == pytest.approx(0.1)


def test_a_check_with_other_ranks_is_refused(tmp_path):
    (tmp_path / "p").write_text(profile.text(ROWS, []))
    notes = profile.read(str(tmp_path / "p"))
    with pytest.raises(CommandError, match="the profile is of 2 ranks on one node, each with a"):
        check.compare([situation(2, 1)], notes)


def test_explain_shows_what_a_threshold_rests_on(explained, capsys):
    (row,) = explained("thresholds", "channel.slot_bytes")["thresholds"]
    assert row["value"] == 8192
    assert row["measured"].startswith("time above/below: 4K 0.80")
    assert command.main(["explain", "thresholds", "channel.slot_bytes"]) == 0
    assert "measured  time above/below" in capsys.readouterr().out


def test_times_are_words_beside_each_way():
    way = {"predicted_us": 12.0, "measured_us": None, "model_error": 0.0912, "rests_on": ["a", "b"]}
    assert predict.time_text(way) == "; 12 us predicted (a, b; model within 9 %)"
    assert predict.time_text(way | {"measured_us": 12.0}) == "; 12 us measured"
    words = "; 12 us at least (estimated from a, b)"
    assert predict.time_text(way | {"model_error": None}) == words
    assert predict.time_text({"predicted_us": None}) == ""


def test_a_profile_of_another_machine_is_refused_and_said(tmp_path, monkeypatch, capsys):
    pytest.importorskip("ropewalk._core")
    path = tmp_path / "p"
    path.write_text("machine.cpu = Some other CPU\nnode.cma_bytes = 64K\n")
    monkeypatch.setenv("ROPEWALK_PROFILE", str(path))
    assert command.main(["explain", "thresholds", "node.cma_bytes"]) == 0
    text = capsys.readouterr().out
    assert "value     16K (default)" in text
    assert 'ROPEWALK_PROFILE is not used: machine.cpu is "Some other CPU" in the profile, ' in text
    assert "run `ropewalk tune` here, or set ROPEWALK_PROFILE_MACHINE=any" in text
    monkeypatch.setenv("ROPEWALK_PROFILE_MACHINE", "any")
    assert command.main(["explain", "thresholds", "node.cma_bytes"]) == 0
    assert f"value     64K ({path}:2)" in capsys.readouterr().out


def test_run_says_once_that_a_profile_is_refused(tmp_path, monkeypatch, prefix):
    pytest.importorskip("ropewalk._core")
    path = tmp_path / "p"
    path.write_text("machine.cpu = Some other CPU\n")
    command = [sys.executable, "-m", "ropewalk", "run", "-n", "2", "--mpi", prefix("mpich")]
    command += ["--no-preload", "--", "true"]
    for machine, said in (("same", 1), ("any", 0)):
        more = {"ROPEWALK_PROFILE": str(path), "ROPEWALK_PROFILE_MACHINE": machine}
        done = run(command, env=environment() | more)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("note: ROPEWALK_PROFILE is not used: machine.cpu is") == said


# ---- the verb ------------------------------------------------------------------------------------

PROGRAM = """#!/bin/sh
echo "ran $*"
[ -n "$FAIL" ] && exit 9
while [ $# -gt 0 ]; do [ "$1" = --json ] && file=$2; shift; done
if [ -n "$SLEEP" ]; then echo "$file" >"$SLEEP"; exec sleep 60; fi
cat "$ROWS" >"$file"
"""


@pytest.fixture
def tune(tmp_path, monkeypatch, prefix):
    """tune(WORD...) returns a command line whose MPI starts PROGRAM instead of the bench."""
    rows = tmp_path / "rows"
    rows.write_text("".join(json.dumps(row) + "\n" for row in [{"bench": "machine"}, *ROWS]))
    write_program(tmp_path / "libexec/ropewalk-bench-tune", PROGRAM)
    monkeypatch.setenv("ROPEWALK_LIBEXEC", str(tmp_path / "libexec"))
    monkeypatch.setenv("ROWS", str(rows))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "work").mkdir()
    mpi = str(prefix("mpich"))
    return lambda *words: [sys.executable, "-m", "ropewalk", "tune", "--mpi", mpi, *map(str, words)]


def started(words, folder, **more):
    env = {**environment(), **{name: os.environ[name] for name in ("ROPEWALK_LIBEXEC", "ROWS")}}
    env |= {"TMPDIR": os.environ["TMPDIR"], **more}
    return subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, stdin=-3
    )


def left_over(tmp_path):
    """Returns the names of what a run has left in its folder and among temporary files."""
    return sorted(
        path.name for part in ("work", "temporary") for path in (tmp_path / part).iterdir()
    )


def test_tune_writes_a_profile_and_shows_it(tune, tmp_path):
    done = started(tune("-n", 2, "--only", "channel", "--time", "7s"), tmp_path / "work")
    assert done.returncode == 0, done.stderr
    assert "ran --only channel --time 7 --json" in done.stdout
    lines = " ".join(done.stdout.split())
    assert "channel.slot_bytes 4K 4K 8K 20 % 1 %" in lines
    assert "node.two_level_bytes: not measured: one cache domain" in done.stdout
    assert "ROPEWALK_PROFILE=./ropewalk.profile" in done.stdout
    assert left_over(tmp_path) == ["ropewalk.profile"]
    assert profile.read(str(tmp_path / "work/ropewalk.profile")).ranks == 2


def test_json_is_one_object(tune, tmp_path):
    done = started(tune("--json", "-o", "x.profile"), tmp_path / "work")
    answer = json.loads(done.stdout)
    assert answer["profile"] == "x.profile"
    assert answer["ranks"] >= 2
    assert {row["what"] for row in answer["rows"]} == {"machine", "situation", "threshold", "cost"}


def test_a_failure_changes_no_file(tune, tmp_path):
    kept = tmp_path / "work/ropewalk.profile"
    kept.write_text("node.cma_bytes = 32K\n")
    done = started(tune(), tmp_path / "work", FAIL="yes")
    assert done.returncode == 1
    assert "ended with status 9; ropewalk.profile was not written" in done.stderr
    assert kept.read_text() == "node.cma_bytes = 32K\n"
    assert left_over(tmp_path) == ["ropewalk.profile"]


def test_an_interruption_leaves_nothing(tune, tmp_path):
    told = tmp_path / "told"
    env = {**environment(), **{name: os.environ[name] for name in ("ROPEWALK_LIBEXEC", "ROWS")}}
    env |= {"TMPDIR": os.environ["TMPDIR"], "SLEEP": str(told)}
    process = subprocess.Popen(
        tune(),
        cwd=tmp_path / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE
    while not told.exists() or not told.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    folder = pathlib.Path(told.read_text().strip()).parent
    assert folder.exists()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "was interrupted; ropewalk.profile was not written" in errors
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["-n", 1], "--ranks: 1, expected 2 or more"),
        (["--only", "chanel"], "'chanel', expected copies, channel, collectives, wire"),
        (["--time", "soon"], "--time: 'soon'"),
        (["-o", "none/p"], "--output: there is no folder 'none'"),
        (["-o", "."], "--output: '.' is a folder"),
    ],
)
def test_errors(tune, tmp_path, words, problem):
    done = started(tune(*words), tmp_path / "work")
    assert done.returncode == 2
    assert problem in done.stderr
    assert left_over(tmp_path) == []


def test_where_nothing_can_be_written_nothing_is_measured(tune, tmp_path):
    done = started(tune("-o", "/proc/p"), tmp_path / "work")
    assert done.returncode == 1
    assert "--output: '/proc': " in done.stderr and "name another folder" in done.stderr
    assert "status" not in done.stderr and left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "words", "status", "problem"),
    [
        ("", [], 2, "--output: 'p' has no measurements to check"),
        ("\0\1\2", [], 2, "--output: 'p' has no measurements to check"),
        ("cost.a.b.c = 64:1\n", [], 2, "'p' is of an unknown number of ranks"),
        ("cost.ranks = 3\ncost.a.b.c = 64:1\n", [], 2, "--ranks: 2, but 'p' is of 3 ranks"),
        ("", ["-o", "none"], 1, "--output: none: No such file"),
        ("", ["-o", "."], 1, "--output: .: Is a directory"),
    ],
)
def test_a_check_of_no_profile_measures_nothing(tune, tmp_path, text, words, status, problem):
    (tmp_path / "work/p").write_text(text)
    done = started(tune("--check", "-n", 2, "-o", "p", *words), tmp_path / "work")
    assert (done.returncode, done.stdout) == (status, "")
    assert problem in done.stderr
