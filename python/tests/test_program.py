"""What a program brings: the loader's search, the MPI it is linked to, scripts, mpi4py, allocators,
sanitizers. Against made-up ELF files, and against ldd and ldconfig where there are."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import elf_file, write_program
from ropewalk import elf, installations, loader, program


def look(*command, **environment):
    return program.look(
        [str(word) for word in command], {"PATH": os.environ["PATH"], **environment}
    )


def library(folder, name, **more):
    return elf_file(folder / name, interpreter=False, **more)


# ---- the loader ----------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("ldd") is None, reason="no ldd here")
@pytest.mark.parametrize("path", [sys.executable, "/bin/sh", shutil.which("git") or "/bin/ls"])
def test_closure_is_what_ldd_says(path):
    path = os.path.realpath(path)
    printed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    told = dict(re.findall(r"^\s*(\S+) => (/\S+)", printed, re.MULTILINE))
    if not told:
        pytest.skip("ldd tells nothing of it")
    found = {one.name: one.path for one in loader.Loader(os.environ).closure(path)}
    for name, place in told.items():
        assert os.path.samefile(found[name], place), name


def test_cache_is_what_ldconfig_prints():
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig is None or not os.path.exists("/etc/ld.so.cache"):
        pytest.skip("no ld.so.cache here")
    printed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True).stdout
    told = re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", printed, re.MULTILINE)
    found = [
        (name, path)
        for name, paths in loader.read_cache("/etc/ld.so.cache").items()
        for path in paths
    ]
    assert sorted(found) == sorted(told)


def test_a_broken_cache_is_none(tmp_path):
    path = tmp_path / "cache"
    assert loader.read_cache(str(path)) == {}
    path.write_bytes(b"glibc-ld.so.cache1.1" + b"\xff" * 40)
    assert loader.read_cache(str(path)) == {}


def test_search_order(tmp_path, no_libraries):
    by = {name: library(tmp_path / name, "liba.so") for name in ("rpath", "variable", "runpath")}
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "variable")}

    def found(environment, **folders):
        path = elf_file(tmp_path / "bin/program", ["liba.so"], **folders)
        return loader.Loader(environment).closure(str(path))[0].path

    assert found(environment, rpath=["$ORIGIN/../rpath"]) == f"{tmp_path}/bin/../rpath/liba.so"
    assert found(environment, runpath=["${ORIGIN}/../runpath"]) == str(by["variable"])
    assert found({}, runpath=[str(tmp_path / "runpath")]) == str(by["runpath"])
    # DT_RUNPATH makes the loader pass over DT_RPATH.
    assert found({}, rpath=[str(tmp_path / "rpath")], runpath=["/none"]) is None
    assert found(environment) == str(by["variable"])
    assert found({}) is None


def test_rpath_reaches_the_libraries_of_libraries_and_runpath_does_not(tmp_path, no_libraries):
    library(tmp_path / "deep", "libb.so")
    library(tmp_path / "near", "liba.so", sonames=["libb.so"])
    folders = [str(tmp_path / "near"), str(tmp_path / "deep")]

    def found(**how):
        path = elf_file(tmp_path / "program", ["liba.so"], **how)
        return {one.name: one.path for one in loader.Loader({}).closure(str(path))}

    assert found(rpath=folders)["libb.so"] == str(tmp_path / "deep/libb.so")
    assert found(runpath=folders)["libb.so"] is None
    # Nor does a DT_RPATH that stands beside a DT_RUNPATH, in the program or in the library.
    assert found(rpath=folders, runpath=folders)["libb.so"] is None
    library(tmp_path / "near", "liba.so", sonames=["libb.so"], runpath=["/none"])
    assert found(rpath=folders)["libb.so"] is None


def test_a_file_for_another_machine_is_passed_over(tmp_path, no_libraries):
    library(tmp_path / "arm", "liba.so", machine=183)
    right = library(tmp_path / "x86", "liba.so")
    path = elf_file(tmp_path / "program", ["liba.so"])
    environment = {"LD_LIBRARY_PATH": f"{tmp_path}/arm:{tmp_path}/x86"}
    assert loader.Loader(environment).closure(str(path))[0].path == str(right)


def test_libraries_that_need_each_other(tmp_path, no_libraries):
    library(tmp_path, "liba.so", sonames=["libb.so"])
    library(tmp_path, "libb.so", sonames=["liba.so"])
    path = elf_file(tmp_path / "program", ["liba.so"], rpath=["$ORIGIN"])
    assert [one.name for one in loader.Loader({}).closure(str(path))] == ["liba.so", "libb.so"]


# ---- symbols -------------------------------------------------------------------------------------


def test_defined_and_undefined(tmp_path):
    path = elf_file(tmp_path / "p", defines=["PMPI_Init", "MPI_Init"], uses=["malloc"])
    names = ("MPI_Init", "malloc", "main")
    assert elf.defined(path, names) == {"MPI_Init"}
    assert elf.undefined(path, names) == {"malloc"}
    path = elf_file(tmp_path / "q", defines=["XMPI_Init"])
    assert elf.defined(path, ("MPI_Init",)) == set()


def test_cut_off_files_are_no_error(tmp_path):
    whole = elf_file(tmp_path / "whole", ["libmpi.so.40"], defines=["malloc"]).read_bytes()
    path = tmp_path / "cut"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        elf.read(path)
        elf.defined(path, ("malloc",))
        loader.Loader({}).closure(str(path))


# ---- programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("soname", "family"),
    [
        ("libmpi.so.40", "openmpi"),
        ("libmpi_mpifh.so.40", "openmpi"),
        ("libmpi_usempif08.so.40", "openmpi"),
        ("libmpi.so.12", "mpich"),
        ("libmpich.so.12", "mpich"),
        ("libmpichfort.so.12", "mpich"),
        ("libmpifort.so.12", "mpich"),
        ("libmpi_cray.so.12", "mpich"),
        ("libmpi_gnu_123.so.12", "mpich"),
        ("libmpi_abi.so.1", "standard"),
        ("libmpfr.so.6", None),
        ("libmpi_something.so", None),
        ("libm.so.6", None),
    ],
)
def test_families_of_sonames(soname, family):
    assert installations.library_family(soname) == family


def test_mpi_behind_the_programs_own_library(tmp_path, prefix, no_libraries):
    path = prefix("openmpi")
    library(path / "lib", "libmpi.so.40")
    library(tmp_path, "libsolver.so", sonames=["libmpi.so.40"], rpath=[str(path / "lib")])
    found = look(elf_file(tmp_path / "p", ["libsolver.so"], runpath=["$ORIGIN"]))
    assert found.families == {"openmpi"}
    assert found.mpi_library == (str(path / "lib/libmpi.so.40"), "what the program is linked to")
    one = installations.of_library(found.mpi_library[0])
    assert (one.family, one.launcher) == ("openmpi", str(path / "bin/mpiexec"))


def test_library_without_a_launcher(tmp_path):
    path = library(tmp_path / "lib", "libmpi_gnu_123.so.12")
    found = installations.of_library(str(path))
    assert (found.family, found.launcher, found.prefix) == ("mpich", "", str(tmp_path))


def test_two_mpis_in_one_prefix(tmp_path):
    """As Debian has them: mpiexec is one's, mpiexec.NAME each one's."""
    folder = tmp_path / "lib/x86_64-linux-gnu"
    for name in ("mpich", "openmpi"):
        write_program(tmp_path / f"bin/mpiexec.{name}")
    (tmp_path / "bin/mpiexec").symlink_to("mpiexec.mpich")
    for name in ("libmpi.so.40", "libmpich.so.12"):
        library(folder, name)
    if os.uname().machine != "x86_64":
        pytest.skip("the folder has this machine's name")
    found = installations.of_library(str(folder / "libmpi.so.40"))
    assert (found.family, os.path.basename(found.launcher)) == ("openmpi", "mpiexec.openmpi")
    found = installations.of_library(str(folder / "libmpich.so.12"))
    assert (found.family, os.path.basename(found.launcher)) == ("mpich", "mpiexec")


def test_static_mpi(tmp_path):
    assert look(elf_file(tmp_path / "p", defines=["MPI_Init", "main"])).static_mpi
    assert not look(elf_file(tmp_path / "p", uses=["MPI_Init"])).static_mpi


def test_scripts_lead_to_their_interpreter(tmp_path):
    inner = elf_file(tmp_path / "interpreter", ["libmpi.so.12"])
    outer = write_program(tmp_path / "outer", f"#!{inner} -x\n")
    script = write_program(tmp_path / "script", f"#! {outer}\n")
    found = look(script)
    assert (found.path, found.script, found.families) == (str(inner), str(script), {"mpich"})
    by_env = write_program(tmp_path / "by_env", "#!/usr/bin/env -S A=b interpreter -u\n")
    assert look(by_env, PATH=str(tmp_path)).path == str(inner)
    loop = write_program(tmp_path / "loop", f"#!{tmp_path}/loop\n")
    assert look(loop).path == str(loop)


def test_wrappers_are_looked_through(tmp_path):
    inner = elf_file(tmp_path / "inner", ["libmpi.so.12"])
    for name in ("env", "numactl"):
        write_program(tmp_path / name)
    found = look(tmp_path / "numactl", "-m", 0, tmp_path / "env", "A=b", inner, PATH=str(tmp_path))
    assert found.path == str(inner)
    assert look(inner, tmp_path / "numactl").path == str(inner)
    other = write_program(tmp_path / "other")
    assert look(other, inner).script == str(other)  # its argument is its own affair


def test_allocators_and_sanitizers(tmp_path, no_libraries):
    def made(*sonames, **more):
        return look(elf_file(tmp_path / "p", sonames, **more))

    assert made("libjemalloc.so.2").allocator == "libjemalloc.so.2"
    assert made("libtcmalloc_minimal.so.4").allocator == "libtcmalloc_minimal.so.4"
    assert "itself" in made(defines=["malloc"]).allocator
    assert made("libc.so.6", uses=["malloc"]).allocator is None
    assert made("libasan.so.8", "libubsan.so.1").sanitizer == "asan"
    assert made("libclang_rt.tsan-x86_64.so").sanitizer == "tsan"
    assert made("libubsan.so.1").sanitizer == "ubsan"
    assert made(defines=["__asan_init", "malloc"]).sanitizer == "asan"
    assert made("libc.so.6").sanitizer is None


def test_privileges(tmp_path):
    path = elf_file(tmp_path / "p")
    own = os.geteuid()
    assert program.privileges(path) is None
    path.chmod(0o4755)
    assert program.privileges(path, own) is None  # its owner gains nothing by it
    assert "setuid" in program.privileges(path, own + 1)
    assert program.privileges(tmp_path / "none") is None


# ---- mpi4py --------------------------------------------------------------------------------------


def mpi4py(tmp_path, *builds, sonames=()):
    folder = tmp_path / "site/mpi4py"
    for name in ("__init__.py", "MPI.h", "MPI.pyi"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    for name in builds:
        elf_file(folder / name, sonames, interpreter=False)
    return folder


def test_mpi4py_built_for_one_mpi(tmp_path, prefix, no_libraries):
    path = library(prefix("openmpi") / "lib", "libmpi.so.40")
    folder = mpi4py(tmp_path, "MPI.cpython-311-x86_64-linux-gnu.so", sonames=["libmpi.so.40"])
    search = loader.Loader({"LD_LIBRARY_PATH": str(path.parent)})
    found = program.mpi4py_in(str(folder), [], {}, search)
    assert found.families == ("openmpi",)
    assert found.library == str(path)


def test_mpi4py_for_several(tmp_path, prefix, no_libraries):
    folder = str(mpi4py(tmp_path, "MPI.mpich.abi3.so", "MPI.openmpi.abi3.so"))
    search = loader.Loader({})
    found = program.mpi4py_in(folder, ["/none"], {}, search)
    assert (set(found.families), found.library) == ({"mpich", "openmpi"}, None)
    found = program.mpi4py_in(folder, [], {"MPI4PY_MPIABI": "I-MPI"}, search)
    assert found.families == ("mpich",)
    path = library(prefix("openmpi") / "lib", "libmpi.so.40")
    found = program.mpi4py_in(folder, [str(path.parents[1])], {}, search)
    assert found.library == str(path)
    found = program.mpi4py_in(folder, [], {"MPI4PY_LIBMPI": f"/none:{path}"}, search)
    assert (found.library, found.reason) == (str(path), "what MPI4PY_LIBMPI names")


def test_python_is_asked_where_its_mpi4py_lies(tmp_path):
    folder = mpi4py(tmp_path, "MPI.openmpi.abi3.so")
    script = write_program(tmp_path / "script", f"#!{sys.executable}\n")
    found = look(script, PYTHONPATH=str(folder.parent))
    assert found.python
    assert found.mpi4py.folder == str(folder)
    assert found.families == {"openmpi"}


def test_a_linked_folder_of_libraries_is_its_own_prefix(prefix, tmp_path):
    """/lib is a link to /usr/lib, and the MPI's prefix is /usr."""
    path = prefix("openmpi", "usr")
    library(path / "lib", "libmpi.so.40")
    (tmp_path / "lib").symlink_to("usr/lib")
    found = installations.of_library(str(tmp_path / "lib/libmpi.so.40"))
    assert (found.prefix, found.launcher) == (str(path), str(path / "bin/mpiexec"))


def test_a_linked_folder_of_programs_is_its_own_prefix(prefix, tmp_path, monkeypatch):
    """/bin is a link to /usr/bin, and the MPI's prefix is /usr."""
    path = prefix("openmpi", "usr")
    library(path / "lib", "libmpi.so.40")
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "bin").symlink_to("usr/bin")
    found = installations.choose("system", environment={"PATH": str(tmp_path / "bin")})
    assert (found.prefix, found.launcher) == (str(path), str(path / "bin/mpiexec"))
