"""`ropewalk hugepages --job` with made-up launchers and pools, and the scripts that batch systems
run before and after a job, without these systems."""

import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import types

import pytest

from conftest import make_prefix, real_mpis, write_program
from ropewalk import command, hugepages, hugepages_job
from ropewalk.errors import CommandError
from support import PACKAGES, environment, run
from test_hugepages import MIB, make_pools, total

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "packaging/hugepages"


@pytest.fixture
def root(tmp_path):
    return make_pools(tmp_path)


# ---- what a node answers -------------------------------------------------------------------------


def test_a_node_tells_what_it_did(root):
    row = hugepages_job.row_here("reserve", 5, 2 * MIB, root)
    assert row["error"] is None
    assert row["node"] == os.uname().nodename
    assert [(one["asked"], one["done"], one["total"]) for one in row["changes"]] == [(5, 5, 15)]
    assert [pool["total"] for pool in row["pools"]] == [15, 10]
    assert row["reserved"] == {2 * MIB: 5}
    row = hugepages_job.row_here("release", root=root)
    assert [one["done"] for one in row["changes"]] == [5]
    assert row["reserved"] == {}
    assert total(root) == 10


def test_a_node_tells_what_fails(root):
    row = hugepages_job.row_here("reserve", 5, 4 * MIB, root)
    assert "no pages of 4096K" in row["error"]
    assert not hugepages_job.complete([row])


def test_a_pool_that_cannot_be_written_is_told(root, monkeypatch):
    def refused(where, size, pages):
        raise PermissionError(13, "Permission denied", "nr_hugepages")

    monkeypatch.setattr(hugepages, "_write", refused)
    row = hugepages_job.row_here("reserve", 5, 2 * MIB, root)
    assert row["error"] == "nr_hugepages: Permission denied"


# ---- all nodes -----------------------------------------------------------------------------------


def row(node, done=5, asked=5, error=None):
    pool = {"page_bytes": 2 * MIB, "total": 10 + done, "free": 8}
    change = {"page_bytes": 2 * MIB, "asked": asked, "done": done, "total": 10 + done}
    return {
        "node": node,
        "pools": [pool],
        "reserved": {str(2 * MIB): done},
        "changes": [] if error else [change],
        "error": error,
    }


def test_answers_are_found_between_what_others_print():
    mark = hugepages_job._MARK
    text = f"hello\n{mark}{json.dumps(row('b'))}{mark}{json.dumps(row('a'))} bye\n{mark}{{half"
    assert [one["node"] for one in hugepages_job.answers(text)] == ["b", "a"]


def test_a_table_names_each_node():
    text = hugepages_job.lines([row("n1"), row("node-2", done=3)], "reserve")
    assert text[0].split() == ["node", "pages", "of", "reserved", "total", "free"]
    assert text[1].split() == ["n1", "2M", "5", "of", "5", "15", "8"]
    assert text[2].split() == ["node-2", "2M", "3", "of", "5", "13", "8"]
    assert "fragmented" in text[-1]
    assert len({len(line) for line in text[:3]}) == 1


def test_an_error_of_several_nodes_is_told_once():
    rows = [row("n1", error="no right"), row("n2"), row("n3", error="no right")]
    assert "n1, n3: no right" in hugepages_job.lines(rows, "reserve")


def test_status_tells_what_ropewalk_reserved():
    one = row("n1")
    one["changes"] = []
    assert hugepages_job.lines([one], "status")[1].split() == ["n1", "2M", "5", "15", "8"]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """cluster(ANSWERING): a PBS job of three nodes with an MPI whose launcher starts the program
    on so many of them, one after the other, all here."""
    file = tmp_path / "nodes"
    file.write_text("n1\nn1\nn2\nn3\n")
    monkeypatch.setenv("PBS_NODEFILE", str(file))
    monkeypatch.setenv("PYTHONPATH", PACKAGES)
    prefix = make_prefix(tmp_path / "mpi", "mpich")
    monkeypatch.setenv("ROPEWALK_MPI", str(prefix))

    def with_nodes(answering):
        write_program(
            prefix / "bin/mpiexec",
            '#!/bin/sh\nwhile [ "$1" != -n ]; do shift; done\n'
            f"[ $2 = 3 ] || exit 9\nshift 2\nfor node in $(seq {answering}); do\n"
            '  "$@" || exit; done\necho some warning >&2\n',
        )

    return with_nodes


