"""What runs inside a box: the switch, and one process a node that starts commands there.

    caller - guard - switch (process 1 of the box) - node (process 1 of its node) - commands

Nothing is named and nothing is in a file system outside: namespaces, interfaces and mounts vanish
with their last process. When the caller dies, by whatever signal, the kernel kills the guard and
then the switch (PR_SET_PDEATHSIG), and with process 1 of a namespace all others in it.

Started as a process of its own (`python -IS`), so that no thread and no memory of the caller is
copied; imports only what that takes.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from ..errors import CommandError
from ..paths import PARENT
from . import session, spaces
from .network import Network
from .server import Node, Server

TYPE_CHECKING = False  # as in session.py
if TYPE_CHECKING:
    from .session import Request

_GRACE_SECONDS = 2.0  # for what a command has left, once it has ended
_LOOK_SECONDS = 0.002  # between two looks at it


def batch(program: str, lines: Iterable[str]) -> None:
    """Hands lines to `ip -batch` or `tc -batch`."""
    lines = list(lines)
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise CommandError(f"{program}: not found; install the package iproute2")
    done = subprocess.run(
        [path, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True
    )
    if done.returncode:
        raise CommandError(_explain(program, lines, done.stderr))


def _explain(program: str, lines: Iterable[str], errors: str) -> str:
    text = " ".join(errors.split())
    if "netem" in "".join(lines) and "kind is unknown" in text:
        return (
            "--delay: this kernel cannot delay packets (no netem: CONFIG_NET_SCH_NETEM); leave "
            "--delay out"
        )
    if "kind is unknown" in text:
        return "this kernel cannot shape a link (no tbf: CONFIG_NET_SCH_TBF)"
    return f"{program}: {text}"


# ---- serving -------------------------------------------------------------------------------------


class Switch(Server):
    """Owns the bridges and the cables, and knows the nodes."""

    def __init__(self, network: Network, places: Sequence[int], processes: Sequence[int]) -> None:
        super().__init__(session.CONTROL)
        self._network = network
        self._places = places
        self._nodes = dict(zip(network.names, processes, strict=True))
        # Each entry is (connection, until), and waits for what commands have left.
        self._finishing: list[tuple[socket.socket, float]] = []

    def take(self, connection: socket.socket, request: Request, files: Sequence[int]) -> None:
        if request.get("do") == "finish":
            self._finishing.append((connection, time.monotonic() + _GRACE_SECONDS))
            return
        try:
            answer = self._do(request)
        except Exception as error:
            answer = {"error": str(error)}
        _answer(connection, answer)

    def _do(self, request: Request) -> Request:
        verbs = {
            "cut": self._cut,
            "restore": self._restore,
            "kill": self._kill,
            "describe": self._describe,
        }
        if request.get("do") not in verbs:
            raise CommandError(f"do: '{request.get('do')}', expected finish, {', '.join(verbs)}")
        if request.get("node", self._network.names[0]) not in self._network.names:
            raise CommandError(
                f"node '{request['node']}', expected one of {', '.join(self._network.names)}"
            )
        return verbs[request["do"]](request)

    def _link(self, request: Request, state: str) -> Request:
        node = self._network.names.index(request["node"])
        if request["node"] in self._nodes:
            batch("ip", self._network.link_state(node, request.get("rail"), state))
        return {}

    def _cut(self, request: Request) -> Request:
        return self._link(request, "down")

    def _restore(self, request: Request) -> Request:
        return self._link(request, "up")

    def _kill(self, request: Request) -> Request:
        """As a node that loses its power: no packet says that its connections have ended."""
        self._link({**request, "rail": None}, "down")
        process = self._nodes.pop(request["node"], None)
        if process is not None:
            os.kill(process, signal.SIGKILL)
            os.unlink(os.path.join(session.FOLDER, request["node"]))
        return {}

    def _describe(self, request: Request) -> Request:
        return {
            "nodes": list(self._network.names),
            "alive": list(self._nodes),
            "network": self._network.__dict__,
            "places": self._places,
        }

    def patience(self) -> float | None:
        return _LOOK_SECONDS if self._finishing else None

    def look(self) -> None:
        """Time for what a command has left to end by itself. Cables may be cut meanwhile."""
        if not self._finishing:
            return
        alone = not _processes() - {"1", *map(str, self._nodes.values())}
        now, waiting = time.monotonic(), []
        for connection, until in self._finishing:
            if alone or now > until:
                _answer(connection, {})
            else:
                waiting.append((connection, until))
        self._finishing = waiting

    def ended(self, process: int, status: int) -> None:
        for name, node in list(self._nodes.items()):
            if node == process:
                del self._nodes[name]


def _answer(connection: socket.socket, answer: Request) -> None:
    try:
        connection.sendall((json.dumps(answer) + "\n").encode())
    except OSError:
        pass
    connection.close()


def _processes() -> set[str]:
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] != b"Z":
                    found.add(name)
        except OSError:
            continue
    return found


# ---- making a box --------------------------------------------------------------------------------


def _write_files(network: Network) -> None:
    """What all nodes share: their names, and `ssh`."""
    hosts = os.path.join(session.FOLDER, "hosts")
    with open(hosts, "w", encoding="ascii") as file:
        file.write(network.hosts())
    if os.path.exists("/etc/hosts"):
        spaces.mount(hosts, "/etc/hosts", flags=spaces.MS_BIND)
    programs = os.path.join(session.FOLDER, "bin")
    os.mkdir(programs)
    code = (
        f"import sys; sys.path.insert(0, {PARENT!r}); "
        "from ropewalk.cluster.session import ssh; sys.exit(ssh(sys.argv[1:]))"
    )
    quoted = [one.replace("'", "'\\''") for one in (sys.executable, code)]
    for name in ("ssh", "rsh"):
        path = os.path.join(programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec '{quoted[0]}' -IS -c '{quoted[1]}' \"$@\"\n")
        os.chmod(path, 0o755)


def _start_node(
    network: Network, node: int, cores: Sequence[int] | None, inherited: Iterable[int]
) -> tuple[int, int]:
    """(file, file): where the node's process 1 tells its number, and where it waits for its
    cables. `inherited`: files of the switch that are none of the node's."""
    ready, cables = os.pipe(), os.pipe()
    helper = os.fork()
    if helper == 0:
        try:
            for file in (ready[0], cables[1], *inherited):
                os.close(file)
            spaces.separate()
            process = os.fork()
            if process == 0:
                _run_node(network, node, cores, ready[1], cables[0])
            os.write(ready[1], f"{process}\n".encode())
        except BaseException as error:
            os.write(ready[1], f"{error}\n".encode())
        finally:
            os._exit(0)
    os.close(ready[1])
    os.close(cables[0])
    os.waitpid(helper, 0)
    return ready[0], cables[1]


