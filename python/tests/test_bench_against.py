"""`ropewalk bench collectives --against`: the join, its text, and runs of a made-up program."""

import json

import pytest

from conftest import write_program
from ropewalk import run
from ropewalk.bench import against, jobs
from ropewalk.bench import command as bench
from ropewalk.bench.peers import PEERS
from ropewalk.errors import CommandError
from support import run_bench, settings_of

# Writes one row; its plain time depends on the MPI it finds itself under.
PROGRAM = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --json ] && file=$2; [ "$1" = --fail ] && exit 9; shift; done
plain=8
case $ROPEWALK_MPI_LIBRARY in *libmpi.so.40) plain=6;; esac
[ "$OMPI_MCA_pml" = ucx ] && plain=3
[ "$MPIR_CVAR_DEVICE_COLLECTIVES" = none ] && plain=5
cat >"$file" <<END
{"bench":"machine"}
{"bench":"collectives","op":"reduce","bytes":8,"time_us":{"median":2},"plain_us":$plain}
END
"""


def row(plain, ours, op="allreduce", size=1024, **more):
    return {
        "bench": "collectives",
        "op": op,
        "bytes": size,
        "ranks": 2,
        "memory": "arena",
        "buffers": "hot",
        "time_us": {"median": ours, "min": ours, "p99": ours, "n": 1},
        "plain_us": plain,
        "path": "mapped",
        "verified": True,
        **more,
    }


@pytest.fixture
def programs(tmp_path, monkeypatch):
    folder = tmp_path / "libexec"
    write_program(folder / "ropewalk-bench-collectives", PROGRAM)
    write_program(folder / "ropewalk-bench-comms", PROGRAM)
    monkeypatch.setenv("ROPEWALK_LIBEXEC", str(folder))


def test_best_peer_is_the_one_nearest_in_its_own_run():
    # openmpi's time is shorter, but its run was on a quieter machine: the ratio decides.
    runs = {
        "mpich": [{"bench": "machine"}, row(30.0, 20.0, limit_us=16.0, limit_ratio=1.25)],
        "openmpi": [{"bench": "machine"}, row(20.0, 10.0)],
    }
    [joined] = against.join(runs)
    assert joined["peer"] == "mpich"
    assert joined["peer_us"] == 30.0
    assert joined["time_us"]["median"] == 20.0
    assert joined["ratio"] == 1.5
    assert joined["ratios"] == {"mpich": 1.5, "openmpi": 2.0}
    assert joined["limit_ratio"] == 1.25
    assert joined["verified"] is True


def test_cases_are_kept_apart():
    runs = {
        "mpich": [row(4.0, 2.0), row(4.0, 2.0, size=8), row(9.0, 3.0, buffers="rewritten")],
        "intel": [row(3.0, 2.0), row(8.0, 2.0, op="bcast")],
    }
    joined = against.join(runs)
    assert [(one["op"], one["bytes"], one["buffers"], one["peer"]) for one in joined] == [
        ("allreduce", 1024, "hot", "intel"),
        ("allreduce", 8, "hot", "mpich"),
        ("allreduce", 1024, "rewritten", "mpich"),
        ("bcast", 1024, "hot", "intel"),
    ]


def test_rows_of_forced_mechanisms_are_not_joined():
    forced = row(4.0, 1.0, op="latency", mechanism="both")
    del forced["plain_us"]
    choice = row(4.0, 2.0, op="latency", mechanism="choice")
    [joined] = against.join({"mpich": [choice, forced]})
    assert joined["ratio"] == 2.0


def test_summary_has_the_geometric_mean_and_wrong_data():
    runs = {"mpich": [row(4.0, 2.0), row(16.0, 2.0, size=1 << 20, verified=False)]}
    text = "\n".join(against.text(against.join(runs), 3))
    assert "4.00 x   least 2.00 x (1 KiB, mpich)" in text  # sqrt(2 * 8)
    assert "1 MiB" in text
    assert "1 cases had WRONG DATA" in text
    assert against.text([], 0)[0].startswith("no case")


def test_runs_under_every_peer(programs, prefix, tmp_path):
    file = tmp_path / "rows.json"
    against = f"mpich={prefix('mpich')},mpich-nodevice,openmpi={prefix('openmpi')},openmpi-ucx"
    done = run_bench("collectives", "--against", against, "-n", 1, "--json", file)
    assert done.returncode == 0, done.stderr
    assert "4/4: collectives against openmpi-ucx" in done.stderr
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["run"] for one in rows if one["bench"] == "machine"] == [
        "mpich",
        "mpich-nodevice",
        "openmpi",
        "openmpi-ucx",
    ]
    [joined] = [one for one in rows if "ratios" in one]
    assert joined["ratios"] == {
        "mpich": 4.0,
        "mpich-nodevice": 2.5,
        "openmpi": 3.0,
        "openmpi-ucx": 1.5,
    }
    assert joined["peer"] == "openmpi-ucx"
    assert "1.50 x" in done.stdout


def test_failure_of_a_peer_is_the_status(programs, prefix):
    done = run_bench("collectives", "--against", f"mpich={prefix('mpich')}", "-n", 1, "--fail")
    assert done.returncode == 9
    assert "against mpich: status 9" in done.stderr
    assert "no case" in done.stdout


def test_dry_run(programs, prefix):
    against = f"mpich-nodevice={prefix('mpich')},intel={prefix('intel')}"
    done = run_bench("collectives", "--against", against, "--dry-run")
    assert done.returncode == 0
    assert "MPIR_CVAR_DEVICE_COLLECTIVES=none" in done.stdout
    assert "I_MPI_ROOT" in done.stdout


# What an MPI needs to be found and to start, and where its ranks run: the same for all of them.
NEUTRAL = {
    *("ROPEWALK_MPI_LIBRARY", "LD_LIBRARY_PATH", "I_MPI_ROOT", "FI_PROVIDER_PATH"),
    *("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"),
    *("PRTE_MCA_rmaps_default_mapping_policy", "HYDRA_BINDING", "I_MPI_PIN_DOMAIN"),
}
# A peer is a variant of an MPI; on one node Intel MPI starts without a fabric.
OF_PEER = {
    "mpich-nodevice": {"MPIR_CVAR_DEVICE_COLLECTIVES"},
    "openmpi-ucx": {"OMPI_MCA_pml", "OMPI_MCA_pml_ucx_tls", "OMPI_MCA_pml_ucx_devices"},
    "intel": {"I_MPI_FABRICS"},
}


@pytest.mark.parametrize("cores", [2, 8, 64])
@pytest.mark.parametrize("peer", list(PEERS))
def test_peers_have_their_own_defaults(programs, prefix, capsys, monkeypatch, peer, cores):
    """However many cores a rank has to spare."""
    monkeypatch.setattr(run, "usable_cores", lambda: cores)
    family = PEERS[peer][0]
    words = ["collectives", "-n", "2", "--against", f"{peer}={prefix(family)}", "--dry-run"]
    assert bench.main(words) == 0
    found = settings_of(capsys.readouterr().out)
    assert set(found) - NEUTRAL == OF_PEER.get(peer, set())


@pytest.mark.parametrize("name", ["collectives", "memory", "gradient", "itt"])
@pytest.mark.parametrize("family", ["mpich", "openmpi", "intel"])
def test_plain_columns_are_of_the_mpis_own_defaults(
    programs, prefix, capsys, monkeypatch, tmp_path, name, family
):
    write_program(tmp_path / "libexec" / f"ropewalk-bench-{name}")
    monkeypatch.setattr(run, "usable_cores", lambda: 8)
    words = [name, "-n", "2", "--mpi", str(prefix(family)), "--dry-run"]
    assert bench.main(words) == 0
    assert set(settings_of(capsys.readouterr().out)) - NEUTRAL == OF_PEER.get(family, set())
    assert bench.main([*words, "--lanes", "3"]) == 0
    found = settings_of(capsys.readouterr().out)
    assert ("ROPEWALK_LANES" in found) and ("PSM2_MULTI_EP" in found) == (name == "itt")


@pytest.mark.parametrize(
    ("words", "lanes"),
    [
        ([], True),
        (["--strategy", "sequential,plain"], False),
        (["--strategy=concurrent"], False),
        (["--strategy", "plain,threaded"], True),
        (["--lanes", "1"], False),
    ],
)
def test_comms_asks_for_lanes_when_it_has_threads(
    programs, prefix, capsys, monkeypatch, words, lanes
):
    monkeypatch.setattr(run, "usable_cores", lambda: 8)
    assert bench.main(["comms", "--mpi", str(prefix("mpich")), "--dry-run", *words]) == 0
    assert ("MPIR_CVAR_CH4_NUM_VCIS" in settings_of(capsys.readouterr().out)) == lanes


def test_the_mpi_of_a_run_is_its_own_library(programs, prefix, monkeypatch, tmp_path):
    """Whatever library the user has exported: `mpich` and `openmpi` were measured as one MPI."""
    monkeypatch.setenv("ROPEWALK_MPI_LIBRARY", f"{prefix('mpich')}/lib/libmpi.so.12")
    file = tmp_path / "rows.json"
    against = f"mpich={prefix('mpich')},openmpi={prefix('openmpi')}"
    done = run_bench("collectives", "--against", against, "-n", 1, "--json", file)
    assert done.returncode == 0, done.stderr
    [joined] = [row for row in map(json.loads, file.read_text().splitlines()) if "ratios" in row]
    assert joined["ratios"] == {"mpich": 4.0, "openmpi": 3.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["collectives", "--against", "lam"], ["--against: 'lam'", "openmpi-ucx"]),
        (["collectives", "--against", ","], ["--against: no peer"]),
        (["collectives", "--against", "mpich", "--mpi", "mpich"], ["leave --mpi out"]),
        (["collectives", "--against", "mpich=/nonexistent"], ["/nonexistent"]),
        (["comms", "--against", "mpich"], ["it compares collectives, p2p"]),
        (["--against", "mpich"], ["it compares collectives"]),
    ],
)
def test_errors(programs, arguments, words):
    done = run_bench(*arguments)
    assert done.returncode == 2, done.stdout
    for word in words:
        assert word in done.stderr


def test_prefix_of_another_mpi(prefix):
    with pytest.raises(CommandError, match=r"is MPICH, expected Open MPI"):
        against.peers(f"openmpi={prefix('mpich')}")


def test_missing_peer_says_what_to_install(monkeypatch):
    monkeypatch.setattr(against.installations, "every", lambda: iter(()))
    with pytest.raises(CommandError, match=r"intel: no Intel MPI found.*impi-rt"):
        against.peers("intel")
    with pytest.raises(CommandError, match=r"openmpi-ucx: no Open MPI found.*openmpi"):
        against.peers("openmpi-ucx")


def test_variables_of_the_user_come_first(prefix):
    options = jobs.BenchOptions(env=["A=1"])
    [peer] = against.peers(f"mpich-nodevice={prefix('mpich')}")
    assert against._with(options, peer).env == ["A=1", "MPIR_CVAR_DEVICE_COLLECTIVES=none"]
    assert options.env == ["A=1"]
