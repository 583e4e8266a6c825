"""Process 1 of a node, of which no namespace is needed here: what one client, or the kernel,
refuses it does not end it, nor what else it serves."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

import pytest

from ropewalk.cluster import session
from ropewalk.cluster.network import Network
from support import environment

PATIENCE = 30.0
CODE = """
import os, sys
from ropewalk.cluster import session, node
from ropewalk.cluster.network import Network
session.FOLDER = sys.argv[1]
{before}
server = {server}
print("up", flush=True)
server.serve()
"""
NODE = 'node.Node("n0")'
SWITCH = "node.Switch(Network(nodes=1), [1], [os.getppid()])"


@pytest.fixture
def serve(tmp_path):
    """serve(SERVER, PATCH): the path of its socket, and its process."""
    started = []

    def start(server=NODE, before=""):
        made = subprocess.Popen(
            [sys.executable, "-c", CODE.format(server=server, before=before), str(tmp_path)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(made)
        assert made.stdout.readline() == "up\n"
        return str(tmp_path / ("n0" if server == NODE else session.CONTROL)), made

    yield start
    for one in started:
        one.kill()
        one.wait()
        one.stdout.close()


def status(path, *words, files=(0, 1, 2)):
    command = session.Command(path, words or ["true"], os.environ, "/", files)
    try:
        command._connection.settimeout(PATIENCE)
        return command.status()
    finally:
        command.close()


def connect(path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.connect(path)
    return made


def send(path, text, count=4):
    """A request whose text is made up; what is answered until the other side closes."""
    memory = os.memfd_create("request")
    os.write(memory, text)
    with connect(path) as connection:
        connection.settimeout(PATIENCE)
        socket.send_fds(connection, [b"R"], [memory, *[0, 1, 2, 0, 0, 0][: count - 1]])
        os.close(memory)
        return connection.recv(4096)


def test_a_client_that_stops_before_it_sends_keeps_nobody_waiting(serve):
    path, _ = serve()
    with connect(path):
        assert status(path, "sh", "-c", "exit 3") == 3


def test_a_client_that_leaves_before_it_sends(serve):
    path, _ = serve()
    connect(path).close()
    assert status(path) == 0


@pytest.mark.parametrize(
    "text",
    [b"", b"no JSON", b"\xff", b"[1]", b"{}", b'{"own_group": 0}', b"[" * 100000],
)
def test_a_request_that_is_none(serve, text):
    path, _ = serve()
    assert send(path, text) in (b"", b"126\n")
    assert status(path) == 0


def test_a_request_without_files(serve):
    path, _ = serve()
    with connect(path) as connection:
        connection.sendall(b"R")
        assert connection.recv(1) == b""
    assert status(path) == 0


def test_a_request_that_is_a_pipe_is_not_waited_for(serve):
    path, _ = serve()
    reader, writer = os.pipe()
    with connect(path) as connection:
        socket.send_fds(connection, [b"R"], [reader])
        assert connection.recv(1) == b""
    os.close(reader)
    os.close(writer)
    assert status(path) == 0


def test_what_no_process_can_be_made_for(serve, tmp_path):
    before = """
forks = iter([BlockingIOError(11, "Resource temporarily unavailable")])
fork = os.fork
def refused():
    for error in forks: raise error
    return fork()
os.fork = refused
"""
    path, _ = serve(before=before)
    with open(tmp_path / "error", "w+b") as file:
        assert status(path, files=(0, 1, file.fileno())) == 126
        file.seek(0)
        assert b"n0: no process for it: Resource temporarily unavailable" in file.read()
    assert status(path) == 0


@pytest.mark.parametrize("free", [0, 1, 2, 3, 4])
def test_files_run_out(serve, free):
    """For the connection, or for one of the files that come through it."""
    path, process = serve()
    used = len(os.listdir(f"/proc/{process.pid}/fd"))
    most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + free, most))
    command = session.Command(path, ["true"], os.environ, "/")
    if free:  # it is accepted, and told at once
        assert command.status() == 255
    else:
        time.sleep(0.1)  # it is asked again and again
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most, most))
    assert command.status() in (0, 255)
    command.close()
    assert status(path) == 0


def test_a_signal_that_is_none(serve):
    path, process = serve()
    for word in ("nonsense", "99", "9" * 30):
        command = session.Command(path, ["sleep", "1000"], os.environ, "/", own_group=True)
        command.signal(word)
        if word.startswith("9"):
            command.signal(signal.SIGKILL)
        # What says nothing that can be understood is taken for a client that leaves.
        assert command.status() == (137 if word.startswith("9") else 255)
        command.close()
        end = time.monotonic() + PATIENCE
        while (children := _children(process.pid)) and time.monotonic() < end:
            time.sleep(0.01)
        assert not children
    assert status(path) == 0


def test_a_signal_to_what_is_ending(serve):
    """Both are seen in one round: the end first, and then a word for what is no more."""
    path, process = serve()
    command = session.Command(path, ["sleep", "1000"], os.environ, "/", own_group=True)
    other = session.Command(path, ["true"], os.environ, "/")
    assert other.status() == 0
    process.send_signal(signal.SIGSTOP)
    other.close()
    for one in _children(process.pid):
        os.kill(one, signal.SIGKILL)
    command.signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    assert command.status() == 137
    command.close()
    assert status(path) == 0


def _children(process):
    names = filter(str.isdigit, os.listdir("/proc"))
    return [int(name) for name in names if _parent(name) == process]


def _parent(name):
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"do": "burn"},
        {"do": "cut"},
        {"do": "cut", "node": "n7"},
        {"do": ["cut"]},
        {"do": "serve"},
    ],
)
def test_the_switch_says_what_it_does_not_know(serve, request_):
    path, _ = serve(SWITCH)
    assert "error" in session.call(path, request_)
    assert session.call(path, {"do": "describe"})["nodes"] == list(Network(nodes=1).names)


def test_the_switch_serves_while_it_waits_for_what_commands_have_left(serve):
    path, _ = serve(SWITCH)  # not process 1 of a namespace: there are others, so it waits
    with session.send_request(path, {"do": "finish"}) as waiting:
        waiting.setblocking(False)
        assert session.call(path, {"do": "describe"})["alive"] == ["n0"]
        with pytest.raises(BlockingIOError):
            waiting.recv(1)
        waiting.settimeout(PATIENCE)
        assert json.loads(waiting.recv(64)) == {}
