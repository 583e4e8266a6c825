"""`ropewalk doctor`: judges the facts. For each shortfall, its consequence and its remedy.

Judging is a pure function of the facts, so tests make up machines. Only what costs something here
is a finding: a missing hugetlb pool is none where collapsed memory serves as well.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import installations
from ..hugepages import readable

Facts = dict[str, Any]
Finding = dict[str, str]
Findings = Iterator[Finding]

_MIB = 1 << 20
# Under this share of free memory in whole 2 MiB blocks, the kernel has to move pages for most.
_FRAGMENTED_SHARE = 0.1
_SMALL_SHARED_MEMORY = 512 * _MIB  # containers often have 64 MiB, too little for MPI's own segments
_SMALL_MEMLOCK = 64 * _MIB  # adapters register at least their queues


def finding(subject: str, what: str, consequence: str, remedy: str) -> Finding:
    return {"subject": subject, "what": what, "consequence": consequence, "remedy": remedy}


def judge(facts: Facts) -> list[Finding]:
    """The findings for facts as collect() returns them, most costly first."""
    found: list[Finding] = []
    for check in _CHECKS:
        found += check(facts)
    return found


def collect(run_mpi: bool = True, tell: Callable[[str], None] = lambda _: None) -> Facts:
    """Facts of this machine, features tried and MPIs asked; `tell` is told what takes long."""
    from .. import machine, numa
    from . import dropin, mpi_facts, probes

    return {
        **machine.facts(),
        "numa": numa.nodes(),
        "features": probes.every(),
        "mpi": mpi_facts.every(run_mpi, tell),
        "drop_in": dropin.facts(),
        "timeout": os.environ.get("ROPEWALK_TIMEOUT"),
    }


def _works(facts: Facts, feature: str) -> bool:
    return bool(facts["features"].get(feature, {}).get("works"))


def _detail(facts: Facts, feature: str) -> str:
    return str(facts["features"].get(feature, {}).get("detail", ""))


def _pool_pages(facts: Facts) -> int:
    return sum(pool["available"] for pool in facts["hugetlb"])


def _mpi(facts: Facts) -> Findings:
    if not facts["mpi"]:
        yield finding(
            "MPI",
            "none found",
            "no program can be started",
            installations.remedy(),
        )
    for one in facts["mpi"]:
        name = f"{one['family']} {one['version']}".strip()
        if "error" in one:
            yield finding(
                "MPI",
                f"{name} did not start one rank: {one['error']}",
                "it cannot be used",
                f"try `ropewalk run --mpi {one['prefix']} -- true`",
            )
        elif one.get("thread_level", "multiple") != "multiple":
            yield finding(
                "MPI",
                f"{name} provides thread level {one['thread_level']} only",
                "an EndpointSet has one lane and no comm thread",
                "use an MPI built with MPI_THREAD_MULTIPLE",
            )


def _pages(facts: Facts) -> Findings:
    if _works(facts, "madv_collapse") or _pool_pages(facts):
        return
    yield finding(
        "pages",
        f"no 2 MiB pages: {_detail(facts, 'madv_collapse')}; the hugetlb pool is empty",
        "communication memory lies on scattered 4 KiB pages: slower first touch and registration",
        "Linux 6.1 or later, or `ropewalk hugepages reserve 1G` as root",
    )


def _private_pages(facts: Facts) -> Findings:
    if facts["transparent_huge_pages"].get("enabled") == "never":
        yield finding(
            "pages",
            "transparent huge pages: never",
            "buffers that do not come from ropewalk stay on 4 KiB pages",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; or allocate with ropewalk",
        )


def _peers(facts: Facts) -> Findings:
    if not _works(facts, "cma"):
        scope = facts["ptrace_scope"]
        yama = f" (yama ptrace_scope is {scope})" if scope else ""
        yield finding(
            "peers",
            f"no process_vm_readv between ranks: {_detail(facts, 'cma')}{yama}",
            "buffers outside ropewalk's memory are copied twice between ranks of a node",
            "echo 0 > /proc/sys/kernel/yama/ptrace_scope"
            if scope
            else "allow it in the container (--cap-add SYS_PTRACE, or by its seccomp profile)",
        )
    if not _works(facts, "pidfd_getfd"):
        yield finding(
            "peers",
            f"no pidfd_getfd between ranks: {_detail(facts, 'pidfd_getfd')}",
            "arenas are handed over through sockets: start takes a little longer",
            "the same setting as for process_vm_readv, and Linux 5.6 or later",
        )


def _quota(facts: Facts) -> Findings:
    processor = facts["processor"]
    quota, cores = processor["quota_cores"], processor["cores_allowed"]
    if quota is not None and quota < cores:
        yield finding(
            "cores",
            f"the control group allows {quota:g} of {cores} cores",
            "ranks that wait use it up, then all stand still until the period ends",
            f"start at most {max(1, int(quota))} ranks, or raise cpu.max",
        )


def _memory_limit(facts: Facts) -> Findings:
    memory = facts["memory"]
    limit, total = memory["cgroup_limit_bytes"], memory["total_bytes"]
    if limit is not None and limit < total // 2:
        yield finding(
            "memory",
            f"the control group allows {readable(limit)} of {readable(total)}",
            "an arena's default range is half of all memory: it may end in an error before that",
            "set ROPEWALK_ARENA_BYTES below the limit, or raise memory.max",
        )


def _shared_memory(facts: Facts) -> Findings:
    shared = facts["shared_memory"]
    if shared is None:
        yield finding(
            "/dev/shm",
            "missing",
            "most MPIs cannot communicate inside a node",
            "mount -t tmpfs tmpfs /dev/shm",
        )
    elif shared["free_bytes"] < _SMALL_SHARED_MEMORY:
        yield finding(
            "/dev/shm",
            f"{readable(shared['free_bytes'])} free of {readable(shared['bytes'])}",
            "MPIs put their segments there and end with SIGBUS when it is full "
            "(ropewalk does not use it)",
            "docker run --shm-size=2g, or mount -o remount,size=50% /dev/shm",
        )


def _memlock(facts: Facts) -> Findings:
    soft = facts["memlock"]["soft_bytes"]
    if facts["fabrics"] and soft is not None and soft < _SMALL_MEMLOCK:
        yield finding(
            "memlock",
            f"limited to {readable(soft)}",
            "memory cannot be registered with the adapter: MPI falls back to TCP or ends",
            "`* - memlock unlimited` in /etc/security/limits.conf; LimitMEMLOCK=infinity "
            "for slurmd",
        )


def _fragmentation(facts: Facts) -> Findings:
    for node in facts["fragmentation"]:
        if node["free_bytes"] > 256 * _MIB and node["whole_share"] < _FRAGMENTED_SHARE:
            yield finding(
                "fragmentation",
                f"NUMA node {node['node']}: {node['free_2m_blocks']} whole 2 MiB blocks in "
                f"{readable(node['free_bytes'])} of free memory",
                "the kernel has to move pages for each huge one: allocation is slow or falls back",
                "echo 1 > /proc/sys/vm/compact_memory; reserve a pool at boot",
            )


def _balancing(facts: Facts) -> Findings:
    if facts["numa_balancing"] and len(facts["numa"]) > 1:
        yield finding(
            "NUMA",
            "automatic balancing is on",
            "bound ranks pay for page faults that find nothing to improve",
            "echo 0 > /proc/sys/kernel/numa_balancing",
        )


def _inspection(facts: Facts) -> Findings:
    if not _works(facts, "pagemap_scan"):
        yield finding(
            "inspection",
            f"no PAGEMAP_SCAN: {_detail(facts, 'pagemap_scan')}",
            "inspect() reads smaps, which is slower and takes the address space's lock",
            "Linux 6.7 or later",
        )
    if not _works(facts, "madv_populate_write"):
        yield finding(
            "memory",
            f"no MADV_POPULATE_WRITE: {_detail(facts, 'madv_populate_write')}",
            "memory that runs out while it is first touched ends the program",
            "Linux 5.14 or later",
        )


def _deaths(facts: Facts) -> Findings:
    """What else keeps ranks from watching each other shows when they start: `--stats` tells."""
    if facts.get("timeout") == "off":
        yield finding(
            "deaths",
            "ROPEWALK_TIMEOUT=off in the environment",
            "ranks wait for ever when one on another node dies",
            "unset it, or give the seconds that a node may be silent",
        )


def _drop_in(facts: Facts) -> Findings:
    found = facts.get("drop_in")
    if found is None:
        return
    missing = [name for name, path in found["libraries"].items() if path is None]
    if missing:
        yield finding(
            "drop-in",
            f"not built: {', '.join(f'libropewalk-{name}.so' for name in missing)}",
            "unchanged programs under `ropewalk run` use the plain MPI"
            if "mpi" in missing
            else "their buffers are not memory that peers can map",
            "`make build` or `pip install .`; or name their folder in ROPEWALK_PRELOAD",
        )
    if found["complaint"]:
        yield finding(
            "drop-in",
            f"the loader: {found['complaint']}",
            "unchanged programs under `ropewalk run` use the plain MPI",
            "build ropewalk on this machine",
        )
    for tool in found["tools"]:
        yield finding(
            "drop-in",
            f"a PMPI tool in LD_PRELOAD: {tool}",
            "both want MPI's calls: ropewalk comes first, and the tool misses what it takes",
            "measure with --no-preload, or run without the tool",
        )
    yield from _fortran(facts)


def _fortran(facts: Facts) -> Findings:
    if not facts["drop_in"]["libraries"]["mpi"]:
        return
    for one in facts["mpi"]:
        found = one.get("fortran") or {}
        if found.get("intercepted") is False:
            yield finding(
                "drop-in",
                f"{one['family']} {one['version']}: Fortran calls are not taken: {found['detail']}",
                "unchanged Fortran programs use the plain MPI for them",
                "use an MPI whose Fortran binding calls MPI_*, such as MPICH",
            )


# The most costly comes first.
_CHECKS: tuple[Callable[[Facts], Iterable[Finding]], ...] = (
    _mpi,
    _pages,
    _peers,
    _quota,
    _memory_limit,
    _shared_memory,
    _memlock,
    _fragmentation,
    _private_pages,
    _balancing,
    _inspection,
    _deaths,
    _drop_in,
)
