"""The drop-in: which libraries go into the ranks, why one stays out, and that nothing else has
them: not the launcher, not its helpers."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import ropewalk
from conftest import elf_file, real_mpis, write_program
from ropewalk import command, preload, run
from support import PACKAGES, dry


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Made-up preload libraries, of this test's machine."""
    folder = tmp_path / "preload"
    for name, file in preload.LIBRARIES.items():
        elf_file(folder / name / file, interpreter=False)
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(folder))
    return {name: str(folder / name / file) for name, file in preload.LIBRARIES.items()}


@pytest.fixture
def linked(tmp_path, no_libraries):
    """linked(SONAME...): a program, beside libraries of these names."""

    def make(*sonames, **more):
        for name in sonames:
            elf_file(tmp_path / "bin" / name, interpreter=False)
        return elf_file(tmp_path / "bin/program", sonames, rpath=["$ORIGIN"], **more)

    return make


def value(text):
    """LD_PRELOAD as --dry-run shows it, in the order the loader takes it."""
    lines = [line.split("#")[0].strip() for line in text.splitlines() if "  LD_PRELOAD=" in line]
    return lines[0].removeprefix("LD_PRELOAD=").split(":") if lines else []


@pytest.mark.parametrize("family", ["mpich", "openmpi", "intel"])
def test_both_for_the_ranks(capsys, prefix, linked, built, family):
    text = dry(capsys, "-n", 2, "--mpi", prefix(family), linked())
    assert value(text) == [built["malloc"], built["mpi"]]
    words = next(line for line in text.splitlines() if "/mpiexec " in line).split()
    joined = f"{built['malloc']}:{built['mpi']}"
    if family == "openmpi":
        assert words[words.index(f"LD_PRELOAD={joined}") - 1] == "-x"
    else:
        place = words.index("LD_PRELOAD")
        assert (words[place - 1], words[place + 1]) == ("-genv", joined)
    assert "--no-malloc" in text  # how to be rid of it


def test_options(capsys, prefix, linked, built, monkeypatch):
    path = prefix("mpich")
    text = dry(capsys, "--no-malloc", "--mpi", path, linked())
    assert value(text) == [built["mpi"]]
    assert "# without libropewalk-malloc.so: --no-malloc" in text
    text = dry(capsys, "--no-preload", "--mpi", path, linked())
    assert value(text) == []
    assert "LD_PRELOAD" not in text.replace("# no preload", "")
    assert "ROPEWALK_STATS" not in text
    assert "ROPEWALK_STATS=1" in dry(capsys, "--stats", "--mpi", path, linked())
    monkeypatch.setenv("ROPEWALK_STATS", "0")
    assert "ROPEWALK_STATS=1" in dry(capsys, "--stats", "--mpi", path, linked())


def test_not_built(capsys, prefix, linked, monkeypatch, tmp_path, built):
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(tmp_path / "none"))
    text = dry(capsys, "--mpi", prefix("mpich"), linked())
    assert value(text) == []
    assert f"# no preload: the libraries are not built (not in {tmp_path}/none)" in text
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(tmp_path / "preload"))
    os.remove(built["malloc"])
    text = dry(capsys, "--mpi", prefix("mpich"), linked())
    assert value(text) == [built["mpi"]]
    assert "# without libropewalk-malloc.so: not built" in text


def test_preload_path(built, monkeypatch, tmp_path, capsys):
    assert ropewalk.preload_path() == f"{built['malloc']}:{built['mpi']}"
    assert command.main(["--preload-path"]) == 0
    assert capsys.readouterr().out == f"{built['malloc']}:{built['mpi']}\n"
    assert command.main(["--preload-path", "malloc"]) == 0
    assert capsys.readouterr().out == f"{built['malloc']}\n"
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="ROPEWALK_PRELOAD"):
        ropewalk.preload_path()
    assert command.main(["--preload-path"]) == 1
    assert "ROPEWALK_PRELOAD" in capsys.readouterr().err