def _start_nodes(
    network: Network, cores: Sequence[Sequence[int] | None], report: int
) -> list[tuple[int, int]]:
    """[(file, file)] of all nodes."""
    files: list[tuple[int, int]] = []
    for node in range(network.nodes):
        inherited = [report, *(one for pair in files for one in pair)]
        files.append(_start_node(network, node, cores[node], inherited))
    return files


def _run_node(
    network: Network, node: int, cores: Sequence[int] | None, ready: int, cables: int
) -> None:
    """Process 1 of a node: never returns."""
    try:
        name = network.names[node]
        socket.sethostname(name)
        spaces.name_process(f"ropewalk-{name}")
        spaces.fresh_mounts(first=False, share=1 / network.nodes)
        os.mkdir("/dev/shm/tmp", 0o1777)
        if cores:
            os.sched_setaffinity(0, cores)
        server = Node(name)
        if not os.read(cables, 1):
            os._exit(1)
        batch("ip", network.node_links(node))
        batch("tc", network.node_shapes())
        _tune_tcp()
    except BaseException as error:
        os.write(ready, f"{error}\n".encode())
        os._exit(1)
    _serve(server, ready, b"ready\n", [cables])


def _serve(server: Server, ready: int, text: bytes, others: Iterable[int]) -> None:
    """Tells that all is there, and serves: never returns. What goes wrong from here on has no pipe
    to be told on: its number may be that of another file by then."""
    try:
        os.write(ready, text)
        for file in (ready, *others):
            os.close(file)
        server.serve()
    finally:
        os._exit(1)


# This is the buffer of a socket below TCP, an adapter's ring. The kernel's 4 MiB would let a small
# message, or a packet that only acknowledges, wait 30 ms behind a large one on a link of 1 Gbit/s.
_OUTPUT_BYTES = 131072


def _tune_tcp() -> None:
    """As a cluster has it, whatever the machine has for its way to the Internet."""
    folder = "/proc/sys/net/ipv4/"
    for name, values in (
        ("tcp_congestion_control", ("cubic", "reno")),  # cubic may not be there for namespaces
        ("tcp_limit_output_bytes", (str(_OUTPUT_BYTES),)),
    ):
        for value in values:
            try:
                with open(folder + name, "w", encoding="ascii") as file:
                    file.write(value)
                break
            except OSError:
                continue


def _run_switch(specification: Request, report: int) -> None:
    """Process 1 of the box: never returns."""
    try:
        network = Network(**specification["network"])
        spaces.name_process("ropewalk-switch")
        spaces.fresh_mounts(first=True)
        _write_files(network)
        cores = specification.get("cores") or [None] * network.nodes
        processes = _wire(network, _start_nodes(network, cores, report))
        switch = Switch(network, specification["places"], processes)
    except BaseException as error:
        os.write(report, (json.dumps({"error": str(error)}) + "\n").encode())
        os._exit(1)
    _serve(switch, report, b'{"ready": true}\n', [])


def _wire(network: Network, files: Sequence[tuple[int, int]]) -> list[int]:
    """Plugs the cables in, and waits for the nodes; their process numbers."""
    readers = [os.fdopen(ready) for ready, _ in files]
    processes = [_number(reader.readline()) for reader in readers]
    batch("ip", network.switch_links(processes))
    batch("tc", network.switch_shapes())
    for _, cables in files:
        os.write(cables, b"1")
        os.close(cables)
    for reader in readers:
        text = reader.readline().strip()
        if text != "ready":
            raise CommandError(text)
        reader.close()
    return processes


def _number(text: str) -> int:
    if not text.strip().isdigit():
        raise CommandError(text.strip() or "a node did not start")
    return int(text)


def main(specification: Request) -> int:
    """The guard: makes the box and waits for its end. Tells on `report` the process id of the
    switch, then whether all is there."""
    spaces.die_with(specification["parent"])
    _open_standard_streams()
    report = specification["report"]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    try:
        spaces.isolate()
    except OSError as error:
        os.write(report, (json.dumps({"refused": str(error)}) + "\n").encode())
        return 1
    spaces.die_with(specification["parent"])  # unshare may have cleared it
    lives, keep = os.pipe()
    switch = os.fork()
    if switch == 0:
        os.close(keep)
        spaces.die_with_parent()
        if select.select([lives], [], [], 0)[0]:  # the guard died before
            os._exit(1)
        os.close(lives)
        _run_switch(specification, report)
    os.write(report, (json.dumps({"switch": switch}) + "\n").encode())
    os.close(report)
    os.close(lives)
    os.waitpid(switch, 0)
    return 0


def _open_standard_streams() -> None:
    """Where the caller has closed one, another file would come to have its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
