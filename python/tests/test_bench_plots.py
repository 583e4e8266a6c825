"""The figures of `ropewalk bench gradient`, with matplotlib where it is."""

import pytest

from ropewalk.bench import command as bench
from ropewalk.bench import plots, plots_lattice, summary
from ropewalk.errors import CommandError
from support import run_bench


def row(variant, floats, **more):
    return {
        "bench": "gradient",
        "mpi": "MPICH",
        "variant": variant,
        "floats": floats,
        "time_us": {"median": 10.0 * floats, "n": 3},
        "communication_us": 5.0 * floats,
        "other_us": 5.0 * floats,
        "communication_percent": 50,
        "mb_per_s": 12.0,
        **more,
    }


ROWS = [
    {"bench": "machine"},
    row("ropewalk", 4, limit_us=8.0, limit_percent=20, times_published=2.5, ratio=1.25),
    row("published", 4),
    row("ropewalk", 1),
]


def test_curves_are_sorted_and_in_seconds():
    assert plots.curves(ROWS, "time_us") == {
        "ropewalk": ([1, 4], [1e-5, 4e-5]),
        "published": ([4], [4e-5]),
    }
    assert plots.curves(ROWS, "mb_per_s")["published"] == ([4], [12.0])
    assert plots.limit(ROWS) == ([4], [8e-6])
    other = [*ROWS, row("ropewalk", 4) | {"mpi": "Open MPI"}]
    assert set(plots.curves(other, "time_us")) == {
        "ropewalk, MPICH",
        "published, MPICH",
        "ropewalk, Open MPI",
    }


def test_summary():
    text = "\n".join(summary.lines(ROWS, 3))
    assert "2.5 x as published, 1.25 x the plain MPI, 20 % of the limit (4 floats)" in text


def test_nothing_to_draw(tmp_path):
    with pytest.raises(CommandError, match="no rows"):
        plots.draw(tmp_path / "a.svg", [])


def test_without_matplotlib(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(plots.importlib, "import_module", missing)
    with pytest.raises(CommandError, match="pip install matplotlib"):
        plots.require()


def test_other_benches_have_no_plot(programs, prefix):
    done = run_bench("comms", "--mpi", prefix("mpich"), "--plot", "a.svg")
    assert done.returncode == 2
    assert "--plot: it is for gradient" in done.stderr


def test_draws(tmp_path):
    pytest.importorskip("matplotlib")
    plots.draw(tmp_path / "figures.svg", ROWS)
    text = (tmp_path / "figures.svg").read_text()
    assert "<svg" in text
    with pytest.raises(CommandError, match=r"--plot: .*figures\.nonsense"):
        plots.draw(tmp_path / "figures.nonsense", ROWS)


def overlap_row(comm_threads, time, **more):
    return {
        "bench": "overlap",
        "operator": "wilson-eo",
        "L": 8,
        "ranks": 2,
        "threads": 4,
        "mpi_grid": "1.1.1.2",
        "strategy": "concurrent",
        "mpi_family": "mpich",
        "comm_threads": comm_threads,
        "time_us": {"median": time},
        "exchange_mb_per_s": 10.0 * time,
        **more,
    }


OVERLAP = [
    overlap_row(1, 20.0),
    overlap_row(0, 30.0),
    overlap_row(0, 40.0, ranks=4, threads=2),
]


def test_overlap_curves():
    assert plots_lattice.overlap_curves(OVERLAP, "time_us") == {
        "2 x 4, L=8": ([0, 1], [30.0, 20.0]),
        "4 x 2, L=8": ([0], [40.0]),
    }
    several = [*OVERLAP, overlap_row(0, 5.0, strategy="direct")]
    assert "2 x 4, L=8, direct" in plots_lattice.overlap_curves(several, "time_us")


def test_itt_curves_keep_layouts_apart():
    def row(ranks, L, gflops):
        return {
            "bench": "itt", "table": "summary", "op": "Wilson", "ranks": ranks, "threads": 1,
            "L": L, "gflops": gflops,
        }  # fmt: skip

    def curves(rows):
        return plots_lattice.itt_curves(rows, "summary", "gflops", lambda one: one["op"])

    two = [row(2, 8, 50.0), row(2, 16, 40.0)]
    assert curves(two) == {"Wilson": ([8, 16], [50.0, 40.0])}
    assert curves([*two, row(1, 8, 30.0)]) == {
        "Wilson, 2 x 1": ([8, 16], [50.0, 40.0]),
        "Wilson, 1 x 1": ([8], [30.0]),
    }


def test_roofs_bend_where_bandwidth_reaches_the_peak():
    level = {"bench": "itt", "table": "roofline", "level": "L2", "ranks": 1, "threads": 1,
             "mb_per_s": 20e3, "peak_gflops": 40.0}  # fmt: skip
    across, up = plots_lattice.roofs([level])["L2"]
    assert up[0] == pytest.approx(20 * across[0])
    assert up[-1] == 40
    assert set(plots_lattice.roofs([level, level | {"ranks": 2}])) == {
        "L2, 1 x 1",
        "L2, 2 x 1",
    }
    assert plots_lattice.roofs([{"table": "memory"}]) == {}


def test_figures_are_refused_before_anything_is_measured(programs, prefix):
    pytest.importorskip("matplotlib")
    (programs / "ropewalk-bench-comms").rename(programs / "ropewalk-bench-itt")
    done = run_bench("itt", "--mpi", prefix("mpich"), "--plot", "a.nonsense")
    assert done.returncode == 2
    assert "--plot: a.nonsense: 'nonsense' is no kind of figure, expected" in done.stderr


def test_overlap_and_itt_draw(tmp_path):
    pytest.importorskip("matplotlib")
    plots_lattice.draw_overlap(tmp_path / "overlap.svg", OVERLAP)
    itt = [
        {"bench": "itt", "table": "summary", "op": "Wilson", "L": 8, "gflops": 50.0},
        {"bench": "itt", "table": "memory", "L": 8, "mb_per_s": 1e4},
        {"bench": "itt", "table": "roofline", "level": "L2", "ranks": 1, "threads": 1,
         "mb_per_s": 2e4, "peak_gflops": 40.0},
        {"bench": "itt", "table": "operators", "op": "D_w", "L": 8, "gflops": 30.0,
         "intensity": 1.75},
    ]  # fmt: skip
    plots_lattice.draw_itt(tmp_path / "itt.svg", itt)
    assert "<svg" in (tmp_path / "overlap.svg").read_text()
    assert "<svg" in (tmp_path / "itt.svg").read_text()
    for draw in (plots_lattice.draw_overlap, plots_lattice.draw_itt):
        with pytest.raises(CommandError, match="no rows"):
            draw(tmp_path / "a.svg", [{"bench": "machine"}])


def test_layouts():
    assert bench.layouts("comms", None) == [(None, [])]
    assert bench.layouts("overlap", "4x1,2x2") == [
        (4, ["--threads", "1"]),
        (2, ["--threads", "2"]),
    ]
    for wrong in ("2", "0x2", "2x", "2x2,"):
        with pytest.raises(CommandError, match="--layouts"):
            bench.layouts("overlap", wrong)
    with pytest.raises(CommandError, match="overlap, itt"):
        bench.layouts("comms", "2x2")
