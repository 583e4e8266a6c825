"""The Python examples run as they stand, under the MPIs of set-up."""

import pathlib
import re
import sys

import pytest

from support import mpis, run

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run_example(name, path, ranks):
    command = [sys.executable, "-m", "ropewalk", "run", "-n", str(ranks), "--mpi", str(path), "--"]
    done = run([*command, sys.executable, EXAMPLES / name])
    assert done.returncode == 0, done.stderr
    return done.stdout


@mpis
def test_halo(path):
    assert "3 ranks: rank 0 has relaxed 512 rows" in run_example("halo.py", path, 3)


@mpis
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_channel(path, ranks):
    assert run_example("channel.py", path, ranks) == run_example("channel.py", path, 1)


@mpis
@pytest.mark.parametrize("ranks", [1, 3])
def test_window(path, ranks):
    told = run_example("window.py", path, ranks)
    assert "9592 primes below 100000" in told
    taken = [int(one) for one in re.findall(r"counted (\d+) of 200", told)]
    assert len(taken) == ranks and sum(taken) == 200, told


# What each prints depends on the number of ranks only where it says so.
@mpis
@pytest.mark.parametrize(
    "name", ["heat2d.py", "wave3d.py", "solve.py", "sparse.py", "transpose.py"]
)
def test_answers_do_not_depend_on_the_ranks(path, name):
    answers = [re.findall(r"[\d.]+", run_example(name, path, ranks)) for ranks in (1, 2, 4)]
    if name == "transpose.py":
        answers = [found[:2] + found[3:] for found in answers]  # without the number of ranks
    if name in ("solve.py", "sparse.py", "transpose.py"):  # its error is of rounding
        assert all(float(found.pop().rstrip(".") or 0) >= 0 for found in answers)
    assert answers[0] == answers[1] == answers[2]


@mpis
def test_gradient(path):
    told = run_example("gradient.py", path, 2)
    assert float(re.search(r"[\d.]+", told)[0]) > 90, told
