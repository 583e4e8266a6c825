"""JSON lines of the benchmarks that are scripts, in the shape of the others (common/report.hpp).

The first line is the machine, as common/machine.cc makes it; each further one is a row.
"""

import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


def machine(mpi: str = "") -> dict[str, Any]:
    """The first line: what was measured on, and by which command."""
    pages = pathlib.Path("/sys/kernel/mm/transparent_hugepage")
    return {
        "bench": "machine",
        "host": platform.node(),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_bytes": int(_field("/proc/meminfo", "MemTotal").split()[0] or 0) << 10,
        "pages": {
            "base": os.sysconf("SC_PAGESIZE"),
            "thp": _chosen(pages / "enabled"),
            "shmem": _chosen(pages / "shmem_enabled"),
        },
        "commit": _commit(),
        "program": os.path.relpath(sys.argv[0], ROOT),
        "command": shlex.join([os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
        "mpi": mpi,
    }


def times(microseconds: Iterable[float]) -> dict[str, float]:
    """Median, least, 99th percentile (by the nearest rank) and number of measurements."""
    sorted_times = sorted(microseconds)
    place = max(0, -(-99 * len(sorted_times) // 100) - 1)
    return {
        "median": round(statistics.median(sorted_times), 4),
        "min": round(sorted_times[0], 4),
        "p99": round(sorted_times[place], 4),
        "n": len(sorted_times),
    }


class Rows:
    """A file of JSON lines, or none; a row is in it as soon as it is known."""

    def __init__(self, path: str | None, mpi: str = "") -> None:
        self._file = open(path, "w", encoding="utf-8") if path else None  # noqa: SIM115
        if path:
            self.add(machine(mpi))

    def add(self, row: dict[str, Any]) -> None:
        if self._file:
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()


def _field(path: str, key: str) -> str:
    """The value behind "key" and a colon; "0" where the kernel does not tell."""
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return "0"


def _chosen(path: pathlib.Path) -> str:
    """ "always [madvise] never": "madvise"."""
    text = path.read_text() if path.exists() else ""
    return text.partition("[")[2].partition("]")[0]


def _caches() -> list[dict[str, Any]]:
    found = []
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = (index / "type").read_text().strip()
        if kind != "Instruction" and (index / "size").exists():  # some virtual machines tell none
            kibibytes = int((index / "size").read_text().strip().rstrip("K"))
            level = int((index / "level").read_text())
            shared = (index / "shared_cpu_list").read_text().strip()
            found.append(
                {"level": level, "type": kind, "bytes": kibibytes << 10, "shared_by": shared}
            )
    return sorted(found, key=lambda cache: cache["bytes"])


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"
