"""Every command that the documentation shows is run, or has a reason why it is not.

docs_commands.toml says which: a new command without a place in it fails here.
"""

import os
import re
import subprocess
import sys
import tomllib

import pytest

import docs_commands
from conftest import real_mpis, write_program
from docs_commands import ROOT

TABLE = tomllib.loads((ROOT / "python/tests/docs_commands.toml").read_text())
WHOLE = {command: command for command in TABLE["whole"]["commands"]}
PLANNED = {
    one: one.replace(" run ", " run --dry-run ") if " run " in one else f"{one} --dry-run"
    for one in TABLE["planned"]
}
RUN = {**WHOLE, **TABLE["smaller"], **PLANNED}
NOT_RUN = TABLE["not_here"]
WHERE = docs_commands.commands()
MOST_SECONDS = 90  # each takes a few on a machine that does nothing else
# The launchers of an MPI are called without ropewalk, so the MPI has to be on the path.
OF_LAUNCHER = {"mpiexec": "mpich", "mpirun": "openmpi"}
PROGRAM = """#!{python}
from mpi4py import MPI
import numpy
value = numpy.ones(1000)
MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, value)
assert (value == MPI.COMM_WORLD.size).all()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that looks to the commands like the tree, or like a user's."""
    if not real_mpis() or not (ROOT / "build/release/bench/ropewalk-bench-comms").exists():
        pytest.skip("needs what `make build` makes")
    folder = tmp_path_factory.mktemp("docs")
    for name in ("bench", "build", "examples", "packaging", "scripts"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    write_program(folder / "program", PROGRAM.format(python=sys.executable))
    write_program(folder / "script.py", PROGRAM.format(python=sys.executable))
    rows = (ROOT / "docs/results/data/gradient.jsonl").read_text()
    for name in ("before.json", "after.json", "rows.json"):
        (folder / name).write_text(rows)
    profile = ROOT / "tests/dropin/messages/least.profile"
    (folder / "ropewalk.profile").write_text(profile.read_text())
    return folder


def environment(command):
    kept = {"PATH": f"{sys.prefix}/bin:{ROOT}/build/release/bench:{os.environ['PATH']}"}
    kept["OMPI_MCA_btl"] = "^ofi"  # it would sleep for a second in each MPI_Init
    for name, family in OF_LAUNCHER.items():
        if name in command.split():
            mpi = f"{sys.prefix}/mpi/{family}"
            kept["PATH"] = f"{mpi}/bin:{kept['PATH']}"
            kept["LD_LIBRARY_PATH"] = f"{mpi}/lib"
    return {**os.environ, **kept}


def options(command):
    return set(re.findall(r"(?<=\s)--?[\w-]+", command))


def run(command, folder):
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MOST_SECONDS,
    )
    if "cluster: no box here:" in done.stdout:
        pytest.skip("no cluster in a box here")
    return done


def test_every_command_has_a_place():
    without = [f"{WHERE[one]}: {one}" for one in WHERE if one not in RUN and one not in NOT_RUN]
    assert not without, "to be added to docs_commands.toml"
    assert sorted({*RUN, *NOT_RUN} - set(WHERE)) == [], "in docs_commands.toml, and on no page"
    assert not set(RUN) & set(NOT_RUN)


def test_every_reason_is_told():
    assert all({**NOT_RUN, **TABLE["planned"]}.values())


def test_every_block_says_what_it_is():
    known = docs_commands.COMMANDS | docs_commands.OTHERS
    unknown = [(one.page, one.line) for one in docs_commands.blocks() if one.language not in known]
    assert not unknown, f"expected a language: {sorted(known)}"


def test_code_is_fenced():
    """Otherwise a command could stand in an indented block, which nothing here reads."""
    for page in docs_commands.pages():
        text = docs_commands.BLOCK.sub("", page.read_text())
        assert not re.search(r"\n\n(?: {4}|\t)[^\s*-]", text), page


@pytest.mark.parametrize("command", TABLE["smaller"])
def test_a_smaller_command_has_the_same_options(command):
    assert options(command) <= options(TABLE["smaller"][command])


@pytest.mark.parametrize("command", sorted(RUN))
def test_it_runs(command, folder):
    if "torch" in command:
        pytest.importorskip("torch")
    if "--plot" in command:
        pytest.importorskip("matplotlib")
    done = run(RUN[command], folder)
    assert done.returncode == 0, f"{WHERE[command]}: {RUN[command]}\n{done.stdout[-3000:]}"
