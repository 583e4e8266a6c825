"""`ropewalk run` inside a rank of another one: what the outer one has set is not the user's."""

import dataclasses
import os
import sys

import pytest

from conftest import real_mpis
from ropewalk import command, installations, nested, plan, run
from ropewalk.bench import plain
from ropewalk.cluster import box as boxes
from ropewalk.cluster.network import Network
from support import dry
from support import run as start_ranks

FAMILIES = ("mpich", "openmpi", "intel")
PATIENCE = 120.0


@pytest.fixture
def planned(prefix, monkeypatch):
    """planned(FAMILY, ENVIRONMENT): a plan with many settings, and the environment of its ranks."""

    def make(family, base, **more):
        one = installations.recognise(str(prefix(family)))
        facts = {"ranks": 2, "cores": 16, "lanes": 4, "python": True, "root": True, "stats": True}
        request = plan.Request(one, program=["x"], **{**facts, **more})
        found = plan.make(request, base)
        return found, {**found.environment(base), **found.for_ranks}

    return make


def values(found):
    return {one.name: (one.value, one.user) for one in found.settings}


@pytest.mark.parametrize("outer", FAMILIES)
@pytest.mark.parametrize("inner", FAMILIES)
def test_a_plan_inside_a_plans_own_environment(planned, outer, inner):
    base = {"PATH": "/bin", "LD_LIBRARY_PATH": "/own", "UCX_TLS": "tcp", "HOME": "/home/me"}
    _, inside = planned(outer, base)
    found, twice = planned(inner, inside)
    alone, once = planned(inner, base)
    assert values(found) == values(alone)
    assert twice == once
    assert not any(user for _, user in values(found).values())
    assert nested.outer(inside) == base


def test_what_is_changed_inside_is_the_users(planned):
    _, inside = planned("mpich", {"LD_LIBRARY_PATH": "/own"})
    folder = inside["LD_LIBRARY_PATH"].split(":")[0]
    inside["MPIR_CVAR_CH4_NUM_VCIS"] = "9"
    inside["LD_LIBRARY_PATH"] = "/mine:" + inside["LD_LIBRARY_PATH"]
    found, again = planned("mpich", inside)
    assert values(found)["MPIR_CVAR_CH4_NUM_VCIS"] == ("9", True)
    assert again["LD_LIBRARY_PATH"] == f"{folder}:/mine:/own"
    # A third level takes the second one's for nobody's, and keeps the user's.
    third, _ = planned("mpich", again)
    assert values(third)["MPIR_CVAR_CH4_NUM_VCIS"] == ("9", True)


def test_the_users_own_stays(planned):
    base = {"MPIR_CVAR_CH4_NUM_VCIS": "2"}
    _, inside = planned("mpich", base)
    _, again = planned("openmpi", inside)
    assert again["MPIR_CVAR_CH4_NUM_VCIS"] == "2"


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "3", '{"A": 1}', '{"A": [1]}', "null"])
def test_a_mark_that_is_none(text):
    assert nested.outer({"A": "1", nested.MARK: text}) == {"A": "1"}


def test_the_command_leaves_an_outer_one(planned, prefix, program, capsys, monkeypatch):
    """Whatever looks at the environment, not the plan alone: lanes, statistics, what is kept."""
    _, inside = planned("mpich", dict(os.environ))
    for name, value in inside.items():
        monkeypatch.setenv(name, value)
    for name in ("ROPEWALK_STATS", "ROPEWALK_LANES"):
        assert name in os.environ
    assert command.main(["run", "--dry-run", "--mpi", str(prefix("openmpi")), str(program)]) == 0
    shown = capsys.readouterr().out
    assert "your own" not in shown
    assert not any(name in shown for name in ("ROPEWALK_STATS", "ROPEWALK_LANES", "MPIR_CVAR"))
    assert "ROPEWALK_STATS" not in os.environ


def test_an_explicit_mpi_wins_over_an_exported_library(capsys, prefix, program, monkeypatch):
    mpich, openmpi, intel = prefix("mpich"), prefix("openmpi"), prefix("intel")
    monkeypatch.setenv("ROPEWALK_MPI_LIBRARY", f"{mpich}/lib/libmpi.so.12")
    monkeypatch.setenv("I_MPI_ROOT", "/another")
    shown = dry(capsys, "--mpi", openmpi, program)
    assert f"ROPEWALK_MPI_LIBRARY={openmpi}/lib/libmpi.so.40" in shown
    assert "yours is another MPI's" in shown
    shown = dry(capsys, "--mpi", intel, program)
    assert f"ROPEWALK_MPI_LIBRARY={intel}/lib/libmpi.so.12" in shown
    assert f"I_MPI_ROOT={intel}" in shown
    # Another library of the same MPI is named, here that of the MPI-5 ABI.
    monkeypatch.setenv("ROPEWALK_MPI_LIBRARY", f"{mpich}/lib/libmpi_abi.so.1")
    shown = dry(capsys, "--mpi", mpich, program)
    assert f"ROPEWALK_MPI_LIBRARY={mpich}/lib/libmpi_abi.so.1" in shown
    assert "your own setting, kept" in shown
    # What is as explicit as --mpi is not judged.
    shown = dry(capsys, "--mpi", openmpi, "--env", "ROPEWALK_MPI_LIBRARY=/x/libmpi.so", program)
    assert "ROPEWALK_MPI_LIBRARY=/x/libmpi.so" in shown


