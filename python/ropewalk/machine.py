"""What this machine is, read from /proc and /sys: plain facts for `ropewalk doctor`.

Every function takes the root of the file system, so tests show it machines that they make up. A
file that is missing gives None or an empty list, never an error.
"""

import os
import re
from typing import Any

from . import cores, hugepages

Root = cores.Root
Facts = dict[str, Any]


def text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return None


def number(path: str) -> int | None:
    value = text(path)
    return int(value) if value is not None and re.fullmatch(r"-?\d+", value) else None


def entries(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def chosen(path: str) -> str | None:
    """The bracketed word of files like transparent_hugepage/enabled."""
    match = re.search(r"\[(\S+)\]", text(path) or "")
    return match[1] if match else text(path)


def processor(root: Root = "/") -> Facts:
    model = re.search(
        r"^model name\s*:\s*(.+)$", text(os.path.join(root, "proc/cpuinfo")) or "", re.MULTILINE
    )
    online = len(cpu_list(text(os.path.join(root, "sys/devices/system/cpu/online")) or ""))
    allowed = os.sched_getaffinity(0)
    return {
        "model": model[1] if model else os.uname().machine,
        "hardware_threads": online or os.cpu_count(),
        "hardware_threads_allowed": len(allowed),
        "cores_allowed": cores.allowed_cores(root, allowed),
        "quota_cores": cores.quota(root),
    }


def cpu_list(value: str) -> list[int]:
    """The numbers in `0-3,8`."""
    found: list[int] = []
    for part in filter(None, value.split(",")):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            found += range(int(first), int(last or first) + 1)
    return found


def caches(root: Root = "/") -> list[Facts]:
    """Data and unified caches of the first core."""
    top = os.path.join(root, "sys/devices/system/cpu/cpu0/cache")
    found = []
    for name in entries(top):
        folder = os.path.join(top, name)
        kind, size = text(os.path.join(folder, "type")), text(os.path.join(folder, "size"))
        if not name.startswith("index") or kind == "Instruction" or not size:
            continue
        shared = cpu_list(text(os.path.join(folder, "shared_cpu_list")) or "")
        found.append(
            {
                "level": number(os.path.join(folder, "level")),
                "bytes": int(size.rstrip("K")) << 10 if size.endswith("K") else int(size),
                "line_bytes": number(os.path.join(folder, "coherency_line_size")),
                "shared_by": len(shared),
            }
        )
    return found


def memory(root: Root = "/") -> Facts:
    found = dict(
        re.findall(
            r"^(\w+):\s+(\d+) kB", text(os.path.join(root, "proc/meminfo")) or "", re.MULTILINE
        )
    )
    return {
        "total_bytes": int(found.get("MemTotal", 0)) << 10,
        "available_bytes": int(found.get("MemAvailable", 0)) << 10,
        "cgroup_limit_bytes": memory_limit(root),
    }


def memory_limit(root: Root = "/") -> int | None:
    """Bytes the control group may use, or None for no limit."""
    limits = []
    for line in (text(os.path.join(root, "proc/self/cgroup")) or "").splitlines():
        kind, controllers, group = [*line.split(":", 2), "", ""][:3]
        unified = kind == "0"
        if not unified and controllers != "memory":
            continue
        top = os.path.join(root, "sys/fs/cgroup" if unified else "sys/fs/cgroup/memory")
        file = "memory.max" if unified else "memory.limit_in_bytes"
        parts = [part for part in group.split("/") if part and part != ".."]
        for length in range(len(parts) + 1):
            limit = number(os.path.join(top, *parts[:length], file))
            if limit is not None and 0 < limit < 1 << 60:  # version 1 writes a huge one for none
                limits.append(limit)
    return min(limits, default=None)


def transparent_huge_pages(root: Root = "/") -> Facts:
    folder = os.path.join(root, "sys/kernel/mm/transparent_hugepage")
    return {
        name: chosen(os.path.join(folder, name)) for name in ("enabled", "shmem_enabled", "defrag")
    }


def hugetlb(root: Root = "/") -> list[Facts]:
    return [
        {
            "page_bytes": pool.page_bytes,
            "total": pool.total,
            "free": pool.free,
            "reserved": pool.reserved,
            "surplus": pool.surplus,
            "overcommit": pool.overcommit,
            "available": pool.available,
        }
        for pool in hugepages.pools(root)
    ]


def fragmentation(root: Root = "/", page_bytes: int | None = None) -> list[Facts]:
    """Free memory of each NUMA node, and how much of it lies in whole blocks of 2 MiB."""
    page_bytes = page_bytes or os.sysconf("SC_PAGE_SIZE")
    order = ((2 << 20) // page_bytes).bit_length() - 1
    nodes: dict[int, dict[str, int]] = {}
    for line in (text(os.path.join(root, "proc/buddyinfo")) or "").splitlines():
        match = re.match(r"Node\s+(\d+), zone\s+\S+\s+(.+)", line)
        if not match:
            continue
        counts = [int(count) for count in match[2].split()]
        node = nodes.setdefault(int(match[1]), {"free_bytes": 0, "free_2m_blocks": 0})
        node["free_bytes"] += sum(count << power for power, count in enumerate(counts)) * page_bytes
        node["free_2m_blocks"] += sum(
            count << (power - order) for power, count in enumerate(counts) if power >= order
        )
    return [
        {
            "node": node,
            **found,
            "whole_share": (
                found["free_2m_blocks"] * (2 << 20) / found["free_bytes"]
                if found["free_bytes"]
                else 0.0
            ),
        }
        for node, found in sorted(nodes.items())
    ]


def ptrace_scope(root: Root = "/") -> int | None:
    """Yama's setting; None where the kernel has no Yama, which allows what 0 allows."""
    return number(os.path.join(root, "proc/sys/kernel/yama/ptrace_scope"))


def memlock() -> Facts:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = resource.RLIM_INFINITY
    return {
        "soft_bytes": None if soft == unlimited else soft,
        "hard_bytes": None if hard == unlimited else hard,
    }


def shared_memory(path: str = "/dev/shm") -> Facts | None:
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return {"bytes": found.f_blocks * found.f_frsize, "free_bytes": found.f_bavail * found.f_frsize}


# ---- fabrics -------------------------------------------------------------------------------------


def fabrics(root: Root = "/") -> list[Facts]:
    """Host adapters with a speed MPI can use without the kernel's TCP."""
    found = []
    top = os.path.join(root, "sys/class/infiniband")
    for name in entries(top):
        for port in entries(os.path.join(top, name, "ports")):
            folder = os.path.join(top, name, "ports", port)
            found.append(
                {
                    "device": name,
                    "kind": _fabric_kind(name, text(os.path.join(folder, "link_layer"))),
                    "port": port,
                    "state": (text(os.path.join(folder, "state")) or "").split(": ")[-1],
                    "rate": text(os.path.join(folder, "rate")),
                }
            )
    for name in entries(os.path.join(root, "dev")):
        if re.fullmatch(r"hfi1_\d+", name) and not any(f["device"] == name for f in found):
            found.append(
                {"device": name, "kind": "Omni-Path", "port": None, "state": None, "rate": None}
            )
    for name in entries(os.path.join(root, "sys/class/cxi")):
        found.append(
            {"device": name, "kind": "Slingshot", "port": None, "state": None, "rate": None}
        )
    return found


def _fabric_kind(name: str, layer: str | None) -> str:
    if name.startswith("hfi1"):
        return "Omni-Path"
    if name.startswith(("efa", "rdmap")):
        return "EFA"
    return "RoCE" if layer == "Ethernet" else "InfiniBand"


def interfaces(root: Root = "/") -> list[Facts]:
    """Network interfaces that are backed by a device and up."""
    top = os.path.join(root, "sys/class/net")
    found = []
    for name in entries(top):
        folder = os.path.join(top, name)
        if name == "lo" or not os.path.exists(os.path.join(folder, "device")):
            continue
        speed = number(os.path.join(folder, "speed"))
        found.append(
            {
                "interface": name,
                "state": text(os.path.join(folder, "operstate")),
                "mbit_per_s": speed if speed and speed > 0 else None,
            }
        )
    return found


def facts(root: Root = "/") -> Facts:
    """All of the above, by the names of the JSON output."""
    return {
        "kernel": os.uname().release,
        "architecture": os.uname().machine,
        "processor": processor(root),
        "caches": caches(root),
        "numa_balancing": number(os.path.join(root, "proc/sys/kernel/numa_balancing")),
        "memory": memory(root),
        "transparent_huge_pages": transparent_huge_pages(root),
        "hugetlb": hugetlb(root),
        "fragmentation": fragmentation(root),
        "memlock": memlock(),
        "ptrace_scope": ptrace_scope(root),
        "shared_memory": shared_memory(os.path.join(root, "dev/shm")),
        "fabrics": fabrics(root),
        "interfaces": interfaces(root),
    }
