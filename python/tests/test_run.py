"""`ropewalk run`: the plan for each family, and errors that name the argument and the remedy."""

import pytest

from conftest import elf_file, write_program
from ropewalk import command, elf, plan, run
from support import dry, settings_of


@pytest.fixture
def cores(monkeypatch):
    def set_cores(number):
        monkeypatch.setattr(run, "usable_cores", lambda: number)

    return set_cores


@pytest.mark.parametrize(
    ("family", "library"),
    [("mpich", "libmpi.so.12"), ("openmpi", "libmpi.so.40"), ("intel", "libmpi.so.12")],
)
def test_library_is_a_full_path(capsys, prefix, program, family, library):
    path = prefix(family)
    text = dry(capsys, "--mpi", path, program)
    assert settings_of(text)["ROPEWALK_MPI_LIBRARY"] == str(path / "lib" / library)
    assert f"{path}/bin/mpiexec" in text
    assert "9.8.7" in text


def test_lanes_mpich(capsys, prefix, program, cores):
    cores(64)
    found = settings_of(dry(capsys, "-n", 2, "--lanes", 4, "--mpi", prefix("mpich"), program))
    assert found["MPIR_CVAR_CH4_NUM_VCIS"] == "5"
    assert found["ROPEWALK_LANES"] == "4"
    assert found["PSM2_MULTI_EP"] == "1"
    found = settings_of(dry(capsys, "--lanes", 40, "--mpi", prefix("mpich"), program))
    assert found["MPIR_CVAR_CH4_NUM_VCIS"] == "16"


def test_one_lane_changes_nothing(capsys, prefix, program, cores):
    cores(64)
    for family in ("mpich", "openmpi", "intel"):
        found = settings_of(dry(capsys, "--lanes", 1, "--mpi", prefix(family), program))
        assert "PSM2_MULTI_EP" not in found
        assert not any("VCIS" in name or "THREAD" in name or "ctx" in name for name in found)


def test_lanes_are_automatic_from_spare_cores(capsys, prefix, program, cores):
    cores(10)
    found = settings_of(dry(capsys, "-n", 2, "--mpi", prefix("mpich"), program))
    assert found["MPIR_CVAR_CH4_NUM_VCIS"] == "5"  # 5 cores a rank, 4 to spare
    assert "ROPEWALK_LANES" not in found


def test_lanes_openmpi_and_intel(capsys, prefix, program, cores):
    cores(64)
    found = settings_of(dry(capsys, "--lanes", 3, "--mpi", prefix("openmpi"), program))
    assert found["OMPI_MCA_mtl_ofi_num_ctxts"] == "4"
    assert found["OMPI_MCA_mtl_ofi_enable_sep"] == "1"
    path = prefix("intel")
    found = settings_of(dry(capsys, "--lanes", 3, "--mpi", path, program))
    assert found["I_MPI_THREAD_SPLIT"] == "1"
    assert found["I_MPI_THREAD_RUNTIME"] == "generic"
    assert found["I_MPI_THREAD_MAX"] == "4"  # number 0 is the caller's
    assert found["I_MPI_ROOT"] == str(path)
    assert found["FI_PROVIDER_PATH"] == str(path / "lib")
    assert found["LD_LIBRARY_PATH"].split(":")[0] == str(path / "lib")
    assert "I_MPI_FABRICS" not in found


def test_intel_splits_threads_only_for_lanes(capsys, prefix, program, cores):
    """With cores to spare every program had it, whose communicators have no numbers."""
    cores(64)
    found = settings_of(dry(capsys, "-n", 2, "--mpi", prefix("intel"), program))
    assert not any("THREAD" in name for name in found)
    assert found["I_MPI_FABRICS"] == "shm"


