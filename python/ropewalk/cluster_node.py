"""What runs inside a box: the switch, and one process a node that starts commands there.

    caller - guard - switch (process 1 of the box) - node (process 1 of its node) - commands

Nothing is named and nothing is in a file system outside: namespaces, interfaces and mounts vanish
with their last process. When the caller dies, by whatever signal, the kernel kills the guard and
then the switch (PR_SET_PDEATHSIG), and with process 1 of a namespace all others in it.

Started as a process of its own (`python -IS`), so that no thread and no memory of the caller is
copied; imports only what that takes.
"""

import json
import os
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time

from . import cluster_session as session
from . import cluster_spaces as spaces
from .cluster_network import Network
from .errors import CommandError

_GRACE_SECONDS = 2.0  # for what a command has left, once it has ended


def batch(program, lines):
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


def _explain(program, lines, errors):
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


class Server:
    """Process 1 of a namespace: serves a socket, and reaps whatever ends."""

    def __init__(self, name):
        self.selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(os.path.join(session.FOLDER, name))
        self._listener.listen(64)
        self.selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._woken, waker = socket.socketpair()
        for one in (self._woken, waker):
            one.setblocking(False)
        self._waker = waker
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self.selector.register(self._woken, selectors.EVENT_READ, self._reap)

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                key.data()

    def _accept(self):
        connection, _ = self._listener.accept()
        request, files = session.receive_request(connection)
        try:
            if request is None:
                connection.close()
            else:
                self.take(connection, request, files)
        finally:
            for file in files:
                os.close(file)

    def _reap(self):
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            pass
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            self.ended(process, os.waitstatus_to_exitcode(status))

    def take(self, connection, request, files):
        raise NotImplementedError

    def ended(self, process, status):
        pass


class Node(Server):
    """Starts commands, passes signals to them, tells how they ended."""

    def __init__(self, name):
        super().__init__(name)
        self._running = {}  # process: (connection, whether it has a session of its own)

    def take(self, connection, request, files):
        process = os.fork()
        if process == 0:
            _become(request, files)
        self._running[process] = (connection, request["own_group"])
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._hear(process))

    def _hear(self, process):
        connection, own_group = self._running[process]
        try:
            text = connection.recv(64)
        except OSError:
            text = b""
        if text:
            for word in text.split():
                self._signal(process, int(word), False)
            return
        self.selector.unregister(connection)
        connection.close()
        self._running[process] = (None, own_group)
        self._signal(process, signal.SIGHUP, own_group)

    def _signal(self, process, number, group):
        try:
            (os.killpg if group else os.kill)(process, number)
        except ProcessLookupError:
            pass

    def ended(self, process, status):
        connection, _ = self._running.pop(process, (None, False))
        if connection is None:
            return
        self.selector.unregister(connection)
        try:
            connection.sendall(f"{status if status >= 0 else 128 - status}\n".encode())
        except OSError:
            pass
        connection.close()


