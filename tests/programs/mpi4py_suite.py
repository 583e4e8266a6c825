"""mpi4py's own test suite under the drop-in and without it: the same tests pass, fail and skip.

The suite comes from the source archive on PyPI, in the version that is installed, and is run as it
is. Tests that fail in every run without the drop-in belong to this machine and MPI, and must fail
with it, too; tests whose outcome varies without it are named and compared no further.
"""

import collections
import pathlib
import subprocess
import tarfile
import tempfile

import launching

# These modules have what the drop-in intercepts; the rest of the suite is left to the full run.
SHORT = (
    "test_cco",
    "test_comm",
    "test_mpimem",
    "test_win",
    "test_rma",
    "test_attributes",
    "test_errhandler",
    "test_op",
)


def archive():
    """The folder of the unpacked tests."""
    version = subprocess.run(
        [launching.python(), "-c", "import mpi4py; print(mpi4py.__version__)"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    if not version:
        raise launching.Skip("mpi4py is not installed in .venv")
    home = launching.ROOT / ".cache" / "mpi4py"
    tests = home / f"mpi4py-{version}" / "test"
    if not tests.is_dir():
        _download(home, version)
    return tests


def _download(home, version):
    home.mkdir(parents=True, exist_ok=True)
    options = ["-qq", "--no-deps", "--no-binary", "mpi4py", "-d", str(home)]
    fetched = subprocess.run(
        [launching.python(), "-m", "pip", "download", *options, f"mpi4py=={version}"],
        capture_output=True,
        text=True,
    )
    found = list(home.glob(f"mpi4py-{version}.tar.gz"))
    if not found:
        why = fetched.stderr.strip()[-200:]
        raise launching.Skip(f"cannot download mpi4py {version}: {why}")
    with tarfile.open(found[0]) as file:
        file.extractall(home)


def run(mpi, ranks, preload, modules=(), timeout=600, extra=()):
    """Outcome of each test, as {(rank, test): outcome}, and of the job."""
    tests = archive()
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record"
        chosen = [word for module in modules for word in ("-i", f"{module}")]
        program = [launching.python(), str(pathlib.Path(__file__).with_name("mpi4py_rank.py"))]
        program += [str(tests), str(record), "-q", *chosen, *extra]
        library = {"MPI4PY_LIBMPI": mpi.library} if mpi.library else {}
        outcome = launching.start(mpi, ranks, program, preload, library, timeout, tests.parent)
        results = {}
        for rank in range(ranks):
            results.update(_read(pathlib.Path(f"{record}.{rank}"), rank))
    return results, outcome


def _read(path, rank):
    """The last line of a test counts; one that was begun and has no other line ended the rank."""
    if not path.exists():
        return {(rank, "(start)"): "no record"}
    lines = [line.split("\t", 1) for line in path.read_text().splitlines() if "\t" in line]
    results = {}
    for outcome, test in lines:
        if results.get((rank, test)) not in ("failed", "error"):
            results[rank, test] = outcome
    return results


def counts(results):
    return collections.Counter(results.values())


def differences(plain, dropin):
    """[(rank, test, plainly, under the drop-in)]"""
    keys = sorted(set(plain) | set(dropin))
    return [
        (*key, plain.get(key, "missing"), dropin.get(key, "missing"))
        for key in keys
        if plain.get(key) != dropin.get(key)
    ]