def test_oversubscribed(capsys, prefix, program, cores):
    cores(2)
    found = settings_of(dry(capsys, "-n", 3, "--mpi", prefix("mpich"), program))
    assert found["MPIR_CVAR_DEVICE_COLLECTIVES"] == "none"
    text = dry(capsys, "-n", 3, "--mpi", prefix("openmpi"), program)
    assert settings_of(text)["PRTE_MCA_rmaps_default_mapping_policy"] == ":OVERSUBSCRIBE"
    assert settings_of(text)["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert "--bind-to none" in text
    assert "overload" not in text
    old = prefix("openmpi", "old")
    (old / "bin/prterun").unlink()
    found = settings_of(dry(capsys, "-n", 3, "--mpi", old, program))
    assert found["OMPI_MCA_rmaps_base_oversubscribe"] == "1"
    found = settings_of(dry(capsys, "-n", 3, "--mpi", prefix("intel"), program))
    assert found["I_MPI_PIN"] == "0"
    assert found["I_MPI_FABRICS"] == "shm"


def test_children_may_be_more_than_cores(capsys, prefix, program, cores):
    """MPI_Comm_spawn of a job that fills the cores; its own ranks neither yield nor lose theirs."""
    cores(2)
    text = dry(capsys, "-n", 2, "--mpi", prefix("openmpi"), program)
    assert settings_of(text)["PRTE_MCA_rmaps_default_mapping_policy"] == ":OVERSUBSCRIBE"
    assert "OMPI_MCA_mpi_yield_when_idle" not in settings_of(text)
    assert "--bind-to core:overload-allowed " in text
    old = prefix("openmpi", "old")
    (old / "bin/prterun").unlink()
    text = dry(capsys, "-n", 2, "--mpi", old, program)
    assert settings_of(text)["OMPI_MCA_rmaps_base_oversubscribe"] == "1"
    assert "OMPI_MCA_mpi_yield_when_idle" not in settings_of(text)
    assert "--bind-to core " in text
    text = dry(capsys, "-n", 2, "--mpi", prefix("mpich"), program)
    assert settings_of(text)["HYDRA_BINDING"] == "core:1"
    assert "bind-to" not in text.replace("the option -bind-to", "")


def test_open_mpi_4_starts_without_ssh(capsys, prefix, program, monkeypatch, tmp_path):
    new, old = prefix("openmpi"), prefix("openmpi", "old")
    (old / "bin/prterun").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert settings_of(dry(capsys, "--mpi", old, program))["OMPI_MCA_plm_rsh_agent"] == ""
    assert "rsh_agent" not in dry(capsys, "--mpi", new, program)
    assert "rsh_agent" not in dry(capsys, "--nodes", "elsewhere", "--mpi", old, program)
    assert "rsh_agent" not in dry(capsys, "--nodes", "a,b", "--mpi", old, program)
    write_program(tmp_path / "bin/rsh")
    assert "rsh_agent" not in dry(capsys, "--mpi", old, program)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "own")
    assert settings_of(dry(capsys, "--mpi", old, program))["OMPI_MCA_plm_rsh_agent"] == "own"


def test_batch_job_divides_ranks_over_nodes(capsys, prefix, program, cores, monkeypatch):
    cores(4)
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    text = dry(capsys, "-n", 16, "--mpi", prefix("openmpi"), program)
    assert "yield_when_idle" not in text
    assert "-x ROPEWALK_MPI_LIBRARY" in text
    assert "on 4 nodes" in text


def test_binding(capsys, prefix, program, cores):
    cores(8)
    text = dry(capsys, "-n", 4, "--mpi", prefix("mpich"), program)
    assert settings_of(text)["HYDRA_BINDING"] == "core:2"
    assert "-genv HYDRA_BINDING none" in text  # a rank's own mpiexec is not told to bind
    assert "BINDING" not in dry(capsys, "-n", 1, "--mpi", prefix("mpich"), program)
    found = settings_of(dry(capsys, "-n", 4, "--no-bind", "--mpi", prefix("mpich"), program))
    assert found["HYDRA_BINDING"] == "none"
    text = dry(capsys, "-n", 4, "--mpi", prefix("openmpi"), program)
    assert "--map-by slot:PE=2 --bind-to core" in text
    found = settings_of(dry(capsys, "-n", 4, "--mpi", prefix("intel"), program))
    assert found["I_MPI_PIN_DOMAIN"] == "2"
    own = dry(
        capsys, "-n", 4, "--launcher-option=-bind-to=hwthread", "--mpi", prefix("mpich"), program
    )
    assert own.count("bind-to") == 1
    assert "BINDING" not in own


