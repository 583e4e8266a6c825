"""The batch job that this process is in: its system, its nodes, what it gives here.

Slurm, PBS and `ropewalk cluster` tell by variables and files; nothing is asked from a server.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .cores import batch_nodes
from .errors import CommandError

_MOST_NAMES = 1 << 16  # of a range
_DIGITS = 18  # of its ends


@dataclass(frozen=True)
class Job:
    """A batch job, or none: then `system` is None and there is one node."""

    system: str | None = None  # "slurm" or "pbs"; "box" in a `ropewalk cluster`
    nodes: int = 1
    hosts: tuple[tuple[str, int], ...] = ()  # (name, places), in its order, where told
    cpus_here: int | None = None  # CPUs of this node that belong to it, in the system's counting
    node_file: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.hosts)


def job(environment: Mapping[str, str] | None = None) -> Job:
    """The job of this environment. Other systems (LSF, Grid Engine) count as their nodes only."""
    environment = os.environ if environment is None else environment
    if environment.get("ROPEWALK_BOX_NODES"):
        hosts = _box(environment["ROPEWALK_BOX_NODES"])
        return Job("box", len(hosts), hosts)
    nodes = batch_nodes(environment)
    if environment.get("SLURM_JOB_ID"):
        # SLURM_NODELIST is the older name, still set.
        text = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST", "")
        hosts = tuple((name, 0) for name in expand(text))
        cpus = environment.get("SLURM_CPUS_ON_NODE", "")
        return Job("slurm", max(nodes, len(hosts)), hosts, int(cpus) if cpus.isdigit() else None)
    file = environment.get("PBS_NODEFILE")
    if file:
        return Job("pbs", nodes, _places(file), node_file=file)
    return Job(nodes=nodes)


# What names the job in the environment of its processes: Slurm, PBS, Flux, LSF, Grid Engine.
_NAMES = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "LSB_JOBID", "JOB_ID")


def job_name(environment: Mapping[str, str] | None = None) -> str:
    """Tells this job from others on the same node; "" outside of jobs."""
    environment = os.environ if environment is None else environment
    return next((environment[name] for name in _NAMES if environment.get(name)), "")


def _box(text: str) -> tuple[tuple[str, int], ...]:
    """Hosts and places of "n0:2,n1:1" (cluster/box.py)."""
    pairs = (part.partition(":") for part in text.split(",") if part)
    hosts = ((name, int(count or 1)) for name, _, count in pairs)
    return tuple((name, count) for name, count in hosts if count > 0)


def _places(path: str) -> tuple[tuple[str, int], ...]:
    """Hosts of PBS_NODEFILE: one line for each place."""
    counts: dict[str, int] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.split():
                    counts[line.split()[0]] = counts.get(line.split()[0], 0) + 1
    except OSError:
        return ()
    return tuple(counts.items())


def expand(text: str) -> list[str]:
    """The names in Slurm's `a[01-03,7],b`. Unreadable parts are names as they stand."""
    found = []
    for part in _parts(text):
        try:
            found += _expand_one(part)
        except OverflowError:
            found.append(part)
    return found


def expand_option(text: str) -> list[str]:
    """The same of --nodes. Raises CommandError for unreadable parts."""
    outside = re.sub(r"\[[^\[\]]*\]", "", text)
    if "[" in outside or "]" in outside:
        expected = "expected names, as in --nodes=node1,node[3-5]"
        raise CommandError(f"--nodes: '{text}' has one bracket of two, {expected}")
    try:
        return [name for part in _parts(text) for name in _expand_one(part)]
    except OverflowError:
        raise CommandError(
            f"--nodes: '{text}', expected at most {_MOST_NAMES} names of a range; name fewer"
        ) from None


def _parts(text: str) -> list[str]:
    found = re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text.strip())
    return [part.strip() for part in found]


def _expand_one(part: str) -> list[str]:
    """Raises OverflowError for more names than a machine has nodes."""
    match = re.match(r"([^\[]*)\[([^\]]*)\](.*)$", part)
    if not match:
        return [part] if part else []
    before, ranges, after = match.groups()
    rest = _expand_one(after) or [""]
    found = []
    for one in ranges.split(","):
        first, dash, last = one.partition("-")
        counted = dash and first.isdigit() and last.isdigit()
        numbers = _numbers(first, last) if counted else [one]
        if len(numbers) * len(rest) > _MOST_NAMES:
            raise OverflowError
        found += [f"{before}{number}{tail}" for number in numbers for tail in rest]
    return found


def _numbers(first: str, last: str) -> list[str]:
    if len(last) > _DIGITS or len(first) > _DIGITS or int(last) - int(first) >= _MOST_NAMES:
        raise OverflowError
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


def is_here(name: str, own: str | None = None) -> bool:
    """Whether a host's name is this machine's, with or without its domain."""
    own = own or os.uname().nodename
    return name in ("localhost", "127.0.0.1", "::1") or name.split(".")[0] == own.split(".")[0]