def test_your_own_preload_is_kept(capsys, prefix, linked, built, monkeypatch):
    path = prefix("mpich")
    monkeypatch.setenv("LD_PRELOAD", f"libmine.so {built['mpi']}")
    text = dry(capsys, "--mpi", path, linked())
    assert value(text) == [built["malloc"], built["mpi"], "libmine.so"]
    assert "your own LD_PRELOAD, kept" in text
    monkeypatch.delenv("LD_PRELOAD")
    text = dry(capsys, "--env", "LD_PRELOAD=/a.so", "--mpi", path, linked())
    assert value(text) == [built["malloc"], built["mpi"], "/a.so"]
    text = dry(capsys, "--env", "LD_PRELOAD=/a.so", "--no-preload", "--mpi", path, linked())
    assert "-genv LD_PRELOAD /a.so" in text  # for the ranks, too
    monkeypatch.setenv("LD_PRELOAD", "/x/libtcmalloc.so.4")
    text = dry(capsys, "--mpi", path, linked())
    assert value(text) == [built["mpi"], "/x/libtcmalloc.so.4"]
    assert "its own allocator: libtcmalloc.so.4" in text


@pytest.mark.parametrize("soname", ["libasan.so.8", "libtsan.so.2", "libubsan.so.1"])
def test_sanitizers_come_first(capsys, prefix, linked, built, soname):
    program = linked(soname)
    found = value(dry(capsys, "--mpi", prefix("mpich"), program))
    assert found[0] == str(program.parent / soname)
    assert found[-1] == built["mpi"]
    assert (built["malloc"] in found) == (soname == "libubsan.so.1")  # it has no malloc


def test_own_allocators(capsys, prefix, linked, built):
    path = prefix("mpich")
    assert value(dry(capsys, "--mpi", path, linked("libjemalloc.so.2"))) == [built["mpi"]]
    text = dry(capsys, "--mpi", path, linked(defines=["malloc"]))
    assert value(text) == [built["mpi"]]
    assert "malloc of the program itself" in text


def test_a_job_started_by_a_rank_does_not_hand_them_to_its_launcher(prefix, built):
    from ropewalk import installations, plan

    one = installations.recognise(str(prefix("mpich")))
    inherited = {"LD_PRELOAD": f"{built['malloc']}:{built['mpi']}:/mine.so"}
    planned = plan.make(plan.Request(one, 1, ["x"]), inherited)
    assert planned.environment(inherited)["LD_PRELOAD"] == "/mine.so"
    assert planned.environment({"LD_PRELOAD": "/mine.so"})["LD_PRELOAD"] == "/mine.so"
    assert "LD_PRELOAD" not in planned.environment({})


# ---- refusals ------------------------------------------------------------------------------------


def test_setuid(capsys, prefix, linked, built, monkeypatch):
    program = linked()
    monkeypatch.setattr("ropewalk.program.privileges", lambda path: "it is setuid (of user 7)")
    text = dry(capsys, "--mpi", prefix("mpich"), program)
    assert value(text) == []
    assert f"{program}: it is setuid (of user 7)" in text
    assert "plain MPI" in text


def test_another_machine(capsys, prefix, linked, built):
    text = dry(capsys, "--mpi", prefix("mpich"), linked(machine=183))
    assert value(text) == []
    assert "AArch64, 64 bits, not x86-64, 64 bits" in text


def test_static_program(capsys, prefix, linked, built):
    text = dry(capsys, "--mpi", prefix("mpich"), linked(interpreter=False))
    assert value(text) == []
    assert "linked statically" in text


def test_musl(capsys, prefix, linked, built):
    program = linked()
    program.write_bytes(program.read_bytes().replace(b"ld-linux-x86-64", b"ld-musl--x86-64"))
    text = dry(capsys, "--mpi", prefix("mpich"), program)
    assert value(text) == []
    assert "musl" in text