def _become(request, files):
    """In the child: never returns."""
    try:
        words = request["words"]
        signal.set_wakeup_fd(-1)
        if request["own_group"]:
            os.setsid()
        files = [os.dup2(file, 16 + at) for at, file in enumerate(files)]
        for at, file in enumerate(files):
            os.dup2(file, at)
        os.closerange(3, 65536)
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        spaces.drop_capabilities()
        os.chdir(request["directory"])
        os.execvpe(words[0], words, request["environment"])
    except OSError as error:
        what = request["directory"] if error.filename == request["directory"] else words[0]
        os.write(2, f"ropewalk cluster: {what}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)


class Switch(Server):
    """Owns the bridges and the cables, and knows the nodes."""

    def __init__(self, network, places, processes):
        super().__init__(session.CONTROL)
        self._network = network
        self._places = places
        self._nodes = dict(zip(network.names, processes, strict=True))

    def take(self, connection, request, files):
        try:
            answer = getattr(self, "do_" + request["do"])(request)
        except (CommandError, OSError) as error:
            answer = {"error": str(error)}
        try:
            connection.sendall((json.dumps(answer) + "\n").encode())
        except OSError:
            pass
        connection.close()

    def _link(self, request, state):
        node = self._network.names.index(request["node"])
        if request["node"] in self._nodes:
            batch("ip", self._network.link_state(node, request["rail"], state))
        return {}

    def do_cut(self, request):
        return self._link(request, "down")

    def do_restore(self, request):
        return self._link(request, "up")

    def do_kill(self, request):
        """As a node that loses its power: no packet says that its connections have ended."""
        self._link({**request, "rail": None}, "down")
        process = self._nodes.pop(request["node"], None)
        if process is not None:
            os.kill(process, signal.SIGKILL)
            os.unlink(os.path.join(session.FOLDER, request["node"]))
        return {}

    def do_describe(self, request):
        return {
            "nodes": list(self._network.names),
            "alive": list(self._nodes),
            "network": self._network.__dict__,
            "places": self._places,
        }

    def do_finish(self, request):
        """Time for what a command has left to end by itself."""
        own = {"1", *map(str, self._nodes.values())}
        until = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < until and _processes() - own:
            self._reap()
            time.sleep(0.002)
        return {}

    def ended(self, process, status):
        for name, node in list(self._nodes.items()):
            if node == process:
                del self._nodes[name]


def _processes():
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


def _write_files(network):
    """What all nodes share: their names, and `ssh`."""
    hosts = os.path.join(session.FOLDER, "hosts")
    with open(hosts, "w", encoding="ascii") as file:
        file.write(network.hosts())
    if os.path.exists("/etc/hosts"):
        spaces.mount(hosts, "/etc/hosts", flags=spaces.MS_BIND)
    programs = os.path.join(session.FOLDER, "bin")
    os.mkdir(programs)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = (
        f"import sys; sys.path.insert(0, {package!r}); "
        "from ropewalk.cluster_session import ssh; sys.exit(ssh(sys.argv[1:]))"
    )
    quoted = [one.replace("'", "'\\''") for one in (sys.executable, code)]
    for name in ("ssh", "rsh"):
        path = os.path.join(programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec '{quoted[0]}' -IS -c '{quoted[1]}' \"$@\"\n")
        os.chmod(path, 0o755)


def _start_node(network, node, cores):
    """(process, file): the node's process 1, and where it waits for its cables."""
    ready, cables = os.pipe(), os.pipe()
    helper = os.fork()
    if helper == 0:
        try:
            os.close(ready[0])
            os.close(cables[1])
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


def _run_node(network, node, cores, ready, cables):
    """Process 1 of a node: never returns."""
    try:
        name = network.names[node]
        socket.sethostname(name)
        spaces.name_process(f"ropewalk-{name}")
        spaces.fresh_mounts(first=False)
        os.mkdir("/dev/shm/tmp", 0o1777)
        if cores:
            os.sched_setaffinity(0, cores)
        server = Node(name)
        if not os.read(cables, 1):
            os._exit(1)
        batch("ip", network.node_links(node))
        batch("tc", network.node_shapes())
        _tune_tcp()
        os.write(ready, b"ready\n")
        os.close(ready)
        os.close(cables)
        server.serve()
    except BaseException as error:
        os.write(ready, f"{error}\n".encode())
    finally:
        os._exit(1)


# Of a socket below TCP: an adapter's ring. The kernel's 4 MiB would let a small message, or a
# packet that only acknowledges, wait 30 ms behind a large one on a link of 1 Gbit/s.
_OUTPUT_BYTES = 131072


def _tune_tcp():
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


def _run_switch(specification, report):
    """Process 1 of the box: never returns."""
    try:
        network = Network(**specification["network"])
        spaces.name_process("ropewalk-switch")
        spaces.fresh_mounts(first=True)
        _write_files(network)
        cores = specification.get("cores") or [None] * network.nodes
        files = [_start_node(network, node, cores[node]) for node in range(network.nodes)]
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
        switch = Switch(network, specification["places"], processes)
        os.write(report, b'{"ready": true}\n')
        os.close(report)
        switch.serve()
    except BaseException as error:
        os.write(report, (json.dumps({"error": str(error)}) + "\n").encode())
    finally:
        os._exit(1)


def _number(text):
    if not text.strip().isdigit():
        raise CommandError(text.strip() or "a node did not start")
    return int(text)


def main(specification):
    """The guard: makes the box and waits for its end. Tells on `report` the process id of the
    switch, then whether all is there."""
    spaces.die_with(specification["parent"])
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
