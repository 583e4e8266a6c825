"""The wheel that `scripts/wheel` makes, installed as a user does, in an environment of its own.

Without that wheel these tests are skipped: making it takes minutes. CI makes it.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import ropewalk
from conftest import real_mpis

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "build/wheels").glob(f"ropewalk-{ropewalk.__version__}-*manylinux*.whl"))
pytestmark = pytest.mark.skipif(not WHEELS, reason="no wheel: `scripts/wheel` makes it")
# Everything a user's command line may find, and no compiler.
TOOLS = ("sh", "env", "uname", "cat", "sed", "grep", "ldd", "hostname", "rm", "mkdir", "dirname")
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "cmake", "ninja", "make", "ld", "as")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A virtual environment with the wheel, and what the wheel asks for taken from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--no-index"]
    subprocess.run([*pip, "--no-deps", WHEELS[-1]], check=True)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    borrow(pathlib.Path(site))
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    return folder


def borrow(site):
    """NumPy, mpi4py and PyTorch of the environment that runs the tests; its ropewalk stays out."""
    taken = site.parent / "borrowed"
    taken.mkdir()
    for path in pathlib.Path(importlib.util.find_spec("numpy").origin).parents[1].iterdir():
        if "ropewalk" not in path.name:
            (taken / path.name).symlink_to(path)
    (site / "borrowed.pth").write_text(f"{taken}\n")


def run(installed, *command, compilers=False, **options):
    """A command in that environment, with no compiler on the path unless it is asked for."""
    path = f"{installed}/venv/bin:{installed}/tools"
    env = {"PATH": f"{path}:{os.environ['PATH']}" if compilers else path, "HOME": str(installed)}
    done = subprocess.run(
        [*map(str, command)],
        cwd=installed,
        env={**env, "OMPI_MCA_btl": "^ofi"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_path_has_no_compiler(installed):
    path = f"{installed}/venv/bin:{installed}/tools"
    assert not any(shutil.which(name, path=path) for name in COMPILERS)


def test_it_is_the_version_of_this_tree(installed):
    assert run(installed, "ropewalk", "--version") == f"ropewalk {ropewalk.__version__}\n"
    prefix = run(installed, "ropewalk", "--prefix").strip()
    assert pathlib.Path(prefix).is_relative_to(installed)


def test_it_holds_no_part_of_the_machine_that_made_it():
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        for name in wheel.namelist():
            if name.endswith((".cmake", ".pc", ".py")):
                assert str(ROOT) not in wheel.read(name).decode(), name


@pytest.mark.parametrize("mpi", real_mpis(), ids=lambda path: path.name)
def test_the_drop_in_serves_mpi4py(installed, mpi):
    (installed / "sum.py").write_text(
        "from mpi4py import MPI\nimport numpy as np\nfor _ in range(100):\n"
        "    x = np.arange(1000.0)\n    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, x)\n"
        "    assert (x == 2 * np.arange(1000)).all()\n"
    )
    told = run(installed, "ropewalk", "run", "-n", 2, "--mpi", mpi, "--stats", "python", "sum.py")
    rows = [line for line in told.splitlines() if "Allreduce" in line]
    assert any("MPI:" not in row for row in rows), told  # MPI may take the first ones


@pytest.mark.parametrize("mpi", real_mpis(), ids=lambda path: path.name)
def test_examples_of_numpy(installed, mpi):
    for name in ("halo.py", "heat2d.py"):
        example = ROOT / "examples" / name
        run(installed, "ropewalk", "run", "-n", 2, "--mpi", mpi, "python", example)


def test_benches(installed):
    mpi = real_mpis()[0]
    told = run(installed, "ropewalk", "bench", "memory", "--quick", "--time", "1", "--mpi", mpi)
    assert "verified" in told


def test_every_library_is_found(installed):
    """Of those that the programs need, too, which auditwheel does not look at."""
    prefix = pathlib.Path(run(installed, "ropewalk", "--prefix").strip())
    files = [*prefix.glob("lib/*.so*"), *prefix.glob("libexec/*"), *prefix.glob("_core*.so")]
    assert len(files) > 10
    allowed = r"(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s|ld-linux-[\w-]+)\.so\.\d+"
    for file in files:
        if file.read_bytes()[:4] != b"\x7fELF":
            continue
        told = subprocess.run(["readelf", "-d", file], capture_output=True, text=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", told):
            assert re.fullmatch(allowed, name) or (prefix / "lib" / name).exists(), (file, name)


def test_a_consumer_compiles(installed):
    if not shutil.which("cmake"):
        pytest.skip("needs cmake")
    prefix = run(installed, "ropewalk", "--prefix").strip()
    build = installed / "consumer"
    source = ROOT / "tests/install/consumer"
    configure = ["cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"]
    run(installed, *configure, compilers=True)
    run(installed, "cmake", "--build", build, compilers=True)
    for program in ("shared", "from-c"):
        assert run(installed, build / program) == f"{ropewalk.__version__}\n"
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lropewalk", f"-Wl,-rpath,{prefix}/lib"]
    run(installed, "cc", source / "consumer.c", "-o", "by-hand", *flags, compilers=True)
    assert run(installed, installed / "by-hand") == f"{ropewalk.__version__}\n"


def test_the_backend_of_pytorch(installed):
    pytest.importorskip("torch")
    (installed / "ddp.py").write_text(
        "import torch, torch.distributed as dist\ndist.init_process_group('ropewalk')\n"
        "x = torch.ones(1000)\ndist.all_reduce(x)\nassert (x == 2).all()\n"
        "dist.destroy_process_group()\n"
    )
    run(installed, "python", "-m", "torch.distributed.run", "--nproc-per-node", 2, "ddp.py")