def test_a_kept_library_of_another_mpi_is_told(capsys, prefix, program, monkeypatch):
    monkeypatch.setenv("ROPEWALK_MPI", str(prefix("openmpi")))
    monkeypatch.setenv("ROPEWALK_MPI_LIBRARY", f"{prefix('mpich')}/lib/libmpi.so.12")
    shown = dry(capsys, program)
    assert "is your own setting, but the launcher is that of Open MPI" in shown
    assert "--mpi" in shown


@pytest.mark.parametrize("outer", FAMILIES)
def test_a_box_inside_a_rank_inherits_nothing_of_its_job(planned, outer):
    user = {"PATH": "/bin", "MINE": "1", "HOME": "/home/me"}
    _, inside = planned(outer, {**user, "HYDRA_HOST_FILE": "/hosts", "I_MPI_HYDRA_HOST_FILE": "/h"})
    rank = {
        "mpich": ["PMI_RANK", "PMI_FD", "PMI_SIZE", "HYDI_CONTROL_FD", "MPI_LOCALRANKID"],
        "openmpi": ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_num_procs", "PRTE_LAUNCHED"],
        "intel": ["PMI_RANK", "HYDRA_BSTRAP_DEBUG", "I_MPI_INFO_LCPU", "I_MPI_HYDRA_UUID"],
    }[outer]
    batch = ["SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "PALS_RANKID", "LSB_JOBID"]
    inside |= dict.fromkeys([*rank, *batch], "3")
    nothing = boxes.environment(7, Network(), [1, 1], {"PATH": "/bin"})
    made = boxes.environment(7, Network(), [1, 1], inside)
    assert set(made) - set(nothing) == {"MINE", "HOME"}


# In a shell, and in one that `srun --pty` has started, which has a rank's number.
@pytest.mark.parametrize("shell", [{}, {"SLURM_PTY_PORT": "40000", "PMI_RANK": "0"}])
def test_a_box_keeps_the_users_settings_of_an_mpi(shell):
    user = {"OMPI_MCA_btl": "tcp,self", "MPIR_CVAR_CH4_NETMOD": "ofi", "I_MPI_DEBUG": "5"}
    made = boxes.environment(7, Network(), [1, 1], user | shell)
    assert user.items() <= made.items()
    assert "PMI_RANK" not in made


def test_settings_of_the_plain_mpi_are_listed(planned):
    found, _ = planned("openmpi", {}, plain=True, ranks=32)
    text = plain.settings(found, {"UCX_TLS": "tcp", "HOME": "/home/me", "OMPI_MCA_btl": "a b"})
    assert text.split(" ", 1)[0] == "OMPI_MCA_btl=a"
    assert "UCX_TLS=tcp" in text
    assert "OMPI_MCA_mpi_yield_when_idle=1" in text
    assert not any(part in text for part in ("HOME", "LIBRARY", "ALLOW_RUN_AS_ROOT", "ctxt"))
    alone = dataclasses.replace(found, settings=[])
    assert plain.settings(alone, {}) == "none"


INNER = """
import ctypes, os
mpi = ctypes.CDLL(os.environ["ROPEWALK_MPI_LIBRARY"], mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
version, length = ctypes.create_string_buffer(8192), ctypes.c_int()
mpi.MPI_Get_library_version(version, ctypes.byref(length))
text = version.value.decode().split()[0] + " " + os.environ["{size}"]
os.write(1, (text + chr(10)).encode())  # in one piece: the launcher may put others in between
mpi.MPI_Finalize()
"""


@pytest.mark.skipif(len(real_mpis()) < 2, reason="needs two MPIs")
@pytest.mark.parametrize("outer", [0, 1])
def test_a_real_run_inside_another(outer):
    one, other = real_mpis()[outer], real_mpis()[1 - outer]
    size, word = {"mpich": ("PMI_SIZE", "MPICH"), "openmpi": ("OMPI_COMM_WORLD_SIZE", "Open")}[
        other.name
    ]
    start = [sys.executable, "-m", "ropewalk", "run", "--no-preload"]
    inner = [*start, "-n", "2", "--mpi", str(other), "--", sys.executable, "-c"]
    done = start_ranks(
        [*start, "-n", "1", "--mpi", one, "--", *inner, INNER.format(size=size)], timeout=PATIENCE
    )
    assert done.stdout.splitlines() == [f"{word} 2"] * 2, done.stderr


def test_run_has_no_settings_without_lanes(prefix):
    """The facts that a plain plan leaves out are the only ones that cores bring in."""
    one = installations.recognise(str(prefix("mpich")))
    request = plan.Request(one, 2, ["x"], cores=16)
    assert request.lanes_wanted > 1
    assert dataclasses.replace(request, plain=True).lanes_wanted == 1
    assert run.parse(["x"]).lanes is None