def test_your_own_hydra_binding_wins(capsys, prefix, program, cores, monkeypatch):
    cores(8)
    path = prefix("mpich")
    text = dry(capsys, "-n", 4, "--env", "HYDRA_BINDING=numa", "--mpi", path, program)
    assert settings_of(text)["HYDRA_BINDING"] == "numa"
    monkeypatch.setenv("HYDRA_BINDING", "socket")
    for options in ([], ["--no-bind"], ["--nodes", "a,b"]):
        text = dry(capsys, "-n", 4, *options, "--mpi", path, program)
        assert "BINDING" not in text  # as it is, in the environment
        assert "bind-to" not in text


def test_hydra_binds_elsewhere_by_its_option(capsys, prefix, program, cores, monkeypatch):
    """Its proxies on other nodes, or started by a batch system, do not see the variable."""
    cores(8)
    path = prefix("mpich")

    def bound_by_option(*options):
        text = dry(capsys, "-n", 4, *options, "--mpi", path, program)
        assert ("-bind-to core:" in text) != ("HYDRA_BINDING=core:" in text)
        return "-bind-to core:" in text

    assert not bound_by_option()
    assert not bound_by_option("--nodes", "localhost")
    assert bound_by_option("--nodes", "elsewhere")
    assert bound_by_option("--nodes", "a,b")
    assert bound_by_option("--launcher-option=-f", "--launcher-option=hosts")
    text = dry(capsys, "-n", 4, "--nodes", "a,b", "--no-bind", "--mpi", path, program)
    assert "bind-to" not in text
    assert settings_of(text)["HYDRA_BINDING"] == "none"
    monkeypatch.setenv("PBS_JOBID", "1")
    monkeypatch.setenv("PBS_NODEFILE", "/nonexistent")
    assert bound_by_option()


def test_own_settings_win(capsys, prefix, program, cores, monkeypatch):
    cores(2)
    monkeypatch.setenv("MPIR_CVAR_DEVICE_COLLECTIVES", "all")
    text = dry(capsys, "-n", 3, "--mpi", prefix("mpich"), "--env", "A=b=c", program)
    assert settings_of(text)["MPIR_CVAR_DEVICE_COLLECTIVES"] == "all"
    assert "your own setting, kept" in text
    assert settings_of(text)["A"] == "b=c"
    text = dry(
        capsys,
        "-n",
        3,
        "--mpi",
        prefix("mpich"),
        "--env",
        "MPIR_CVAR_DEVICE_COLLECTIVES=some",
        program,
    )
    assert settings_of(text)["MPIR_CVAR_DEVICE_COLLECTIVES"] == "some"


def test_root_under_openmpi(prefix):
    from ropewalk import installations

    request = plan.Request(installations.recognise(str(prefix("openmpi"))), 1, ["x"], root=True)
    names = {setting.name for setting in plan.make(request, {}).settings}
    assert {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"} <= names


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["-n", "0", "true"], 2, ["-n", "0 ranks", "1 or more"]),
        (["--lanes", "65", "true"], 2, ["--lanes", "65", "1 to 64"]),
        (["--lanes", "0", "true"], 2, ["--lanes"]),
        (["--env", "novalue", "true"], 2, ["--env", "NAME=VALUE"]),
        (["-n", "2"], 2, ["PROGRAM", "ropewalk run -n 2 -- ./program"]),
        (["no-such-program-anywhere"], 127, ["no-such-program-anywhere", "not found on PATH"]),
        (["./no/such"], 127, ["./no/such", "no such file; name one"]),
        (["/usr"], 126, ["/usr: a folder, expected a program"]),
        (["--nodes", "n[1-99999999]", "true"], 2, ["--nodes", "at most 65536 names"]),
        (["--nodes", "n[1-9][1-99999]", "true"], 2, ["--nodes", "at most 65536 names"]),
        (["--nodes", "a[", "true"], 2, ["--nodes: 'a['", "one bracket of two"]),
        (["-n", "99999999999999999999", "true"], 2, ["-n/--ranks", "at most 2147483647"]),
        (["--mpi", "/nonexistent", "true"], 2, ["--mpi", "/nonexistent", "mpich, openmpi, intel"]),
    ],
)
def test_errors_name_the_argument(capsys, arguments, status, words):
    assert command.main(["run", *arguments]) == status
    complaint = capsys.readouterr().err
    assert complaint.startswith("ropewalk run: ")
    assert complaint.count("\n") == 1
    for word in words:
        assert word in complaint


