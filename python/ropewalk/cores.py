"""How many cores this process may use, without any library."""

import os


def _read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return None


def allowed_cores(root="/", cpus=None):
    """Physical cores in this process's affinity mask (hardware threads of one core count once)."""
    cpus = os.sched_getaffinity(0) if cpus is None else cpus
    cores = set()
    for cpu in cpus:
        path = os.path.join(root, f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(_read(path) or str(cpu))
    return len(cores)


def quota(root="/"):
    """Cores' worth of time that the control group allows, or None for no limit."""
    limits = []
    for line in (_read(os.path.join(root, "proc/self/cgroup")) or "").splitlines():
        kind, controllers, group = [*line.split(":", 2), "", ""][:3]
        if kind == "0":
            limits += _unified_limits(root, group)
        elif "cpu" in controllers.split(","):
            limits += _legacy_limits(root, controllers, group)
    return min(limits, default=None)


def _folders(top, group):
    """The group's folder and its parents', up to the mount."""
    parts = [part for part in group.split("/") if part and part != ".."]
    for length in range(len(parts), -1, -1):
        yield os.path.join(top, *parts[:length])


def _unified_limits(root, group):
    for folder in _folders(os.path.join(root, "sys/fs/cgroup"), group):
        fields = (_read(os.path.join(folder, "cpu.max")) or "").split()
        if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
            yield int(fields[0]) / int(fields[1])


def _legacy_limits(root, controllers, group):
    for top in (controllers, "cpu"):
        for folder in _folders(os.path.join(root, "sys/fs/cgroup", top), group):
            limit = _read(os.path.join(folder, "cpu.cfs_quota_us")) or ""
            period = _read(os.path.join(folder, "cpu.cfs_period_us")) or ""
            if limit.isdigit() and period.isdigit() and int(period) > 0:
                yield int(limit) / int(period)


def usable_cores(root="/"):
    """Cores that can run at once: the affinity mask, cut by the quota."""
    cores, limit = allowed_cores(root), quota(root)
    return cores if limit is None else max(1, min(cores, int(limit)))


def batch_nodes(environment=None):
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
