"""What several test modules use: starting the package under test, and ranks of it."""

import os
import pathlib
import subprocess
import sys

import pytest

import ropewalk
from conftest import real_mpis
from ropewalk import command

# Where the package under test was imported from, for the processes started here.
PACKAGES = str(pathlib.Path(ropewalk.__file__).absolute().parents[1])
PATIENCE = 30.0  # seconds until a test that waits for something gives up


def environment():
    return {**os.environ, "PYTHONPATH": PACKAGES}


# What Open MPI 5.0.11's launcher says once in some thousand starts, before it has started a rank.
_LAUNCHER_FAILED = "PMIx server's listener thread failed to start"


def run(words, **options):
    """A command that may start an MPI: its output as text, with nothing to read. Started again, at
    most twice, where Open MPI's launcher has failed by itself."""
    options = {"stdin": subprocess.DEVNULL, "env": environment(), "timeout": 60, **options}
    for _ in range(3):
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
        if not (done.returncode and _LAUNCHER_FAILED in done.stdout + done.stderr):
            break
    return done


# ---- what `ropewalk run` would start -------------------------------------------------------------


def dry(capsys, *arguments):
    assert command.main(["run", "--dry-run", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def settings_of(text):
    return dict(
        line.split("#")[0].strip().split("=", 1) for line in text.splitlines() if line[:2] == "  "
    )


# ---- ranks ---------------------------------------------------------------------------------------

# Ranks tell by file: what they print may be mixed by the launcher in the middle of a line.
TELL = """
import os
def tell(text):
    with open(f"FOLDER/{os.getpid()}", "a") as file: file.write(text + "\\n")
"""


def run_ranks(path, ranks, code, folder, status=0):
    """The lines that the ranks told, and what the launcher wrote to standard error."""
    command = [sys.executable, "-m", "ropewalk", "run", "-n", ranks, "--mpi", path, "--"]
    told = folder / "told"
    told.mkdir()
    done = run([*command, sys.executable, "-c", TELL.replace("FOLDER", str(told)) + code])
    assert (done.returncode == 0) == (status == 0), done.stderr
    return [line for file in told.iterdir() for line in file.read_text().splitlines()], done.stderr


mpis = pytest.mark.parametrize(
    "path",
    real_mpis() or [pytest.param(None, marks=pytest.mark.skip(reason="set-up made no MPI"))],
    ids=lambda path: path.name if path else "none",
)


class DlpackOnly:
    """As a tensor of PyTorch: no NumPy array, but it speaks DLPack."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


# ---- benches -------------------------------------------------------------------------------------


def run_bench(*arguments):
    return run(
        [sys.executable, "-m", "ropewalk", "bench", *arguments],
        env={**environment(), "ROPEWALK_LIBEXEC": os.environ["ROPEWALK_LIBEXEC"]},
        timeout=PATIENCE,
    )