def test_a_sanitizer_that_is_not_found(capsys, prefix, built, tmp_path, no_libraries):
    """Any library before its runtime ends the program."""
    program = elf_file(tmp_path / "program", ["libasan.so.8"])
    text = dry(capsys, "--mpi", prefix("mpich"), program)
    assert value(text) == []
    assert "libasan.so.8 has to be the first library" in text


def test_static_mpi(capsys, prefix, linked, built):
    text = dry(capsys, "--mpi", prefix("mpich"), linked(defines=["MPI_Init"]))
    assert value(text) == [built["malloc"]]
    assert "-lropewalk-mpi before -lmpi" in text


def test_a_path_that_the_loader_would_split(capsys, prefix, linked, tmp_path, monkeypatch):
    elf_file(tmp_path / "a folder" / preload.LIBRARIES["mpi"], interpreter=False)
    monkeypatch.setenv("ROPEWALK_PRELOAD", str(tmp_path / "a folder"))
    text = dry(capsys, "--mpi", prefix("mpich"), linked())
    assert value(text) == []
    assert "no path with a blank" in text


def test_a_note_is_one_line_and_the_program_runs(prefix, tmp_path, built):
    own = elf_file(tmp_path / "static", interpreter=False)
    done = start("--mpi", prefix("mpich"), own, ROPEWALK_PRELOAD=os.environ["ROPEWALK_PRELOAD"])
    assert done.stderr.splitlines()[0].startswith("ropewalk run: note: ")
    assert "linked statically" in done.stderr


def test_bound_to_another_mpi_by_rpath(capsys, prefix, tmp_path, no_libraries):
    bound, other = prefix("openmpi", "bound"), prefix("openmpi", "other")
    for path in (bound, other):
        elf_file(path / "lib/libmpi.so.40", interpreter=False)
    program = elf_file(tmp_path / "program", ["libmpi.so.40"], rpath=[str(bound / "lib")])
    text = dry(capsys, program)
    assert f"{bound}/bin/mpiexec" in text
    assert "# note" not in text
    assert "LD_LIBRARY_PATH" not in text
    text = dry(capsys, "--mpi", other, program)
    assert f"note: the program is bound to {bound}/lib/libmpi.so.40 (DT_RPATH)" in text
    program = elf_file(tmp_path / "program", ["libmpi.so.40"], runpath=[str(bound / "lib")])
    text = dry(capsys, "--mpi", other, program)
    assert "# note" not in text
    assert f"LD_LIBRARY_PATH={other}/lib" in text


