"""These tests check what `ropewalk report` reads, computes, and says of differences."""

import json
import math
import pathlib
import statistics

import numpy as np
import pytest

from ropewalk import command
from ropewalk.errors import CommandError
from ropewalk.report import attach, compare, exchanges, lattice, peers, quantities, rows, sections
from ropewalk.report.charts import Lines, Strips

DATA = pathlib.Path(__file__).resolve().parents[2] / "docs/results/data"


def row(op, size, ours, *, ratios=None, plain=None, **more):
    made = {"bench": "collectives", "op": op, "bytes": size, "ranks": 2, "verified": True}
    made["time_us"] = {"median": ours, "min": 0.9 * ours, "p99": 1.1 * ours, "n": 5}
    made |= {"ratios": ratios} if ratios else {}
    made |= {"plain_us": plain, "mpi": "MPICH"} if plain else {}
    return made | more


def write(path, *written):
    machine = {"bench": "machine", "cpu": "A Processor", "cores": 2, "mpi": "MPICH"}
    path.write_text("".join(json.dumps(one) + "\n" for one in (machine, *written)))
    return path


# ---- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("size", 8, "8 B"),
        ("size", 1536, "1.5 KiB"),
        ("size", 1 << 20, "1 MiB"),
        ("time", 0.0805, "80.5 ns"),
        ("time", 999.9999, "1 ms"),
        ("time", 2.5e6, "2.5 s"),
        ("rate", 126680.0, "127 GB/s"),
        ("count", 16777216, "16 Mi"),
        ("count", 1000, "1 000"),
        ("ratio", 0.876, "0.88×"),
        ("ratio", 12.84, "12.8×"),
        ("percent", 99.6, "100 %"),
    ],
)
def test_numbers_as_people_read_them(form, value, text):
    assert quantities.FORMS[form](value).replace("\N{NO-BREAK SPACE}", " ") == text


def test_ticks_lie_inside_and_get_fewer():
    for form, low, high in (("size", 8, 1 << 24), ("time", 0.03, 4e5), ("rate", 31, 47)):
        sets = [one for one in quantities.log_ticks(low, high, form) if one]
        assert all(low * 0.99 <= tick <= high * 1.01 for one in sets for tick in one)
        assert len(sets[0]) >= len(sets[-1])
        assert len(sets[0]) >= 3
    assert 1 << 20 in quantities.log_ticks(8, 1 << 24, "size")[-1]


# ---- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows of a bench"),
        ('{"bench": "machine"}\n', "no rows of a bench"),
        ('{"bench": "memory"}\n{"bench": "mem', "wrong.json:2: not JSON"),
        ("[1, 2]\n", "wrong.json:1: no row of a bench"),
        ('\n{"op": "reduce"}\n', "wrong.json:2: no row of a bench"),
        ('{"bench": "x", "time_us": "fast"}\n', 'wrong.json:1: time_us: "fast", expected'),
        ('{"bench": "x", "time_us": {"min": 3}}\n', "wrong.json:1: time_us"),
        ('{"bench": "x", "bytes": "8"}\n', 'wrong.json:1: bytes: "8", expected a number'),
        ('{"bench": "x", "ratio": NaN}\n', "wrong.json:1: not JSON: NaN is no number"),
        ('{"bench": "x", "ratios": [1]}\n', "wrong.json:1: ratios"),
        (f'{{"bench": "x", "bytes": {"9" * 400}}}\n', "wrong.json:1: bytes"),
        ("[" * 100000, "wrong.json:1: nested too deeply"),
        ('{"bench": "machine", "cores": [2]}\n', "wrong.json:1: cores: [2], expected a number"),
        ('{"bench": "machine", "memory_bytes": "8"}\n', 'wrong.json:1: memory_bytes: "8", expect'),
        ('{"bench": "machine", "caches": [1]}\n', "wrong.json:1: caches: [1], expected a list"),
        ('{"bench": "machine", "caches": [{"bytes": "x"}]}\n', "wrong.json:1: caches"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, text, message):
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(CommandError, match=message.replace("[", r"\[")):
        rows.read(str(path))


