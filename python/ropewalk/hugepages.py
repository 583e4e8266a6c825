"""The kernel's pool of huge pages: what it holds, growing it, giving back what ropewalk took.

The kernel may give fewer pages than asked for, without an error; every figure here is read back.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .cores import Root
from .errors import CommandError

SIZES = {"2M": 2 << 20, "1G": 1 << 30}
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_FOLDER = "sys/kernel/mm/hugepages/hugepages-{}kB"
_RECORD = "run/ropewalk/hugepages.json"  # how many pages ropewalk added; gone after a reboot
_HELPERS = ("/usr/local/libexec/ropewalk-hugepages", "/usr/libexec/ropewalk-hugepages")


def size_name(size: int) -> str:
    return next((name for name, value in SIZES.items() if value == size), f"{size >> 10}K")


def readable(size: int) -> str:
    """A number of bytes as people write it: 64 MiB."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g} {unit}"
    return f"{size} B"


@dataclass(frozen=True)
class Pool:
    """The pool of one page size, as the kernel shows it."""

    page_bytes: int
    total: int
    free: int
    reserved: int
    surplus: int
    overcommit: int

    @property
    def available(self) -> int:
        """Pages a new mapping can have."""
        return self.free - self.reserved + max(0, self.overcommit - self.surplus)


def _folder(root: Root, page_bytes: int) -> str:
    return os.path.join(root, _FOLDER.format(page_bytes >> 10))


def _number(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read())


def read(page_bytes: int, root: Root = "/") -> Pool | None:
    """The pool of a page size, or None where the kernel has no such pages."""
    folder = _folder(root, page_bytes)
    try:
        values = [
            _number(os.path.join(folder, f"{name}_hugepages"))
            for name in ("nr", "free", "resv", "surplus", "nr_overcommit")
        ]
    except (OSError, ValueError):
        return None
    return Pool(page_bytes, *values)


def pools(root: Root = "/") -> list[Pool]:
    return [pool for pool in (read(size, root) for size in SIZES.values()) if pool]


def pages_of(text: str, page_bytes: int) -> int:
    """Pages in `64` (pages), `64M` or `1G`; at least one, a size must be whole pages."""
    match = re.fullmatch(r"(\d+)([KMGT])?(i?B)?", text.strip(), re.IGNORECASE)
    if not match or (match[3] and not match[2]):
        raise CommandError(f"N: '{text}', expected pages (64) or a size (64M, 1G)")
    number = int(match[1])
    if match[2]:
        size = number * _UNITS[match[2].upper()]
        if size % page_bytes:
            raise CommandError(
                f"N: {text} is no multiple of {size_name(page_bytes)}; give pages or whole pages"
            )
        number = size // page_bytes
    if number < 1:
        raise CommandError(f"N: {text}, expected 1 page or more")
    return number


def _record(root: Root) -> dict[int, int]:
    try:
        with open(os.path.join(root, _RECORD), encoding="ascii") as file:
            return {int(size): int(pages) for size, pages in json.load(file).items()}
    except (OSError, ValueError):
        return {}


def reserved(root: Root = "/") -> dict[int, int]:
    """Pages that `reserve` added and `release` would give back, by page size in bytes."""
    return _record(root)


def _write_record(root: Root, record: Mapping[int, int]) -> None:
    path = os.path.join(root, _RECORD)
    kept = {str(size): pages for size, pages in record.items() if pages > 0}
    if not kept:
        if os.path.exists(path):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        return
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        json.dump(kept, file)


def _write(root: Root, page_bytes: int, pages: int) -> int:
    """Sets the size of the pool; returns what the kernel made of it."""
    path = os.path.join(_folder(root, page_bytes), "nr_hugepages")
    with open(path, "w", encoding="ascii") as file:
        file.write(str(pages))
    return _number(path)


def _compact(root: Root) -> None:
    """Lets the kernel gather free memory into larger blocks (takes up to seconds)."""
    try:
        with open(os.path.join(root, "proc/sys/vm/compact_memory"), "w", encoding="ascii") as file:
            file.write("1")
    except OSError:
        pass


def may_write(page_bytes: int, root: Root = "/") -> bool:
    return os.access(os.path.join(_folder(root, page_bytes), "nr_hugepages"), os.W_OK)


@dataclass(frozen=True)
class Change:
    page_bytes: int
    asked: int  # pages to add, or to give back
    done: int
    total: int  # of the pool afterwards
    by: str  # "sysfs" or the helper's path


def _existing(page_bytes: int, root: Root) -> Pool:
    pool = read(page_bytes, root)
    if pool is None:
        raise CommandError(
            f"--page-size: this kernel has no pages of {size_name(page_bytes)}; "
            "`ropewalk hugepages status` lists the sizes it has"
        )
    return pool


def _set(pool: Pool, wanted: int, root: Root) -> tuple[int, str]:
    """Sets the pool to `wanted` pages by sysfs or the helper; returns (pages now, by what)."""
    if may_write(pool.page_bytes, root):
        return _write(root, pool.page_bytes, wanted), "sysfs"
    helper = find_helper()
    if helper is None:
        raise CommandError(administrator_text(pool.page_bytes, wanted), status=1)
    return _ask_helper(helper, pool.page_bytes, wanted), helper


