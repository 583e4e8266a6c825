"""What a test run left on the machine.

check_leftovers.py before FILE   notes the state of the machine
check_leftovers.py after FILE    compares: fails for what is ropewalk's own (a process whose program
                                 lies in build/, a changed hugetlb pool), and only mentions what an
                                 MPI left behind when its job was killed (processes, /dev/shm files)
"""

import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
POOL = pathlib.Path("/sys/kernel/mm/hugepages")
SHARED_MEMORY = pathlib.Path("/dev/shm")
GRACE_SECONDS = 5.0  # a rank that is being torn down may outlive its launcher by a moment


def pool() -> dict[str, int]:
    """Pages of each hugetlb size, asked for by an administrator or by a test."""
    return {p.parent.name: int(p.read_text()) for p in sorted(POOL.glob("*/nr_hugepages"))}


def shared_files() -> list[str]:
    return sorted(p.name for p in SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else []


def processes(folder: pathlib.Path) -> list[str]:
    """Processes whose program lies below the folder, except zombies, which hold nothing."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            program = os.readlink(entry / "exe")
        except OSError:  # gone, a kernel thread, a zombie or another user's
            continue
        if pathlib.Path(program).is_relative_to(folder):
            found.append(f"process {entry.name}: {program}")
    return found


def own_processes() -> list[str]:
    end = time.monotonic() + GRACE_SECONDS
    while (found := processes(ROOT / "build")) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def compare(before: dict) -> int:
    ours = own_processes()
    for size, pages in pool().items():
        if pages != before["pool"].get(size):
            ours.append(f"{size}: {before['pool'].get(size)} pages before, {pages} after")
    theirs = processes(ROOT / ".venv" / "mpi")
    theirs += [f"/dev/shm/{n}" for n in shared_files() if n not in before["shared_files"]]
    for line in theirs:
        print(f"warning: left by an MPI: {line}")
    for line in ours:
        print(f"error: left by ropewalk: {line}")
    print(f"leftovers: {len(ours)} of ropewalk, {len(theirs)} of the MPIs")
    return 1 if ours else 0


def main(arguments: list[str]) -> int:
    when, file = arguments[0], pathlib.Path(arguments[1])
    if when == "before":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"pool": pool(), "shared_files": shared_files()}))
        return 0
    return compare(json.loads(file.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