def test_mpi4py_of_another_family(capsys, prefix, tmp_path, monkeypatch):
    elf_file(tmp_path / "site/mpi4py/MPI.openmpi.abi3.so", interpreter=False)
    (tmp_path / "site/mpi4py/__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    script = tmp_path / "script.py"
    script.write_text("")
    assert command.main(["run", "--mpi", str(prefix("mpich")), str(script)]) == 2
    complaint = capsys.readouterr().err
    assert "mpi4py" in complaint
    assert "--mpi openmpi" in complaint


# ---- for real ------------------------------------------------------------------------------------

# Prints what the loader put into this process and its parents, up to ropewalk.
_LOOK = """
import json, os
def facts(pid):
    with open(f"/proc/{pid}/maps") as file:
        maps = file.read()
    with open(f"/proc/{pid}/environ", "rb") as file:
        environment = file.read()
    with open(f"/proc/{pid}/stat", "rb") as file:
        parent = int(file.read().rpartition(b")")[2].split()[1])
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().split(b"\\0")
    return parent, {"name": words[0].decode(), "mapped": "ropewalk-test-preload" in maps,
                    "variable": b"\\0LD_PRELOAD=" in b"\\0" + environment}
pid, chain = os.getpid(), []
while pid > 1 and len(chain) < 6:
    parent, found = facts(pid)
    chain.append(found)
    if pid == int(os.environ["ROPEWALK_TEST_PARENT"]):
        break
    pid = parent
with open(f"{os.environ['ROPEWALK_TEST_FOLDER']}/{os.getpid()}", "w") as file:
    json.dump(chain, file)
"""


def start(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "ropewalk", "run", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": PACKAGES, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def real_libraries(tmp_path_factory):
    """Two libraries that do nothing, made by the compiler that is here."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("ropewalk-test-preload")
    for file in preload.LIBRARIES.values():
        subprocess.run(
            [compiler, "-shared", "-x", "c", "/dev/null", "-o", folder / file], check=True
        )
    return folder


@pytest.mark.parametrize("path", real_mpis(), ids=lambda path: path.name)
def test_only_ranks_have_them(path, real_libraries, tmp_path):
    done = start(
        *("-n", 2, "--mpi", path, "--", sys.executable, "-c", _LOOK),
        ROPEWALK_PRELOAD=str(real_libraries),
        ROPEWALK_TEST_PARENT=str(os.getpid()),
        ROPEWALK_TEST_FOLDER=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    chains = [json.loads(file.read_text()) for file in tmp_path.iterdir()]
    assert len(chains) == 2
    for rank, *parents in chains:
        assert rank["mapped"]
        assert rank["variable"]
        assert len(parents) >= 2  # a launcher and ropewalk at least
        for one in parents:
            assert not one["mapped"], one
            assert not one["variable"], one


@pytest.mark.skipif(len(preload.find()) < 2, reason="the libraries are not built")
@pytest.mark.parametrize("path", real_mpis(), ids=lambda path: path.name)
def test_the_drop_in_serves_mpi4py(path):
    pytest.importorskip("mpi4py")
    code = (
        "from mpi4py import MPI; import numpy as np; world = MPI.COMM_WORLD;"
        "mine = np.arange(100000.0) + world.rank; all = np.empty_like(mine);"
        "[world.Allreduce(mine, all) for _ in range(5)];"
        "assert (all == 2 * np.arange(100000.0) + 1).all();"
        "print('right')"
    )
    done = start("-n", 2, "--stats", "--mpi", path, "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("right") == 2
    assert "Allreduce" in done.stderr


@pytest.mark.parametrize("sanitizer", ["address", "thread", "undefined"])
def test_a_sanitized_program_runs(prefix, real_libraries, tmp_path, sanitizer):
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text("int main(void) { return 3; }\n")
    compiler = shutil.which("cc") or shutil.which("gcc")
    flags = [f"-fsanitize={sanitizer}", tmp_path / "program.c", "-o", program]
    done = subprocess.run([compiler, *flags], capture_output=True)
    if done.returncode or subprocess.run([program], capture_output=True).returncode != 3:
        pytest.skip(f"no {sanitizer} sanitizer here")
    done = start("--mpi", prefix("mpich"), program, ROPEWALK_PRELOAD=str(real_libraries))
    assert (done.returncode, done.stderr) == (3, "")


def test_notes_of_nodes(capsys, prefix, program):
    text = dry(capsys, "-n", 2, "--nodes", "far[1-3]", "--mpi", prefix("mpich"), program)
    assert "-hosts far1,far2,far3 -ppn 1" in text
    assert f"note: no rank runs on this node ({os.uname().nodename})" in text
    assert "note: far3: no rank, 2 fill the nodes before" in text
    text = dry(capsys, "--nodes", "localhost", "--mpi", prefix("mpich"), program)
    assert "# note" not in text


def test_no_preload_for_benchmarks(prefix, built, tmp_path):
    from ropewalk import installations
    from ropewalk.bench import jobs

    program = write_program(tmp_path / "ropewalk-bench-x")
    one = installations.recognise(str(prefix("mpich")))
    request = jobs.request_for(jobs.BenchOptions(), "x", [str(program)], one)
    assert request.preload.value == ""
    assert run.plan.make(request).preload == ""
