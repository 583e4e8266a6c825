"""Starting for real, under a made-up launcher: status, signals, standard input, nothing left."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from conftest import real_mpis, write_program
from ropewalk import launch
from ropewalk.errors import CommandError
from support import PATIENCE, environment, run


def start(*arguments, **options):
    words = [sys.executable, "-m", "ropewalk", "run", *arguments]
    return run(words, **{"stdin": None, "timeout": PATIENCE, **options})


def begin(*arguments):
    """Starts ropewalk with a program that writes a line once it runs, and waits for that."""
    running = subprocess.Popen(
        [sys.executable, "-m", "ropewalk", "run", *map(str, arguments)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    return running, running.stdout.readline().strip()


def wait_until_gone(process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_output_and_status(prefix, tmp_path):
    program = write_program(
        tmp_path / "p", '#!/bin/sh\necho "$1" "$ROPEWALK_MPI_LIBRARY"\nexit 7\n'
    )
    path = prefix("mpich")
    done = start("-n", 2, "--mpi", path, "--", program, "--help")
    assert done.stdout == f"--help {path}/lib/libmpi.so.12\n"
    assert done.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_launcher(prefix, tmp_path, number):
    program = write_program(tmp_path / "p", "#!/bin/sh\necho $$\nexec sleep 1000\n")
    running, process = begin("--mpi", prefix("mpich"), program)
    running.send_signal(number)
    assert running.wait(PATIENCE) == 128 + number
    assert wait_until_gone(process)


def test_a_handled_signal_ends_with_the_programs_status(prefix, tmp_path):
    text = "#!/bin/sh\ntrap 'kill $!; exit 5' TERM\nsleep 1000 &\necho $$\nwait\n"
    running, _ = begin("--mpi", prefix("mpich"), write_program(tmp_path / "p", text))
    running.send_signal(signal.SIGTERM)
    assert running.wait(PATIENCE) == 5


def test_orphans_are_ended(tmp_path):
    launcher = "#!/bin/sh\nsetsid sleep 1000 >/dev/null 2>&1 &\necho $!\nexit 3\n"
    path = str(write_program(tmp_path / "launcher", launcher))
    code = (
        "import os, sys; from ropewalk import launch; launch._GRACE_SECONDS = 0.05;"
        f"sys.exit(launch.start([{path!r}], dict(os.environ)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 3
    assert not pathlib.Path(f"/proc/{done.stdout.strip()}").exists()


def test_signals_are_not_left_blocked_where_nothing_starts(monkeypatch):
    def refused():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(CommandError, match=r"no process for /bin/true.*ulimit -u"):
        launch.start(["/bin/true"], {})
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_the_launcher_ends_when_ropewalk_is_killed(prefix, tmp_path):
    program = write_program(tmp_path / "p", "#!/bin/sh\necho $$\nexec sleep 1000\n")
    running, process = begin("--mpi", prefix("mpich"), program)
    running.kill()
    running.wait(PATIENCE)
    assert wait_until_gone(process)


def test_standard_input(prefix, tmp_path):
    program = write_program(tmp_path / "p", "#!/bin/sh\nexec cat\n")
    path = prefix("mpich")
    assert start("--mpi", path, program, input="some text").stdout == "some text"
    assert start("--mpi", path, program, stdin=subprocess.DEVNULL).stdout == ""
    file = tmp_path / "input"
    file.write_text("from a file")
    with file.open() as stream:
        assert start("--mpi", path, program, stdin=stream).stdout == "from a file"


def test_closed_standard_input(prefix, tmp_path):
    program = write_program(tmp_path / "p", "#!/bin/sh\ncat; echo end\n")
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$@" <&-',
            "sh",
            sys.executable,
            "-m",
            "ropewalk",
            "run",
            "--mpi",
            str(prefix("mpich")),
            str(program),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout, done.returncode) == ("end\n", 0)


def test_starting_imports_little():
    code = (
        "import sys, ropewalk.command, ropewalk.run, ropewalk.launch;"
        "print([n for n in ('rich', 'matplotlib', 'numpy', 'subprocess') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment(), capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("path", real_mpis(), ids=lambda path: path.name)
def test_real_mpi(path, tmp_path):
    code = (
        "import ctypes, os; mpi = ctypes.CDLL(os.environ['ROPEWALK_MPI_LIBRARY'],"
        "mode=ctypes.RTLD_GLOBAL); mpi.MPI_Init(None, None);"
        f"open(f'{tmp_path}/{{os.getpid()}}', 'w').close(); mpi.MPI_Finalize()"
    )
    done = start("-n", 3, "--mpi", path, "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.iterdir())) == 3
