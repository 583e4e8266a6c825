"""`ropewalk cluster`: several nodes with a network of known rate, on this machine, for one command.

The box itself is box.Box; this is its command line.
"""

import argparse
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CommandError
from ..options import (
    DropInOptions,
    Parser,
    add_drop_in_options,
    add_grid_option,
    add_rank_options,
    whole_number,
    words_of,
)
from ..paths import PARENT
from . import box as boxes
from . import session
from .network import Network, bits_per_second, seconds

DESCRIPTION = """Run COMMAND on a cluster that exists for as long as it runs, on this machine: nodes
with host names, process ids, shared memory and network interfaces of their own, joined by rails
whose rate is known exactly. MPIs see separate hosts and real TCP. No root is needed, and nothing
is left afterwards, however it ends."""

NOTES = """COMMAND is started on every rank of every node, as by `ropewalk run`, some of whose
options are taken here, too. Commands that start ranks themselves (ropewalk, mpiexec, mpirun,
prterun, make, ctest) and shells run once, on the first node; --node NAME does so with any command.
There, `ssh n1` and `mpiexec -hosts n0,n1` work as on a cluster. Without COMMAND the box stays until
Ctrl-C."""

EXAMPLES = (
    ("ropewalk cluster --nodes 4 --rails 2 --rate 2gbit -- ./program", ""),
    ("ropewalk cluster --nodes 2 --ranks-per-node 2,1 --mpi openmpi -- ./program", ""),
    ("ropewalk cluster --rails 2 -- ropewalk bench comms -n 2", ""),
    ("ropewalk cluster --nodes 3 -- bash", ""),
    ("ropewalk cluster --check", "what raw TCP reaches"),
    ("ropewalk cluster --box 1234 --cut n1 --rail 0", "pulls a cable of a box that runs"),
    ("ropewalk cluster --box 1234 --node n2 -- hostname", ""),
)

STATUSES = (
    ("N", "that of COMMAND"),
    ("2", "the command line was wrong"),
    (str(boxes.REFUSED), "no box can be made here; what would allow it is said"),
)

_ONCE = ("ropewalk", "mpiexec", "mpiexec.hydra", "mpirun", "prterun", "orterun", "make", "ctest")
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh")
_PASSED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_PATIENCE_SECONDS = 10  # from the first signal that should end the command until the box ends
_INTERRUPTS = 3  # so many Ctrl-C mean the same; a program may have its own idea of one
_SI_KERNEL = 0x80  # sent by the kernel, as the terminal's Ctrl-C is: the command got it, too


@dataclass
class ClusterOptions(DropInOptions):
    """The options of `ropewalk cluster`."""

    nodes: int = 2
    rails: int = 1
    rate: str = "1gbit"
    delay: str | None = None
    mtu: int | None = None
    ranks_per_node: str = "1"
    node: str | None = None
    check: bool = False
    dry_run: bool = False
    box: str | None = None
    cut: str | None = None
    restore: str | None = None
    kill: str | None = None
    rail: int | None = None
    command: list[str] = field(default_factory=list)


def parser() -> Parser:
    made = Parser(
        "ropewalk cluster",
        DESCRIPTION,
        "ropewalk cluster [options] [--] [COMMAND [argument ...]]",
        notes=NOTES,
        examples=EXAMPLES,
        statuses=STATUSES,
    )
    _add_box_options(made)
    others = made.add_argument_group("a box that runs")
    others.add_argument(
        "--box", metavar="PID", help="the box, by its ROPEWALK_BOX; default inside a box: that one"
    )
    for verb, text in (
        ("cut", "pull the cables of a node, or one with --rail"),
        ("restore", "put them back"),
        ("kill", "take the power off a node"),
    ):
        others.add_argument(f"--{verb}", metavar="NODE", help=text)
    others.add_argument(
        "--rail",
        type=whole_number,
        metavar="R",
        help="number of the rail to change, from 0; default: all",
    )
    _add_run_options(made)
    made.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def _add_box_options(made: Parser) -> None:
    box = made.add_argument_group("the box")
    box.add_argument(
        "--nodes",
        type=whole_number,
        metavar="N",
        help="number of nodes, which are named n0, n1, ...; default: 2",
    )
    box.add_argument(
        "--rails",
        type=whole_number,
        metavar="R",
        help="number of networks between the nodes; default: 1",
    )
    box.add_argument("--rate", help="rate of a rail, each way, as 500mbit or 2gbit; default: 1gbit")
    box.add_argument(
        "--delay", help="delay of a packet, one way, as 20us; the kernel must have netem"
    )
    box.add_argument(
        "--mtu",
        type=whole_number,
        metavar="BYTES",
        help="size of the largest packet; default: 9000",
    )
    box.add_argument(
        "--ranks-per-node",
        metavar="K[,K...]",
        help="number of ranks on each node, or one number for each node; default: 1",
    )
    box.add_argument("--node", metavar="NAME", help="run COMMAND once, on this node")
    box.add_argument("--check", action="store_true", help="measure raw TCP over the rails")
    box.add_argument("--dry-run", action="store_true", help="show what would be made and started")


