"""How many cores this process may use, without any library."""

import os
from collections.abc import Iterable, Iterator, Mapping

Root = str | os.PathLike[str]


def _read(path: Root) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return None


def core_groups(root: Root = "/", cpus: Iterable[int] | None = None) -> list[list[int]]:
    """The CPUs of this process's affinity mask by the core they are threads of: [[0, 4], [1, 5]]
    where 0 and 4 share one. By the first of each."""
    cpus = os.sched_getaffinity(0) if cpus is None else cpus
    cores: dict[str, list[int]] = {}
    for cpu in sorted(cpus):
        path = os.path.join(root, f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(_read(path) or str(cpu), []).append(cpu)
    return list(cores.values())


def allowed_cores(root: Root = "/", cpus: Iterable[int] | None = None) -> int:
    """Physical cores in this process's affinity mask (hardware threads of one core count once)."""
    return len(core_groups(root, cpus))


def share_of_rank(
    rank: int, ranks: int, root: Root = "/", cpus: Iterable[int] | None = None
) -> set[int]:
    """The CPUs of the cores that are this rank's share; all of them where ranks outnumber cores."""
    groups = core_groups(root, cpus)
    each = len(groups) // ranks
    mine = groups[rank * each : (rank + 1) * each] if each else groups
    return {cpu for group in mine for cpu in group}


def quota(root: Root = "/") -> float | None:
    """Cores' worth of time that the control group allows, or None for no limit."""
    limits: list[float] = []
    for line in (_read(os.path.join(root, "proc/self/cgroup")) or "").splitlines():
        kind, controllers, group = [*line.split(":", 2), "", ""][:3]
        if kind == "0":
            limits += _unified_limits(root, group)
        elif "cpu" in controllers.split(","):
            limits += _legacy_limits(root, controllers, group)
    return min(limits, default=None)


def _folders(top: str, group: str) -> Iterator[str]:
    """The group's folder and its parents', up to the mount."""
    parts = [part for part in group.split("/") if part and part != ".."]
    for length in range(len(parts), -1, -1):
        yield os.path.join(top, *parts[:length])


def _unified_limits(root: Root, group: str) -> Iterator[float]:
    for folder in _folders(os.path.join(root, "sys/fs/cgroup"), group):
        fields = (_read(os.path.join(folder, "cpu.max")) or "").split()
        if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
            yield int(fields[0]) / int(fields[1])


def _legacy_limits(root: Root, controllers: str, group: str) -> Iterator[float]:
    for top in (controllers, "cpu"):
        for folder in _folders(os.path.join(root, "sys/fs/cgroup", top), group):
            limit = _read(os.path.join(folder, "cpu.cfs_quota_us")) or ""
            period = _read(os.path.join(folder, "cpu.cfs_period_us")) or ""
            if limit.isdigit() and period.isdigit() and int(period) > 0:
                yield int(limit) / int(period)


def usable_cores(root: Root = "/") -> int:
    """Cores that can run at once: the affinity mask, cut by the quota."""
    cores, limit = allowed_cores(root), quota(root)
    return cores if limit is None else max(1, min(cores, int(limit)))


def batch_nodes(environment: Mapping[str, str] | None = None) -> int:
    """Nodes of the batch job this process is in; 1 outside of one."""
    environment = os.environ if environment is None else environment
    for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"):
        if environment.get(name, "").isdigit():
            return max(1, int(environment[name]))
    for name in ("PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE"):
        hosts = {
            line.split()[0]
            for line in (_read(environment.get(name, "")) or "").splitlines()
            if line.split()
        }
        if hosts:
            return len(hosts)
    return 1