def test_folder_without_an_mpi(capsys, tmp_path):
    assert command.main(["run", "--mpi", str(tmp_path), "true"]) == 2
    assert "bin/mpiexec" in capsys.readouterr().err


def test_no_mpi_at_all(capsys, monkeypatch, program, tmp_path):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setattr("ropewalk.installations._INTEL_PREFIXES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main(["run", str(program)]) == 2
    complaint = capsys.readouterr().err
    assert "no MPI found" in complaint
    assert "`make` sets up MPICH" in complaint
    assert "pip install mpich" in complaint
    assert "apt install" in complaint
    # An installed package has no Makefile.
    monkeypatch.setattr("ropewalk.installations.TREE", str(tmp_path))
    assert command.main(["run", str(program)]) == 2
    complaint = capsys.readouterr().err
    assert "make" not in complaint
    assert "`pip install mpich` in this Python environment, or Debian's `apt install" in complaint


def test_search_order(capsys, monkeypatch, prefix, program, tmp_path):
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    monkeypatch.setattr("ropewalk.installations._INTEL_PREFIXES", ())
    system = prefix("mpich", "system")
    monkeypatch.setenv("PATH", f"{system}/bin:/usr/bin:/bin")
    assert f"{system}/bin/mpiexec" in dry(capsys, program)
    inside = prefix("openmpi", "venv")
    assert f"{inside}/bin/mpiexec" in dry(capsys, program)
    beside = prefix("openmpi", "venv/mpi/openmpi")
    assert f"{beside}/bin/mpiexec" in dry(capsys, program)
    assert f"{system}/bin/mpiexec" in dry(capsys, "--mpi", "system", program)
    assert f"{system}/bin/mpiexec" in dry(capsys, "--mpi", "mpich", program)
    other = prefix("intel", "other")
    monkeypatch.setenv("ROPEWALK_MPI", str(other))
    assert f"{other}/bin/mpiexec" in dry(capsys, program)
    assert f"{beside}/bin/mpiexec" in dry(capsys, "--mpi", "openmpi", program)


def test_needed(tmp_path, program):
    path = elf_file(tmp_path / "linked", ["libmpi.so.40", "libc.so.6"])
    assert elf.needed(path) == ["libmpi.so.40", "libc.so.6"]
    assert elf.needed(program) == []
    path.write_bytes(path.read_bytes()[:100])
    assert elf.needed(path) == []
    assert "libc.so.6" in elf.needed("/proc/self/exe") or elf.needed("/proc/self/exe")


def test_wrong_family(capsys, tmp_path, prefix):
    path = elf_file(tmp_path / "linked", ["libmpi.so.40", "libc.so.6"])
    assert command.main(["run", "--mpi", str(prefix("mpich")), str(path)]) == 2
    complaint = capsys.readouterr().err
    assert "linked to libmpi.so.40" in complaint
    assert "--mpi openmpi" in complaint
    path = elf_file(tmp_path / "linked2", ["libmpi.so.12"])
    assert "LD_LIBRARY_PATH" in settings_of(dry(capsys, "--mpi", prefix("intel"), path))
    assert command.main(["run", "--mpi", str(prefix("openmpi")), str(path)]) == 2


def test_standard_abi_uses_its_library(capsys, tmp_path, prefix):
    path = elf_file(tmp_path / "linked", ["libmpi_abi.so.1"])
    found = settings_of(dry(capsys, "--mpi", prefix("mpich"), path))
    assert found["ROPEWALK_MPI_LIBRARY"].endswith("lib/libmpi_abi.so.1")
    assert command.main(["run", "--mpi", str(prefix("openmpi")), str(path)]) == 2


def test_program_chooses_among_the_found(capsys, monkeypatch, tmp_path, prefix, no_libraries):
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    prefix("mpich", "venv/mpi/mpich")
    openmpi = prefix("openmpi", "venv/mpi/openmpi")
    path = elf_file(tmp_path / "linked", ["libmpi.so.40"])
    assert f"{openmpi}/bin/mpiexec" in dry(capsys, path)


def test_python_scripts(capsys, tmp_path, prefix):
    script = tmp_path / "script.py"
    script.write_text("print()")
    path = prefix("mpich")
    text = dry(capsys, "--mpi", path, script)
    assert "python" in text
    assert settings_of(text)["MPI4PY_LIBMPI"] == str(path / "lib/libmpi.so.12")
