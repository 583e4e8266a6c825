"""`ropewalk bench --time`: what several programs may take together."""

import pytest

from ropewalk.bench.budget import Budget, seconds
from ropewalk.errors import CommandError
from support import run_bench


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("0.5s", 0.5), ("1.5m", 90), (".5m", 30)]
)
def test_times(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "s", "0", "-5", "1h", "5mm", "90 s", "inf", "2000m"])
def test_what_is_no_time(text):
    with pytest.raises(CommandError, match=r"--time: .*write for example --time 90s"):
        seconds(text)


class Clock:
    """Time that goes on only when the test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_what_a_program_saves_the_others_get():
    clock = Clock()
    budget = Budget("90s", 3, clock)
    assert budget.next() == ["--time", "30"]
    clock.now += 10
    assert budget.next() == ["--time", "40"]
    clock.now += 60
    assert budget.next() == ["--time", "20"]


def test_who_comes_too_late_has_a_second():
    clock = Clock()
    budget = Budget("10", 2, clock)
    clock.now += 100
    assert budget.next() == ["--time", "1"]


def test_without_a_time_the_programs_take_their_own():
    assert Budget(None, 3).next() == []


def test_one_program_gets_all_of_it(programs, prefix):
    assert run_bench("comms", "--mpi", prefix("mpich"), "--time", "2m").stdout == "ran --time 120\n"


def test_the_suite_shares_it(programs, prefix):
    said = run_bench("--mpi", prefix("mpich"), "--time", "100s", "--dry-run").stdout
    assert said.count("--quick --time ") == 2
    assert "--quick --time 50" in said or "--quick --time 49.9" in said


def test_a_wrong_time_starts_nothing(programs, prefix):
    done = run_bench("comms", "--mpi", prefix("mpich"), "--time", "soon")
    assert done.returncode == 2
    assert "--time: 'soon' is no time" in done.stderr
