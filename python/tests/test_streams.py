"""The command where its standard streams are closed, full or read by nobody, and Ctrl-C."""

import os
import signal
import subprocess
import sys

import pytest

from conftest import write_program
from support import PATIENCE, environment

COMMAND = [sys.executable, "-m", "ropewalk"]


def shell(redirection, *words, **options):
    """The command with a redirection of its shell, its output buffered as usual."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *map(str, words)],
        env={name: text for name, text in environment().items() if name != "PYTHONUNBUFFERED"},
        text=True,
        timeout=PATIENCE,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


PRINTING = [
    ("config",),
    ("--version",),
    ("explain", "thresholds"),
    ("completion", "fish"),
    ("doctor", "--quick", "--json"),
    ("run", "--help"),
]
named = pytest.mark.parametrize("words", PRINTING, ids=" ".join)


@named
def test_output_without_room_is_one_line_and_a_failure(words):
    done = shell(">/dev/full", *words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "standard output: No space left on device; write it elsewhere"
    )
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@named
def test_output_that_nobody_reads_is_no_failure(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = shell("", *words, stdout=writer)
    os.close(writer)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_dry_run_without_room(prefix, program):
    done = shell(">/dev/full", "run", "--dry-run", "--mpi", prefix("mpich"), program)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_are_as_dev_null(prefix, tmp_path, redirection):
    program = write_program(
        tmp_path / "program", f"#!/bin/sh\nls -l /proc/$$/fd >{tmp_path}/open\nexit 7\n"
    )
    for words in (["config"], ["--version"]):
        done = shell(redirection, *words)
        assert (done.returncode, done.stderr) == (0, "")
    done = shell(redirection, "run", "--no-preload", "--mpi", prefix("mpich"), program)
    assert (done.returncode, done.stderr) == (7, "")
    assert (tmp_path / "open").read_text().count("/dev/null") >= redirection.count("-")


def test_an_interruption_ends_it_as_the_signal_does():
    script = (
        "import signal; from ropewalk import command, config\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run without it\n"
        "config.main = lambda words: signal.raise_signal(signal.SIGINT)\n"
        "command.main(['config'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