def test_every_node_is_asked_by_the_jobs_launcher(cluster, capsys):
    cluster(3)
    assert command.main(["hugepages", "status", "--job", "--json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [one["node"] for one in nodes] == [os.uname().nodename] * 3


@pytest.mark.parametrize("mpi", real_mpis(), ids=lambda mpi: mpi.name)
def test_real_launchers_start_a_program_without_mpi(mpi):
    words = [sys.executable, "-m", "ropewalk", "hugepages", "status", "--job", "--json"]
    done = run(words, env={**environment(), "ROPEWALK_MPI": str(mpi)})
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["nodes"]
    assert one["node"] == os.uname().nodename


def test_a_node_that_does_not_answer_is_an_error(cluster, capsys):
    cluster(2)
    assert command.main(["hugepages", "status", "--job"]) == 1
    complaint = capsys.readouterr().err
    assert "2 of 3 nodes answered" in complaint
    assert "some warning" in complaint


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([row("a"), row("b")], 0),
        ([row("a"), row("b", done=4)], 1),
        ([row("a"), row("b", error="x")], 1),
    ],
)
def test_the_status_tells_of_the_worst_node(rows, status, monkeypatch, capsys):
    monkeypatch.setattr(hugepages_job, "rows_of_job", lambda *given: rows)
    assert command.main(["hugepages", "reserve", "5", "--job"]) == status
    assert "a  " in capsys.readouterr().out


