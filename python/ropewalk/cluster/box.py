"""A cluster in a box, from Python: several nodes with a network of known rate on this machine.

    with Box(nodes=2, rails=2, rate="1gbit") as box:
        done = box.run(["ropewalk", "run", "--", "./program"])
        box.cut("n1", rail=0)

See node.py for what runs inside.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TextIO

from .. import nested
from ..cores import Root, core_groups
from ..errors import CommandError
from ..paths import PARENT
from . import session
from .network import Network, bits_per_second, seconds

_START_SECONDS = 60.0  # a loaded machine takes its time; it is 0.2 s else
SWITCH = "ropewalk-switch"  # the name of a box's process 1
REFUSED = 77  # exit status where no box can be made, as test harnesses know it
# These variables are dropped, because a batch job is outside, and the nodes are the box's. The same
# holds for a launcher's host files, and for what a launcher has told a rank that started us.
_NOT_INSIDE = (
    *("SLURM_", "PBS_", "LSB_", "PE_", "FLUX_", "PALS_", "ALPS_", "JSM_"),
    *("HYDRA_", "PRTE_MCA_ess", "I_MPI_HYDRA_", "OMPI_MCA_plm", *nested.OF_A_RANK),
)
# Only inside a rank: there nobody can tell what the launcher has set from what the user has.
_NOT_FROM_A_RANK = (
    *("OMPI_", "PRTE_", "MPIR_CVAR_", "I_MPI_", "MPICH_"),
    *("MPI4PY_LIBMPI", "ROPEWALK_MPI_LIBRARY"),
)


class BoxError(CommandError):
    """The box cannot be made."""


class NotPermitted(BoxError):
    """The kernel, or who set up this machine, does not allow it; says what would."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=REFUSED)


def places(text: str | int, nodes: int) -> list[int]:
    """Ranks of each node: "2" for all, or "2,1,3", repeated as needed."""
    words = str(text).split(",")
    if not all(word.strip().isdigit() for word in words) or sum(map(int, words)) < 1:
        raise CommandError(
            f"--ranks-per-node: '{text}', expected a number, or one for each node, as in 2,1,3"
        )
    numbers = [int(word) for word in words]
    if len(numbers) > nodes:
        raise CommandError(
            f"--ranks-per-node: {len(numbers)} numbers for {nodes} nodes; give more --nodes"
        )
    return [numbers[node % len(numbers)] for node in range(nodes)]


def cores_of(
    nodes: int, root: Root = "/", cpus: Iterable[int] | None = None
) -> list[list[int]] | None:
    """The CPUs of each node where every node can have two cores of its own, else None: then all
    share all. Two, because a rank and its comm thread need them. A core goes to a node with all
    its hardware threads."""
    cores = core_groups(root, cpus)
    if len(cores) < 2 * nodes:
        return None
    each = len(cores) // nodes
    dealt = [cores[node * each : (node + 1) * each] for node in range(nodes)]
    return [sorted(cpu for core in own for cpu in core) for own in dealt]


