"""The NUMA nodes of a machine: their cores, memory, distances, and what kind of memory it is.

Speeds are those of the firmware's table (ACPI's HMAT), as Linux shows them from the node's nearest
cores. Most machines with one kind of memory have no such table; what is missing is None.
"""

import os
import re
from collections.abc import Sequence

from .machine import Facts, Root, cpu_list, entries, number, text

_NODES = "sys/devices/system/node"
_TIERS = "sys/devices/virtual/memory_tiering"
_SPEEDS = {
    "read_mb_per_s": "read_bandwidth",
    "write_mb_per_s": "write_bandwidth",
    "read_latency_ns": "read_latency",
}


def nodes(root: Root = "/") -> list[Facts]:
    """One entry a NUMA node, in the order of their numbers."""
    top = os.path.join(root, _NODES)
    numbers = sorted(int(name[4:]) for name in entries(top) if re.fullmatch(r"node\d+", name))
    tiers = _tiers(root)
    return [_node(root, os.path.join(top, f"node{one}"), one, tiers.get(one)) for one in numbers]


def _node(root: Root, folder: str, node: int, tier: int | None) -> Facts:
    memory = dict(
        re.findall(r"(MemTotal|MemFree):\s*(\d+) kB", text(os.path.join(folder, "meminfo")) or "")
    )
    cpus = text(os.path.join(folder, "cpulist")) or ""
    return {
        "node": node,
        "cpus": cpus,
        "package": _package(root, cpus),
        "memory_bytes": int(memory.get("MemTotal", 0)) << 10,
        "free_bytes": int(memory.get("MemFree", 0)) << 10,
        "distances": [int(d) for d in (text(os.path.join(folder, "distance")) or "").split()],
        "tier": tier,
        "memory_side_cache_bytes": _memory_side_cache(folder),
        **{
            name: number(os.path.join(folder, "access0/initiators", file))
            for name, file in _SPEEDS.items()
        },
    }


def _package(root: Root, cpus: str) -> int | None:
    """The processor package of a node's first CPU; None for a node without CPUs."""
    for cpu in cpu_list(cpus)[:1]:
        path = f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"
        return number(os.path.join(root, path))
    return None


def _memory_side_cache(folder: str) -> int | None:
    """Bytes of faster memory that the hardware keeps as a cache of this node's (a "cache mode")."""
    top = os.path.join(folder, "memory_side_cache")
    sizes = [number(os.path.join(top, name, "size")) or 0 for name in entries(top)]
    return sum(sizes) or None


def _tiers(root: Root) -> dict[int, int]:
    """The kernel's memory tier of each node; the smaller the number, the faster its memory."""
    top = os.path.join(root, _TIERS)
    found = {}
    for name in entries(top):
        match = re.fullmatch(r"memory_tier(\d+)", name)
        if match:
            for node in cpu_list(text(os.path.join(top, name, "nodelist")) or ""):
                found[node] = int(match[1])
    return found


def nodes_per_package(found: Sequence[Facts]) -> int:
    """NUMA nodes with cores in one package: more than 1 where the firmware divides a processor
    (Intel's SNC, AMD's NPS)."""
    packages = [one["package"] for one in found if one["package"] is not None]
    return max((packages.count(package) for package in packages), default=1)


def kind(node: Facts, found: Sequence[Facts]) -> str | None:
    """What a node without cores has, judged by its speed beside that of nodes with cores, else by
    the kernel's tiers; None for a node with cores. The library judges alike
    (src/topology/numa_nodes.cc)."""
    if node["cpus"]:
        return None
    ordinary = [one for one in found if one["cpus"]]
    bandwidth = _compared(node, ordinary, "read_mb_per_s")
    latency = _compared(node, ordinary, "read_latency_ns")
    if bandwidth > 1:
        return "memory only, of higher bandwidth (HBM)"
    if latency > 1 or bandwidth < 1:
        return "memory only, slower (CXL or persistent)"
    tier = _compared(node, ordinary, "tier")
    speed = {-1: ", faster by the kernel's tiers", 0: "", 1: ", slower by the kernel's tiers"}
    return "memory only" + speed[(tier > 1) - (tier < 1)]


def _compared(node: Facts, ordinary: Sequence[Facts], name: str) -> float:
    """How many times the value of the nodes with cores; 1 where one is not known."""
    values = [one[name] for one in ordinary if one[name]]
    return node[name] / max(values) if node[name] and values else 1.0
