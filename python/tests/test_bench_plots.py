"""The figures of `ropewalk bench gradient`, with matplotlib where it is."""

import pytest

from ropewalk import bench_plots, bench_summary
from ropewalk.errors import CommandError
from test_bench import programs, run_bench  # noqa: F401 (a fixture)


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
    assert bench_plots.curves(ROWS, "time_us") == {
        "ropewalk": ([1, 4], [1e-5, 4e-5]),
        "published": ([4], [4e-5]),
    }
    assert bench_plots.curves(ROWS, "mb_per_s")["published"] == ([4], [12.0])
    assert bench_plots.limit(ROWS) == ([4], [8e-6])
    other = [*ROWS, row("ropewalk", 4) | {"mpi": "Open MPI"}]
    assert set(bench_plots.curves(other, "time_us")) == {
        "ropewalk, MPICH",
        "published, MPICH",
        "ropewalk, Open MPI",
    }


def test_summary():
    text = "\n".join(bench_summary.lines(ROWS, 3))
    assert "2.5 x as published, 1.25 x the plain MPI, 20 % of the limit (4 floats)" in text


def test_nothing_to_draw(tmp_path):
    with pytest.raises(CommandError, match="no rows"):
        bench_plots.draw(tmp_path / "a.svg", [])


def test_without_matplotlib(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(bench_plots.importlib, "import_module", missing)
    with pytest.raises(CommandError, match="pip install matplotlib"):
        bench_plots.require()


def test_other_benches_have_no_plot(programs, prefix):  # noqa: F811
    done = run_bench("comms", "--mpi", prefix("mpich"), "--plot", "a.svg")
    assert done.returncode == 2
    assert "--plot: it is for gradient" in done.stderr


def test_draws(tmp_path):
    pytest.importorskip("matplotlib")
    bench_plots.draw(tmp_path / "figures.svg", ROWS)
    text = (tmp_path / "figures.svg").read_text()
    assert "<svg" in text
    with pytest.raises(CommandError, match=r"--plot: .*figures\.nonsense"):
        bench_plots.draw(tmp_path / "figures.nonsense", ROWS)