def reserve(pages: int, page_bytes: int, root: Root = "/") -> Change:
    """Adds pages to the pool; the Change tells how many the kernel really gave."""
    pool = _existing(page_bytes, root)
    now, by = _set(pool, pool.total + pages, root)
    if now < pool.total + pages and by == "sysfs":
        _compact(root)
        now = _write(root, page_bytes, pool.total + pages)
    given = max(0, now - pool.total)
    record = _record(root)
    record[page_bytes] = record.get(page_bytes, 0) + given
    _remember(root, record)
    return Change(page_bytes, pages, given, now, by)


def _remember(root: Root, record: Mapping[int, int]) -> None:
    """Where the record cannot be written (the helper's users), release takes a number instead."""
    try:
        _write_record(root, record)
    except OSError:
        pass


def release(
    root: Root = "/", page_bytes: int | None = None, pages: int | None = None
) -> list[Change]:
    """Gives back what `reserve` added (or `pages`); one Change a page size."""
    record = _record(root)
    if pages is not None:
        record = {page_bytes or SIZES["2M"]: pages}
    elif page_bytes is not None:
        record = {size: count for size, count in record.items() if size == page_bytes}
    changes = []
    for size, count in sorted(record.items()):
        pool = _existing(size, root)
        now, by = _set(pool, max(0, pool.total - count), root)
        changes.append(Change(size, count, pool.total - now, now, by))
        left = _record(root)
        left[size] = left.get(size, 0) - (pool.total - now)
        _remember(root, left)
    return changes


def find_helper() -> str | None:
    """The installed helper, only from where an administrator puts it; never from PATH."""
    return next((path for path in _HELPERS if os.access(path, os.X_OK)), None)


def _ask_helper(helper: str, page_bytes: int, wanted: int) -> int:
    """Runs the helper, or the helper through sudo where sudoers allows that without a password."""
    command = [helper, "set", str(wanted), size_name(page_bytes)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    sudo = shutil.which("sudo")
    if done.returncode == 77 and sudo:  # it lacks the capability
        done = subprocess.run(
            [sudo, "-n", *command], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    if done.returncode not in (0, 3):  # 3: the kernel gave fewer
        raise CommandError(done.stderr.strip() or f"{helper}: status {done.returncode}", status=1)
    return int(done.stdout.split()[0])


def administrator_text(page_bytes: int, wanted: int) -> str:
    """What an ordinary user shows to the administrator."""
    folder = "/" + _FOLDER.format(page_bytes >> 10)
    name = size_name(page_bytes)
    boot = f"hugepagesz={name} hugepages={wanted}"
    return f"""the pool can be changed by root only. An administrator sets up one of these, once:
  now, until the next boot:   echo {wanted} > {folder}/nr_hugepages
  at every boot:              the kernel parameters {boot}
                              (2M also: vm.nr_hugepages = {wanted} in /etc/sysctl.d/hugepages.conf)
  on demand, no fixed pool:   echo {wanted} > {folder}/nr_overcommit_hugepages
  by users, within a limit:   the helper ropewalk-hugepages; see docs/how-to/huge-pages.md
Without any of them ropewalk still gets 2 MiB pages on Linux 6.1 and later, by collapsing ordinary
memory; `ropewalk doctor` tells whether that works here."""


# ---- what the command prints ---------------------------------------------------------------------


def status_lines(root: Root = "/") -> list[str]:
    found = pools(root)
    if not found:
        return ["this kernel has no huge pages (CONFIG_HUGETLBFS is off)"]
    lines = [
        f"{'pages of':<10}{'total':>8}{'free':>8}{'reserved':>10}{'on demand':>11}"
        f"{'available':>11}  size"
    ]
    for pool in found:
        lines.append(
            f"{size_name(pool.page_bytes):<10}{pool.total:>8}{pool.free:>8}{pool.reserved:>10}"
            f"{pool.overcommit:>11}{pool.available:>11}  {readable(pool.total * pool.page_bytes)}"
        )
    for size, pages in sorted(reserved(root).items()):
        lines.append(
            f"{pages} pages of {size_name(size)} were reserved by ropewalk; "
            "`ropewalk hugepages release` gives them back"
        )
    return lines


# Why the kernel gives fewer pages, and what helps.
FRAGMENTED = (
    "the kernel found no more whole blocks: memory is fragmented or in use. End what uses "
    "it, `sync; echo 3 > /proc/sys/vm/drop_caches`, and reserve again, or reserve at boot"
)


def reserve_lines(change: Change) -> list[str]:
    size, name = readable(change.done * change.page_bytes), size_name(change.page_bytes)
    lines = [
        f"{change.done} of {change.asked} pages of {name} reserved ({size}), "
        f"{change.total} in the pool now"
    ]
    if change.done < change.asked:
        lines.append(FRAGMENTED)
    return lines


def release_lines(changes: Sequence[Change]) -> list[str]:
    if not changes:
        return ["nothing reserved by ropewalk; `ropewalk hugepages status` shows the pool"]
    lines = []
    for change in changes:
        lines.append(
            f"{change.done} of {change.asked} pages of {size_name(change.page_bytes)} "
            f"given back, {change.total} in the pool now"
        )
        if change.done < change.asked:
            lines.append("the others are in use; they go back as surplus when their users end")
    return lines
