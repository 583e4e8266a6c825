"""Standard streams of commands in a box, and a box that has ended before it is closed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ropewalk.cluster import box as boxes
from ropewalk.cluster.box import Box

PATIENCE = 60.0
AT_ONCE = 8


@pytest.fixture(scope="module")
def box():
    try:
        made = Box(nodes=4)
    except boxes.NotPermitted as refused:
        pytest.skip(str(refused))
    with made:
        yield made


def run_all(box, node, count):
    """What `count` commands under way at once wrote to their standard output and error; each reads
    a line of its own first, which it gets when all have been started."""
    words = ["sh", "-c", 'read line; echo "out $line"; echo "err $line" >&2']
    running = []
    for _ in range(count):
        pipes = [os.pipe() for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        running.append((box.start(words, node, files=theirs), pipes))
        for file in theirs:
            os.close(file)
    for at, (_, pipes) in enumerate(running):
        os.write(pipes[0][1], f"{at}\n".encode())
        os.close(pipes[0][1])
    found = []
    for command, pipes in running:
        found.append(boxes._read_all(command, (pipes[1][0], pipes[2][0]), PATIENCE))
        assert command.status() == 0
        command.close()
    return found


@pytest.mark.parametrize("node", ["n0", "n1", "n2", "n3"])
@pytest.mark.parametrize("count", [1, AT_ONCE])
def test_standard_streams(box, node, count):
    expected = [(f"out {at}\n", f"err {at}\n") for at in range(count)]
    assert run_all(box, node, count) == expected


def test_an_input_is_never_written_to(box, tmp_path):
    """Standard input opened for both, as a terminal is: errors went into it."""
    file = tmp_path / "input"
    file.write_text("text\n")
    with file.open("r+b") as stream, open(os.devnull, "wb") as null:
        for node in box.nodes:
            stream.seek(0)
            command = box.start(
                ["sh", "-c", "read line; echo no >&2"],
                node,
                files=(stream.fileno(), null.fileno(), null.fileno()),
            )
            command.status()
            command.close()
    assert file.read_text() == "text\n"


def test_commands_inherit_nothing_else(box):
    for node in box.nodes:
        done = box.run(
            [sys.executable, "-c", "import os; print(os.listdir('/proc/self/fd'))"], node
        )
        assert done.stdout == "['0', '1', '2', '3']\n"  # the last one is the folder's


def test_nodes_hold_no_files_of_others(box):
    """Neither the pipe that the box reports on, nor those of the nodes made before. A node may
    still have to close the connection of the last command: its client does not wait for that."""
    counts = {}
    end = time.monotonic() + PATIENCE
    while len(counts) != 1 and time.monotonic() < end:
        counts = {len(os.listdir(f"/proc/{one}/fd")) for one in node_processes(box)}
    assert len(counts) == 1


def node_processes(box):
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/status", encoding="utf-8") as file:
                lines = dict(
                    line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line
                )
        except OSError:
            continue
        if lines["Name"].startswith("ropewalk-n") and lines["PPid"] == str(box.process):
            yield int(name)


def test_a_number_that_is_used_again_is_not_killed():
    try:
        box = Box(nodes=1)
    except boxes.NotPermitted as refused:
        pytest.skip(str(refused))
    os.kill(box.process, signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while os.path.exists(f"/proc/{box.process}") and time.monotonic() < end:
        time.sleep(0.01)
    with subprocess.Popen(["sleep", "1000"]) as innocent:
        box.process = innocent.pid  # as the kernel may give the number to anybody
        box.close()
        time.sleep(0.1)
        assert innocent.poll() is None
        innocent.kill()