def test_json_of_this_node(capsys):
    assert command.main(["hugepages", "status", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["nodes"]
    assert one["changes"] == []
    assert one["error"] is None


def test_late_nodes_are_an_error(monkeypatch):
    def late(*words, **options):
        raise subprocess.TimeoutExpired("mpiexec", 1)

    monkeypatch.setattr(subprocess, "run", late)
    monkeypatch.setattr("ropewalk.run.make_request", lambda options: None)
    monkeypatch.setattr(
        "ropewalk.plan.make",
        lambda request: types.SimpleNamespace(command=["x"], environment=lambda base: base),
    )
    with pytest.raises(CommandError, match="--job: not all nodes answered"):
        hugepages_job.rows_of_job("status", None, None)


# ---- prologs -------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path):
    """installed(SCRIPT) -> its path: the scripts with the paths of a made-up machine, whose helper
    and kernel record what they are told."""
    record = tmp_path / "record"
    (tmp_path / "vm").mkdir()
    write_program(tmp_path / "libexec/ropewalk-hugepages", f'#!/bin/sh\necho "$@" >>{record}\n')

    def install(name, place=None):
        path = tmp_path / (place or f"installed/{name}")
        text = (SCRIPTS / name).read_text()
        text = text.replace("/usr/local/libexec", f"{tmp_path}/libexec")
        text = re.sub(r"^vm=.*$", f"vm={tmp_path}/vm", text, flags=re.MULTILINE)
        text = re.sub(r"^PATH=", f"PATH={tmp_path}/bin:", text, flags=re.MULTILINE)
        return write_program(path, re.sub(r"^ *sync$", "", text, flags=re.MULTILINE))

    install("job-pages.sh", "libexec/ropewalk-job-pages")
    install.record = lambda: record.read_text().split("\n")[:-1] if record.exists() else []
    install.vm = tmp_path / "vm"
    install.top = tmp_path
    return install


def told(path, *arguments, **variables):
    return subprocess.run(
        [path, *arguments], env=variables, capture_output=True, text=True, timeout=30
    )


def test_memory_is_gathered_before_pages_are_taken(installed):
    pool = installed.top / "libexec/ropewalk-job-pages"
    assert told(pool, "begin", "512").returncode == 0
    assert installed.record() == ["set 512 2M"]
    assert (installed.vm / "drop_caches").read_text() == "3\n"
    assert (installed.vm / "compact_memory").read_text() == "1\n"
    assert told(pool, "end").returncode == 0
    assert installed.record() == ["set 512 2M", "set minimum 2M"]


@pytest.mark.parametrize("pages", ["", "x", "-5", "5;id", "12345678", "1 2"])
def test_what_is_no_number_of_pages_takes_none(installed, pages):
    assert told(installed.top / "libexec/ropewalk-job-pages", "begin", pages).returncode == 0
    assert installed.record() == []
    assert list(installed.vm.iterdir()) == []


def test_a_helper_that_fails_stops_no_job(installed):
    write_program(installed.top / "libexec/ropewalk-hugepages", "#!/bin/sh\nexit 3\n")
    assert told(installed.top / "libexec/ropewalk-job-pages", "begin", "8").returncode == 0


def test_a_wrong_word_is_an_error(installed):
    done = told(installed.top / "libexec/ropewalk-job-pages", "start")
    assert done.returncode == 2
    assert "'start', expected begin PAGES or end" in done.stderr


@pytest.mark.parametrize(
    ("variables", "record"),
    [
        ({"SLURM_JOB_COMMENT": "hugepages=512"}, ["set 512 2M"]),
        ({"SLURM_JOB_COMMENT": "a=1,hugepages=64,b"}, ["set 64 2M"]),
        ({"SLURM_JOB_COMMENT": "hugepages=many"}, []),
        ({}, []),
        ({"SLURM_SCRIPT_CONTEXT": "epilog_slurmd"}, ["set minimum 2M"]),
    ],
)
def test_slurms_prolog(installed, variables, record):
    assert told(installed("slurm-prolog.sh"), **variables).returncode == 0
    assert installed.record() == record


@pytest.mark.parametrize(
    ("specification", "record"),
    [
        ({"system": {"duration": 60, "hugepages": 512}}, ["set 512 2M"]),
        ({"system": {"hugepages": "64", "cwd": "/tmp"}}, ["set 64 2M"]),
        ({"system": {"cwd": "/hugepages"}}, []),
    ],
)
def test_fluxs_prolog(installed, specification, record):
    job = json.dumps({"resources": [], "attributes": specification})
    write_program(
        installed.top / "bin/flux",
        f"#!/bin/sh\n[ \"$*\" = 'job info f42 jobspec' ] && echo '{job}'\n",
    )
    prolog = installed("flux-prolog.sh", "etc/flux/system/prolog.d/hugepages")
    assert told(prolog, FLUX_JOB_ID="f42").returncode == 0
    assert installed.record() == record
    epilog = installed("flux-prolog.sh", "etc/flux/system/epilog.d/hugepages")
    assert told(epilog, FLUX_JOB_ID="f42").returncode == 0
    assert installed.record() == [*record, "set minimum 2M"]


@pytest.fixture
def hook(installed, monkeypatch):
    """hook(EVENT, PAGES): runs PBS's hook with a module `pbs` that answers so; returns what it
    logged, and whether it accepted."""

    def called(kind, pages):
        job = types.SimpleNamespace(Resource_List={"hugepages": pages})
        accepted, logged = [], []
        event = types.SimpleNamespace(type=kind, job=job, accept=lambda: accepted.append(True))
        module = types.ModuleType("pbs")
        module.EXECJOB_BEGIN, module.EXECJOB_END, module.LOG_WARNING = 64, 512, 4
        module.event = lambda: event
        module.logmsg = lambda level, text: logged.append(text)
        monkeypatch.setitem(sys.modules, "pbs", module)
        runpy.run_path(str(installed("pbs_hook.py")))
        return logged, accepted

    return called


def test_pbss_hook(hook, installed):
    assert hook(64, 512) == ([], [True])
    assert hook(512, 512) == ([], [True])
    assert installed.record() == ["set 512 2M", "set minimum 2M"]
    assert hook(64, None) == ([], [True])
    assert len(installed.record()) == 2


def test_pbss_hook_lets_the_job_run_whatever_fails(hook, installed):
    (installed.top / "libexec/ropewalk-job-pages").unlink()
    logged, accepted = hook(64, 512)
    assert accepted == [True]
    assert "hugepages" in logged[0]