@pytest.mark.parametrize("words", [["rows"], ["--compare", "rows", "rows"], ["link"]])
def test_rows_are_not_written_over(tmp_path, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").write_text('{"bench": "memory"}\n')
    (tmp_path / "link").symlink_to("rows")
    assert command.main(["report", *words, "-o", "./rows"]) == 2
    assert "-o: './rows' holds rows to read; name another file" in capsys.readouterr().err
    assert (tmp_path / "rows").read_text() == '{"bench": "memory"}\n'


def test_files_that_are_none(tmp_path, capsys):
    assert command.main(["report", str(tmp_path / "none.json")]) == 1
    assert "none.json: No such file or directory" in capsys.readouterr().err
    assert command.main(["report", str(tmp_path)]) == 1
    assert "Is a directory" in capsys.readouterr().err
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert command.main(["report", str(tmp_path / "binary")]) == 1
    assert "binary: no text" in capsys.readouterr().err
    assert command.main(["report"]) == 2
    assert "FILES: none is given" in capsys.readouterr().err
    good = write(tmp_path / "good.json", row("reduce", 8, 1.0, plain=2.0))
    assert command.main(["report", str(good), "-o", str(tmp_path / "no/a.html")]) == 1
    assert "-o: " in capsys.readouterr().err


# ---- what is computed ----------------------------------------------------------------------------


def test_the_best_peer_is_the_one_that_comes_nearest():
    made = [
        row("reduce", 8, 2.0, ratios={"mpich": 3.0, "openmpi": 1.5}),
        row("reduce", 64, 4.0, ratios={"mpich": 0.5, "openmpi": 2.0}),
    ]
    finding = peers.findings(made)[0]
    assert finding.figure == quantities.ratio(math.sqrt(1.5 * 0.5))
    assert "Least 0.5× (reduce, 64\N{NO-BREAK SPACE}B, mpich)" in finding.words
    strips, lines = peers.charts(made)
    assert strips.title == "ropewalk is faster than the best peer in 1 of 2 cases"
    drawn = {one.name: [(point.x, point.y) for point in one.points] for one in lines.series}
    assert drawn["mpich"] == [(8, 6.0), (64, 2.0)]  # Each is at its ratio to the time shown.
    assert drawn["openmpi"] == [(8, 3.0), (64, 8.0)]


def test_rows_of_single_runs_do_not_count_twice():
    made = [
        row("reduce", 8, 2.0, plain=9.0, run="mpich"),
        row("reduce", 8, 2.0, ratios={"mpich": 4.5}),
        row("reduce", 8, 2.0, plain=6.0, ranks=8),
    ]
    assert [peers.best(one) for one in peers.rated(made)] == [4.5, 3.0]


def test_every_result_of_the_documentation_has_pictures():
    for path in sorted(DATA.glob("*.jsonl")):
        for section in sections.sections(rows.read(str(path)).rows):
            assert section.charts or section.tables, path
            for chart in section.charts:
                assert isinstance(chart, (Lines, Strips))
                assert chart.title and chart.meaning.endswith(".")
                assert "None" not in chart.title + chart.meaning, (path, chart.title)


def test_operators_have_a_table_of_their_own():
    points = [{"bench": "itt", "table": "comparison", "ranks": 2, "mflops_per_node": 9e4}]
    operators = [
        {"bench": "itt", "table": "operators", "op": "D_w", "L": 8, "gflops": 12.0},
        {"bench": "itt", "table": "operators", "op": "D_w", "L": 12, "gflops": 24.0},
    ]
    for given in (operators, points + operators):
        table = lattice.tables(given)[-1]
        assert table.head == ("operator", "8⁴", "12⁴")
        assert table.lines == (("D_w", "12\xa0000", "24\xa0000"),)


def test_attaching_memory_has_times_and_tables():
    step = {"bench": "attach", "what": "steps", "mechanism": "mapped", "ranks": 2}
    steps = [
        step | {"cache": cache, "bytes": size, "time_us": us, "registration_percent": share}
        for cache, size, us, share in (
            ("off", 4096, 10.0, 98.0),
            ("off", 65536, 20.0, 85.0),
            ("on", 4096, 0.5, 60.0),
        )
    ]
    copies = {"bench": "attach", "what": "contention", "pattern": "alone", "bytes": 4096, "us": 2.0}
    replay = {"bench": "attach", "what": "replay", "trace": "halo", "eviction": "LRU", "hits": 3}
    (made,) = sections.sections([*steps, copies, replay])
    assert made.title == "Attaching memory"
    assert made.findings[0].figure == "98\xa0%"
    chart = made.charts[0]
    assert isinstance(chart, Lines)
    assert [(one.name, len(one.points)) for one in chart.series] == [
        ("mapped, cache off", 2),
        ("mapped, cache on", 1),
    ]
    contention, replayed = made.tables
    assert contention.head == ("pattern", "4\xa0KiB")
    assert replayed.lines[0][:5] == ("halo", "", "LRU", "", "3")
    assert not attach.charts([replay]) and not attach.findings([replay])


def test_steps_on_an_adaptive_mesh_have_their_shares():
    common = {"bench": "amr", "ranks": 2, "communication_us": 30.0, "reductions_us": 5.0}
    rows = [
        common | {"strategy": way, "cells": cells, "computing_us": 100.0}
        for way in ("isend", "channel")
        for cells in (4, 8)
    ]
    rows[2] |= {"communication_us": 10.0, "communication_ratio": 0.33}
    rows[3] |= {"communication_ratio": 1.0}
    (made,) = sections.sections(rows)
    assert made.title == "Adaptive meshes"
    assert [one.figure for one in made.findings] == ["33\xa0%", "100\xa0%"]
    (chart,) = made.charts
    assert [(one.name, [p.y for p in one.points]) for one in chart.series] == [
        ("MPI_Isend and MPI_Irecv", [30.0, 30.0]),
        ("ropewalk's Channel", [10.0, 30.0]),
    ]
    (table,) = made.tables
    assert table.head == ("cells", "strategy", "messages", "sums", "computing")
    assert table.lines[0][:2] == ("4", "isend")


def test_trainings_stand_beside_those_of_gloo():
    common = {"bench": "torch", "op": "ddp", "memory": "private", "communication_share": 0.5}
    rows = [
        common | {"model": model, "scaling": "weak", "ranks": ranks, "backend": backend}
        for model in ("linear", "alexnet")
        for ranks in (1, 2)
        for backend in ("gloo", "ropewalk")
    ]
    for row, samples in zip(rows, (100, 101, 150, 300, 20, 20, 40, 36), strict=True):
        row |= {"samples_per_s": samples, "efficiency": 0.75}
    for own, theirs in zip(rows[1::2], rows[::2], strict=True):
        own["ratio"] = own["samples_per_s"] / theirs["samples_per_s"]
    rows.append({"bench": "torch", "op": "all_reduce", "bytes": 8, "time_us": 4, "peer_us": 8})
    (made,) = sections.sections(rows)
    collectives, trainings = made.charts
    assert collectives.title == "ropewalk is faster than the best peer in 1 of 1 cases"
    assert trainings.title == "ropewalk trains faster than Gloo in 1 of 2 cases"
    assert [(strip.name, strip.centre) for strip in trainings.rows] == [
        ("linear, weak scaling", 2.0),
        ("alexnet, weak scaling", 0.9),
    ]
    (table,) = made.tables
    linear = table.lines[1]
    assert linear[:6] == ("linear", "weak", "private", "2", "150", "300")
    assert linear[6:] == ("50\xa0%", "50\xa0%", "75\xa0%", "75\xa0%")


def test_fourier_transforms_have_their_transposes():
    common = {"bench": "fft", "ranks": 2, "numbers": "real", "local_us": 100.0}
    rows = [
        common | {"strategy": way, "grid": f"{cells}.{cells}.1", "cells": cells**2}
        for way in ("alltoallw", "exchange")
        for cells in (8, 16)
    ]
    for at, one in enumerate(rows):
        one |= {"transposes_us": 40.0 - 10 * at, "time_us": {"median": 140.0 - 10 * at}}
    rows[2] |= {"ratio": 1.3, "transposes_ratio": 2.0}
    (made,) = sections.sections(rows)
    assert made.title == "Fourier transforms"
    assert [one.figure for one in made.findings] == ["1.3×", "2×"]
    (chart,) = made.charts
    assert [(one.name, [p.y for p in one.points]) for one in chart.series] == [
        ("MPI_Alltoallw", [40.0, 30.0]),
        ("ropewalk's SubarrayExchange", [20.0, 10.0]),
    ]
    (table,) = made.tables
    assert table.head == ("grid", "strategy", "step", "transposes", "local", "ratio")
    assert table.lines[2][:3] == ("8.8.1", "exchange", "120\xa0µs")


def test_rows_that_lack_a_number_are_shown_without_it():
    assert exchanges.comms_tables([{"bench": "comms", "strategy": "direct", "L": "8"}])
    assert exchanges.comms([{"strategy": "direct", "bytes": 8, "line_rate_mb_per_s": 1.0}] * 2)
    limit = {"pages": "huge", "bytes": 8, "limit_us": {"median": 2.0}, "mb_per_s": 4.0}
    assert exchanges.memory([limit, limit | {"bytes": 16}])


def test_an_unknown_bench_has_its_rows_as_a_table():
    made = sections.sections([{"bench": "new", "thing": "a", "speed": 3, "deep": {"x": 1}}])
    assert made[0].tables[0].head == ("thing", "speed")
    assert made[0].tables[0].lines == (("a", "3"),)


def test_wrong_data_is_said():
    made = sections.sections([row("reduce", 8, 1.0, plain=2.0) | {"verified": False}])
    assert any("WRONG DATA, the first: op reduce, bytes 8" in note for note in made[0].notes)


# ---- comparing -----------------------------------------------------------------------------------


def summarized(samples):
    """Returns what bench/common/statistics.cc does, the interval by the binomial distribution."""
    samples = sorted(samples)
    n = len(samples)
    below = [sum(math.comb(n, j) for j in range(k + 1)) / 2**n for k in range(n)]
    k = sum(value <= 0.025 for value in below)
    return {
        "median": statistics.median(samples),
        "min": samples[0],
        "p99": samples[-1],
        "n": n,
        "interval_95": [samples[k - 1], samples[n - k]],
    }


def test_equal_times_are_seldom_called_different():
    random = np.random.default_rng(7)
    verdicts = []
    for _ in range(600):
        a, b = ({"time_us": summarized(random.lognormal(1.0, 0.3, 15))} for _ in range(2))
        low, high = compare.ratio_interval(a, b)
        verdicts.append(low <= 1 <= high)
    assert statistics.mean(verdicts) > 0.93


def test_a_real_difference_is_found():
    random = np.random.default_rng(8)
    for _ in range(50):
        a = {"time_us": summarized(random.lognormal(1.0, 0.1, 15))}
        b = {"time_us": summarized(random.lognormal(1.0, 0.1, 15) / 2)}
        low, high = compare.ratio_interval(a, b)
        assert 1 < low < high
        assert low < 2.5
        assert high > 1.6


def test_without_intervals_only_ranges_that_lie_apart_decide():
    def timed(median, n):
        return {"time_us": {"median": median, "min": median - 1, "p99": median + 1, "n": n}}

    assert compare.separated(timed(10, 4), timed(5, 4)) == "faster"  # 2 / 70
    assert compare.separated(timed(5, 4), timed(10, 4)) == "slower"
    assert compare.separated(timed(10, 3), timed(5, 3)) == "undecided"  # 2 / 20
    assert compare.separated(timed(10, 4), timed(9, 4)) == "undecided"
    assert compare.separated({"time_us": 10}, timed(5, 9)) == "undecided"


def test_compares_case_by_case(tmp_path, capsys):
    a = write(tmp_path / "a.json", row("reduce", 8, 4.0), row("reduce", 64, 4.0), row("scan", 8, 1))
    b = write(tmp_path / "b.json", row("reduce", 64, 4.1), row("reduce", 8, 2.0), row("x", 8, 1.0))
    out = tmp_path / "c.html"
    words = ["report", "--compare", str(a), str(b), "-o", str(out), "--json"]
    assert command.main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sections"][0]["findings"][1] == "1 faster 0 slower, 1 undecided of 2 cases"
    assert any("2 cases are in one file alone" in note for note in told["sections"][0]["notes"])
    assert "undecided" in out.read_text()


def test_rows_of_the_same_case_are_compared_in_order():
    def run(*times):
        return rows.Run("x", (), tuple(row("reduce", 8, time) for time in times))

    found = compare.cases(run(4.0, 6.0), run(2.0, 2.0))
    assert [case.ratio for case in found] == [2.0, 3.0]


def test_nothing_in_common(tmp_path, capsys):
    a = write(tmp_path / "a.json", row("reduce", 8, 4.0))
    b = write(tmp_path / "b.json", row("scan", 8, 4.0))
    assert command.main(["report", "--compare", str(a), str(b), "-o", str(tmp_path / "c")]) == 0
    assert "0 cases are in both files" in capsys.readouterr().out