class Box:
    """Made at once; gone with close(), at the end of `with`, or when this process ends, however it
    does. Make it on the thread that outlives it: the kernel takes the end of that thread for that
    of the process."""

    def __init__(
        self,
        nodes: int = 2,
        rails: int = 1,
        rate: str | float = "1gbit",
        delay: str | float | None = None,
        ranks_per_node: str | int = 1,
        mtu: int | None = None,
    ) -> None:
        options = {"mtu": mtu} if mtu else {}
        self.network = Network(
            nodes=nodes,
            rails=rails,
            rate=bits_per_second(rate) if isinstance(rate, str) else float(rate),
            delay=seconds(delay) if isinstance(delay, str) else float(delay or 0),
            **options,
        )
        self.places = places(ranks_per_node, nodes)
        self.cores = cores_of(nodes)
        self.process: int | None = None
        # The descriptor means that process, even where its number has been used again.
        self._switch: int | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._start()

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.network.names

    # ---- life ------------------------------------------------------------------------------------

    def _start(self) -> None:
        reader, writer = os.pipe()
        specification = {
            "network": self.network.__dict__,
            "places": self.places,
            "cores": self.cores,
            "parent": os.getpid(),
            "report": writer,
        }
        code = (
            "import json, sys; sys.path.insert(0, sys.argv[1]); "
            "from ropewalk.cluster.node import main; sys.exit(main(json.loads(sys.argv[2])))"
        )
        self._guard = subprocess.Popen(
            [sys.executable, "-IS", "-c", code, PARENT, json.dumps(specification)],
            stdin=subprocess.DEVNULL,
            pass_fds=[writer],
        )
        os.close(writer)
        try:
            with os.fdopen(reader) as lines:
                self._listen(lines)
        except BaseException:
            self.close()
            raise

    def _listen(self, lines: TextIO) -> None:
        until = time.monotonic() + _START_SECONDS
        while True:
            if not select.select([lines], [], [], max(0, until - time.monotonic()))[0]:
                raise BoxError(f"no box within {_START_SECONDS:.0f} s", status=1)
            # Line by line: one is written at a time, and the second waits for the first.
            for line in iter(lines.readline, ""):
                said = json.loads(line)
                if "switch" in said:
                    self.process = int(said["switch"])
                    self._switch = _descriptor(self.process)
                elif "refused" in said:
                    raise NotPermitted(_explain(said["refused"]))
                elif "error" in said:
                    raise _error(said["error"])
                else:
                    return
            raise BoxError("the box ended while it was made", status=1)

    def close(self) -> None:
        """Ends every process in the box, and the box with them."""
        if self._guard is None:
            return
        if self._switch is not None:
            try:
                signal.pidfd_send_signal(self._switch, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(self._switch)
            self._switch = None
        else:
            self._guard.kill()  # and the kernel what it has started
        self._guard.wait()
        self._guard = self.process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- commands --------------------------------------------------------------------------------

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of a command in the box."""
        return environment(
            self.process, self.network, self.places, os.environ if base is None else base
        )

    def start(
        self,
        words: Sequence[str],
        node: str = "n0",
        environment: Mapping[str, str] | None = None,
        directory: str | None = None,
        files: Sequence[int] = (0, 1, 2),
        own: bool = False,
    ) -> session.Command:
        """Starts a command on a node; returns it (session.Command). `own`: in a session of
        its own, which gets SIGHUP when this side leaves."""
        path = os.path.join(session.folder(self.process), self._checked(node))
        try:
            return session.Command(
                path, words, self.environment(environment), directory, files, own_group=own
            )
        except OSError as error:
            raise CommandError(f"--node: {node} is gone ({error.strerror})", status=1) from None

    def run(
        self,
        words: Sequence[str],
        node: str = "n0",
        timeout: float | None = None,
        environment: Mapping[str, str] | None = None,
        directory: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """As subprocess.run(capture_output=True, text=True): the command is killed after `timeout`
        seconds, and what it started on other nodes with the box only."""
        reader, writer = os.pipe()
        error_reader, error_writer = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            command = self.start(
                words, node, environment, directory, (null, writer, error_writer), own=True
            )
        finally:
            for file in (null, writer, error_writer):
                os.close(file)
        output = _read_all(command, (reader, error_reader), timeout)
        if output is None:
            command.signal(signal.SIGKILL)
            command.close()
            raise subprocess.TimeoutExpired(words, timeout or 0.0)
        status = command.status()
        command.close()
        return subprocess.CompletedProcess(words, status, *output)

    def finish(self) -> None:
        """Waits, not long, for what commands have left behind to end by itself."""
        self.ask({"do": "finish"})

    # ---- faults ----------------------------------------------------------------------------------

    def cut(self, node: str, rail: int | None = None) -> None:
        """Pulls the cable of a node's rail, or of all its rails."""
        self.ask({"do": "cut", "node": self._checked(node), "rail": self._checked_rail(rail)})

    def restore(self, node: str, rail: int | None = None) -> None:
        self.ask({"do": "restore", "node": self._checked(node), "rail": self._checked_rail(rail)})

    def kill(self, node: str) -> None:
        """Takes the power off a node: its processes are gone, and no packet says so."""
        self.ask({"do": "kill", "node": self._checked(node)})

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return ask(session.folder(self.process), request)

    def _checked(self, node: str) -> str:
        if node not in self.nodes:
            raise CommandError(f"--node: '{node}', expected one of {', '.join(self.nodes)}")
        return node

    def _checked_rail(self, rail: int | None) -> int | None:
        if rail is not None and not 0 <= rail < self.network.rails:
            raise CommandError(f"--rail: {rail}, expected 0 to {self.network.rails - 1}")
        return rail


def _descriptor(process: int) -> int | None:
    """Of a process; None where it has ended, or the kernel has none (before Linux 5.3)."""
    try:
        return os.pidfd_open(process)
    except OSError:
        return None


def running() -> list[int]:
    """The boxes of this user: their process ids."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/comm", encoding="utf-8") as file:
                if file.read().strip() != SWITCH:
                    continue
            if os.path.exists(os.path.join(session.folder(int(name)), session.CONTROL)):
                found.append(int(name))
        except OSError:
            continue
    return found


def ask(folder: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """One question to the switch of a box."""
    try:
        answer = session.call(os.path.join(folder, session.CONTROL), dict(request))
    except OSError as error:
        raise CommandError(f"no box there: {error.strerror}", status=1) from None
    if "error" in answer:
        raise CommandError(answer["error"], status=1)
    return answer


def environment(
    process: int | str | None, network: Network, places: Sequence[int], base: Mapping[str, str]
) -> dict[str, str]:
    """The base without what belongs to a job outside, and with what programs in the box need:
    `ssh` on PATH reaches the nodes, so every launcher does."""
    kept = _outside_of_jobs(base)
    programs = os.path.join(session.FOLDER, "bin")
    agent = os.path.join(programs, "ssh")
    found = {
        "ROPEWALK_BOX": str(process),
        "ROPEWALK_BOX_NODES": ",".join(
            f"{name}:{count}" for name, count in zip(network.names, places, strict=True)
        ),
        "ROPEWALK_BOX_CORES": "own" if cores_of(network.nodes) else "shared",
        "ROPEWALK_BOX_RAILS": ",".join(network.interfaces),
        "ROPEWALK_LINE_RATE": f"{network.line_rate_mb:g}",
        "PATH": f"{programs}:{kept.get('PATH', os.defpath)}",
        "TMPDIR": "/dev/shm/tmp",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": agent,
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": agent,
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_agent": agent,
        "OMPI_MCA_plm_rsh_agent": agent,
    }
    return {**kept, **found}


def _outside_of_jobs(base: Mapping[str, str]) -> dict[str, str]:
    """An environment without what belongs to a job, and what an outer `ropewalk run` has set."""
    # A shell of `srun --pty` has a rank's number, but what it says of MPI is the user's.
    rank = nested.is_rank(base) and "SLURM_PTY_PORT" not in base
    strange = _NOT_INSIDE + (_NOT_FROM_A_RANK if rank else ())
    base = nested.outer(base)
    return {name: value for name, value in base.items() if not name.startswith(strange)}


def _read_all(
    command: session.Command, readers: Sequence[int], timeout: float | None
) -> tuple[str, ...] | None:
    """What was written to pipes until all that may write have ended; None after `timeout`."""
    until = None if timeout is None else time.monotonic() + timeout
    found = dict.fromkeys(readers, b"")
    open_readers = set(readers)
    try:
        while open_readers:
            left = None if until is None else max(0, until - time.monotonic())
            ready = select.select(list(open_readers), [], [], left)[0]
            if not ready:
                return None
            for reader in ready:
                data = os.read(reader, 1 << 16)
                found[reader] += data
                if not data:
                    open_readers.discard(reader)
    finally:
        for reader in readers:
            os.close(reader)
    return tuple(found[reader].decode(errors="replace") for reader in readers)


def _error(text: str) -> BoxError:
    if "mount" in text or "unshare" in text or "namespaces" in text:
        return NotPermitted(_explain(text))
    return BoxError(text, status=1)


def _explain(reason: str) -> str:
    """One sentence: what was refused, and what would allow it."""
    remedy = "an administrator may allow it with `sysctl user.max_user_namespaces=10000`"
    for name, value in (
        ("kernel.unprivileged_userns_clone", 1),
        ("kernel.apparmor_restrict_unprivileged_userns", 0),
    ):
        try:
            with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as file:
                if file.read().strip() != str(value):
                    remedy = f"an administrator may allow it with `sysctl {name}={value}`"
        except OSError:
            continue
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        remedy = "start this container with --privileged"
    return (
        f"no box here: it takes root, or user namespaces for ordinary users, and the kernel said: "
        f"{reason}; {remedy}"
    )


def refusal() -> str | None:
    """Why no box can be made here; None where one can. Tries it, with one node and no rate."""
    try:
        Box(nodes=1).close()
    except CommandError as error:
        return str(error)
    return None