def _add_run_options(made: Parser) -> list[argparse.Action]:
    """Those that the `ropewalk run` inside the box gets."""
    title = "of `ropewalk run`"
    return [
        *add_rank_options(made, "all that the nodes hold", title),
        add_grid_option(made.add_argument_group(f"{title}: placement")),
        *add_drop_in_options(made),
    ]


def parse(words: Sequence[str]) -> ClusterOptions:
    return parser().parse_args(words, namespace=ClusterOptions())


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    verb = next((one for one in ("cut", "restore", "kill") if getattr(options, one)), None)
    if verb:
        return _fault(verb, options)
    if options.box is not None:
        return _enter(options, words)
    node = options.node or "n0"
    command = command_words(options, words)
    if options.dry_run:
        print(describe(options, command, node))
        return 0
    with _box(options) as box:
        if options.check:
            return _check(box)
        if not words:
            return _stay(box)
        status = attend(box.start(command, node))
        box.finish()
        return status


def _box(options: ClusterOptions) -> boxes.Box:
    return boxes.Box(
        nodes=options.nodes,
        rails=options.rails,
        rate=options.rate,
        delay=options.delay,
        ranks_per_node=options.ranks_per_node,
        mtu=options.mtu,
    )


# ---- what is started -----------------------------------------------------------------------------


def runs_once(words: Sequence[str]) -> bool:
    name = os.path.basename(words[0])
    return name in _ONCE or name in _SHELLS


def command_words(options: ClusterOptions, words: list[str]) -> list[str]:
    """What runs on the node: the command, or `ropewalk run` with it."""
    if not words or options.node or runs_once(words):
        if words and os.path.basename(words[0]) == "ropewalk":
            return [*own_command(), *words[1:]]
        return words
    return [*own_command(), "run", *run_words(options), "--", *words]


def own_command() -> list[str]:
    """This ropewalk, wherever it was started from."""
    code = f"import sys; sys.path.insert(0, {PARENT!r}); from ropewalk.command import main; "
    return [sys.executable, "-c", code + "sys.exit(main(sys.argv[1:]))"]


def run_words(options: ClusterOptions) -> list[str]:
    actions = _add_run_options(Parser("ropewalk run", "", "", add_help=False))
    return words_of(actions, options)


def describe(options: ClusterOptions, command: Sequence[str], node: str) -> str:
    """What --dry-run prints."""
    network = Network(
        nodes=options.nodes,
        rails=options.rails,
        rate=bits_per_second(options.rate),
        delay=seconds(options.delay) if options.delay else 0.0,
        **({"mtu": options.mtu} if options.mtu else {}),
    )
    counts = boxes.places(options.ranks_per_node, options.nodes)
    processes = [f"<{name}>" for name in network.names]
    lines = [
        f"# {network.nodes} nodes, {sum(counts)} ranks, {network.rails} rails of "
        f"{network.rate / 1e9:g} Gbit/s each way: {network.line_rate_mb:g} MB/s a node, one way"
    ]
    if boxes.cores_of(network.nodes) is None:
        lines.append("# the nodes share the cores: there are fewer than two for each")
    lines += [f"switch: ip {line}" for line in network.switch_links(processes)]
    lines += [f"switch: tc {line}" for line in network.switch_shapes()]
    for at, name in enumerate(network.names):
        lines += [f"{name}: ip {line}" for line in network.node_links(at)]
        lines += [f"{name}: tc {line}" for line in network.node_shapes()]
    made = boxes.environment("PID", network, counts, {"PATH": os.environ.get("PATH", "")})
    lines += [f"{node}: {shlex.join(command)}" if command else "# no command: until Ctrl-C"]
    return "\n".join([*lines, *(f"  {name}={value}" for name, value in made.items())])


