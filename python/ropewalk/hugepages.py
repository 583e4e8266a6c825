"""The kernel's pool of huge pages: what it holds, growing it, giving back what ropewalk took.

The kernel may give fewer pages than asked for, without an error; every figure here is read back.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .cores import Root
from .errors import CommandError

SIZES = {"2M": 2 << 20, "1G": 1 << 30}
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_POOLS = "sys/kernel/mm/hugepages"
_FOLDER = _POOLS + "/hugepages-{}kB"
# How many pages ropewalk added, by job and by page size; gone after a reboot.
_RECORD = "run/ropewalk/hugepages.json"
_LOCK_SECONDS = 60.0  # the kernel may compact memory so long for another process
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

    @property
    def lasting(self) -> int:
        """Pages that nr_hugepages sets. The surplus goes with its users; it is in `total`, too."""
        return self.total - self.surplus


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


def _record(root: Root) -> dict[str, dict[int, int]]:
    """Pages by job ("" outside of jobs) and page size."""
    try:
        with open(os.path.join(root, _RECORD), encoding="ascii") as file:
            found = json.load(file)
        return {
            job: {int(size): int(pages) for size, pages in sizes.items()}
            for job, sizes in found.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def reserved(root: Root = "/", job: str | None = None) -> dict[int, int]:
    """Pages that `reserve` added, for this job or at all, by page size in bytes."""
    sums: dict[int, int] = {}
    for name, sizes in _record(root).items():
        for size, pages in sizes.items() if job in (None, name) else ():
            sums[size] = sums.get(size, 0) + pages
    return sums


def _write_record(root: Root, record: Mapping[str, Mapping[int, int]]) -> None:
    path = os.path.join(root, _RECORD)
    kept = {
        job: {str(size): pages for size, pages in sizes.items() if pages > 0}
        for job, sizes in record.items()
        if any(pages > 0 for pages in sizes.values())
    }
    if not kept:
        if os.path.exists(path):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        return
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(f"{path}.new", "w", encoding="ascii") as file:
        json.dump(kept, file)
    os.replace(f"{path}.new", path)


@contextlib.contextmanager
def _alone(root: Root) -> Iterator[None]:
    """Keeps other processes from changing pools and the record meanwhile. Every user may lock the
    kernel's folder, so that nobody waits for long."""
    try:
        folder = os.open(os.path.join(root, _POOLS), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # no pools: what follows says so
        yield
        return
    try:
        _lock(folder, time.monotonic() + _LOCK_SECONDS)
        yield
    finally:
        os.close(folder)


def _lock(folder: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"the pool: another process has changed it for {_LOCK_SECONDS:.0f} s "
                    f"(it holds a lock of /{_POOLS}); end it, or try again",
                    status=1,
                ) from None
            time.sleep(0.01)
        except OSError:  # this kernel or container locks nothing there
            return None


def _write(root: Root, page_bytes: int, pages: int) -> None:
    """Asks the kernel for a pool of so many pages."""
    path = os.path.join(_folder(root, page_bytes), "nr_hugepages")
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(pages))
    except OSError as error:
        raise CommandError(
            f"{path}: the kernel refuses {pages} pages: {error.strerror}", status=1
        ) from None


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
    in_use: int = 0  # of the pages given back, those that go when their users end


def _existing(page_bytes: int, root: Root) -> Pool:
    pool = read(page_bytes, root)
    if pool is None:
        raise CommandError(
            f"--page-size: this kernel has no pages of {size_name(page_bytes)}; "
            "`ropewalk hugepages status` lists the sizes it has"
        )
    return pool


def _set(pool: Pool, wanted: int, root: Root) -> tuple[Pool, str]:
    """Sets the pool to `wanted` pages by sysfs or the helper; returns the pool now, by what."""
    if may_write(pool.page_bytes, root):
        _write(root, pool.page_bytes, wanted)
        return _existing(pool.page_bytes, root), "sysfs"
    helper = find_helper()
    if helper is None:
        raise CommandError(administrator_text(pool.page_bytes, wanted), status=1)
    _ask_helper(helper, pool.page_bytes, wanted)
    return _existing(pool.page_bytes, root), helper


def reserve(pages: int, page_bytes: int, root: Root = "/", job: str = "") -> Change:
    """Adds pages to the pool; the Change tells how many the kernel really gave."""
    with _alone(root):
        pool = _existing(page_bytes, root)
        wanted = pool.lasting + pages
        now, by = _set(pool, wanted, root)
        if now.lasting < wanted and by == "sysfs":
            _compact(root)
            now, by = _set(pool, wanted, root)
        given = max(0, now.lasting - pool.lasting)
        record = _record(root)
        sizes = record.setdefault(job, {})
        sizes[page_bytes] = sizes.get(page_bytes, 0) + given
        _remember(root, record)
    return Change(page_bytes, pages, given, now.total, by)


def _remember(root: Root, record: Mapping[str, Mapping[int, int]]) -> None:
    """Where the record cannot be written (the helper's users), release takes a number instead."""
    with contextlib.suppress(OSError):
        _write_record(root, record)


def release(
    root: Root = "/",
    page_bytes: int | None = None,
    pages: int | None = None,
    job: str | None = None,
) -> list[Change]:
    """Gives back what `reserve` added, for this job or at all, or `pages`; one Change a size."""
    with _alone(root):
        if pages is not None:
            counts = {page_bytes or SIZES["2M"]: pages}
        else:
            found = reserved(root, job)
            counts = {size: n for size, n in found.items() if page_bytes in (None, size)}
        return [_release(size, count, root, job) for size, count in sorted(counts.items())]


def _release(size: int, count: int, root: Root, job: str | None) -> Change:
    pool = _existing(size, root)
    now, by = _set(pool, max(0, pool.lasting - count), root)
    done = pool.lasting - now.lasting
    record, left = _record(root), done
    for name, sizes in record.items():
        if job in (None, name):
            taken = min(left, sizes.get(size, 0))
            sizes[size] = sizes.get(size, 0) - taken
            left -= taken
    _remember(root, record)
    return Change(size, count, done, now.total, by, max(0, now.surplus - pool.surplus))


def find_helper() -> str | None:
    """The installed helper, only from where an administrator puts it; never from PATH."""
    return next((path for path in _HELPERS if os.access(path, os.X_OK)), None)


def _ask_helper(helper: str, page_bytes: int, wanted: int) -> None:
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
        if change.in_use:
            lines.append(f"{change.in_use} of them are in use; they go when their users end")
        if change.done < change.asked:
            lines.append("the pool has no more pages that could be given back")
    return lines
