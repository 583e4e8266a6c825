"""The Python example that README.md shows runs as it stands, under the MPIs of set-up."""

import pathlib
import sys

from support import mpis, run

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@mpis
def test_halo(path):
    command = [sys.executable, "-m", "ropewalk", "run", "-n", "3", "--mpi", str(path), "--"]
    done = run([*command, sys.executable, EXAMPLES / "halo.py"])
    assert done.returncode == 0, done.stderr