# ---- a command and its signals -------------------------------------------------------------------


def attend(command: session.Command) -> int:
    """Waits for a command on a node; passes signals on. One that was told to end and does not is
    left to the end of the box."""
    # Blocked, not handled: sigtimedwait below takes them one by one, and none is lost.
    waited = (*_PASSED, signal.SIGCHLD)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    statuses: list[int] = []

    def wait() -> None:
        statuses.append(command.status())
        os.kill(os.getpid(), signal.SIGCHLD)

    threading.Thread(target=wait, daemon=True).start()
    try:
        return _pass_signals(command, statuses, waited)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pass_signals(
    command: session.Command, statuses: Sequence[int], waited: Collection[int]
) -> int:
    until, interrupts = None, 0
    while not statuses:
        if until is None:
            info: signal.struct_siginfo | None = signal.sigwaitinfo(waited)
        else:
            info = signal.sigtimedwait(waited, max(0.0, until - time.monotonic()))
        if info is None:
            return 128 + signal.SIGKILL
        if info.si_signo == signal.SIGCHLD:
            continue
        if info.si_code != _SI_KERNEL:
            command.signal(info.si_signo)
        interrupts += info.si_signo == signal.SIGINT
        ends = info.si_signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        if until is None and (ends or interrupts == _INTERRUPTS):
            until = time.monotonic() + _PATIENCE_SECONDS
    return statuses[0]


# ---- without a command, and boxes that run -------------------------------------------------------


def _check(box: boxes.Box) -> int:
    from . import check

    status = 0
    for line in check.lines(box):
        print(line, flush=True)
        status = status or int(line.startswith("  failed"))
    return status


def _stay(box: boxes.Box) -> int:
    print(
        f"box {box.process}: {', '.join(box.nodes)}; Ctrl-C ends it\n"
        f"  ropewalk cluster --box {box.process} --node n0 -- COMMAND\n"
        f"  ropewalk cluster --box {box.process} --cut n1",
        flush=True,
    )
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    number = signal.sigwait(ending)
    return 0 if number == signal.SIGINT else 128 + number


def folder(box: str | None) -> str:
    """Where the sockets of the box are that is meant: the one around us, else the only one."""
    if os.path.isdir(session.FOLDER) and box in (None, os.environ.get("ROPEWALK_BOX")):
        return session.FOLDER
    running = boxes.running()
    if box is None and len(running) == 1:
        return session.folder(running[0])
    if box is None or not box.isdigit() or int(box) not in running:
        known = ", ".join(map(str, running)) or "none runs"
        raise CommandError(f"--box: {box or 'not given'}, expected the number of a box ({known})")
    return session.folder(int(box))


def _fault(verb: str, options: ClusterOptions) -> int:
    where, node = folder(options.box), getattr(options, verb)
    described = _described(where, node)
    if options.rail is not None and not 0 <= options.rail < described["network"]["rails"]:
        raise CommandError(
            f"--rail: {options.rail}, expected 0 to {described['network']['rails'] - 1}"
        )
    boxes.ask(where, {"do": verb, "node": node, "rail": options.rail})
    return 0


def _described(where: str, node: str) -> dict[str, Any]:
    """What the box says of itself, if it has such a node."""
    described = boxes.ask(where, {"do": "describe"})
    if node not in described["nodes"]:
        raise CommandError(f"node '{node}', expected one of {', '.join(described['nodes'])}")
    return described


def _enter(options: ClusterOptions, words: Sequence[str]) -> int:
    """A command on a node of a box that runs."""
    where, node = folder(options.box), options.node or "n0"
    if not words:
        raise CommandError("COMMAND: none given, as in --box 1234 --node n1 -- hostname")
    described = _described(where, node)
    network = Network(**described["network"])
    made = boxes.environment(options.box, network, described["places"], os.environ)
    try:
        command = session.Command(os.path.join(where, node), words, made, own_group=True)
    except OSError as error:
        raise CommandError(f"--node: {node} is gone ({error.strerror})", status=1) from None
    return attend(command)
