"""What the kernel really lets a process do here: each feature is tried, not looked up.

Needs ctypes and no compiled part of ropewalk. Every probe returns (works, detail); the detail of a
failure is the kernel's own word.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Callable

Result = tuple[bool, str]  # whether it works, and the kernel's word where it does not

_HUGE = 2 << 20
_MADV_POPULATE_WRITE, _MADV_COLLAPSE = 23, 25
_MFD_HUGETLB, _MFD_HUGE_2MB = 0x4, 21 << 26
_SYS_PIDFD_GETFD = 438  # the same number on every architecture
# This is _IOWR('f', 16, struct pm_scan_arg), which has 12 words.
_PAGEMAP_SCAN = (3 << 30) | (96 << 16) | (ord("f") << 8) | 16
_XPMEM_VERSION = ord("x") << 8  # _IO('x', 0)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.syscall.restype = ctypes.c_long
_FAILED = ctypes.c_void_p(-1).value
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FIXED = 0x10


def _error(number: int | None = None) -> str:
    number = ctypes.get_errno() if number is None else number
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


class _Mapping:
    """Two huge pages' worth of a memfd, mapped at a multiple of 2 MiB."""

    def __init__(self, descriptor: int, size: int = _HUGE) -> None:
        self.size = size
        self._range = _libc.mmap(
            None, size + _HUGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        if self._range == _FAILED:
            raise OSError(ctypes.get_errno(), "mmap")
        wanted = -(-self._range // _HUGE) * _HUGE
        self.address = _libc.mmap(
            wanted, size, _READ_WRITE, mmap.MAP_SHARED | _MAP_FIXED, descriptor, 0
        )
        if self.address == _FAILED:
            number = ctypes.get_errno()
            self.close()
            raise OSError(number, "mmap")

    def close(self) -> None:
        _libc.munmap(self._range, self.size + _HUGE)


def _pmd_mapped(address: int) -> int:
    """Bytes of the mapping at `address` that smaps shows on 2 MiB pages."""
    inside = False
    with open("/proc/self/smaps", encoding="ascii", errors="replace") as file:
        for line in file:
            if "-" in line.split(" ", 1)[0] and not line.split(" ", 1)[0].endswith(":"):
                inside = int(line.split("-", 1)[0], 16) == address
            elif inside and line.startswith("ShmemPmdMapped:"):
                return int(line.split()[1]) << 10
    return 0


def collapse() -> Result:
    """A memfd collapsed to 2 MiB pages: no pool, no root (Linux 6.1)."""
    descriptor = os.memfd_create("ropewalk-doctor", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, _HUGE)
        mapping = _Mapping(descriptor)
        try:
            ctypes.c_char.from_address(mapping.address).value = b"\1"
            if _libc.madvise(mapping.address, _HUGE, _MADV_COLLAPSE) != 0:
                return False, f"madvise(MADV_COLLAPSE): {_error()}"
            if _pmd_mapped(mapping.address) < _HUGE:
                return False, "madvise(MADV_COLLAPSE) succeeded, but smaps shows 4 KiB pages"
            return True, "2 MiB pages, verified in smaps"
        finally:
            mapping.close()
    except OSError as error:
        return False, f"{error.filename or error.strerror}: {_error(error.errno)}"
    finally:
        os.close(descriptor)


def hugetlb_memfd() -> Result:
    """A memfd of the pool's 2 MiB pages."""
    try:
        descriptor = os.memfd_create(
            "ropewalk-doctor", os.MFD_CLOEXEC | _MFD_HUGETLB | _MFD_HUGE_2MB
        )
    except OSError as error:
        return False, f"memfd_create(MFD_HUGETLB): {_error(error.errno)}"
    try:
        os.ftruncate(descriptor, _HUGE)
        _Mapping(descriptor).close()
        return True, "the pool has a page to give"
    except OSError as error:
        empty = " (the pool is empty)" if error.errno == errno.ENOMEM else ""
        return False, f"mmap: {_error(error.errno)}{empty}"
    finally:
        os.close(descriptor)


def populate() -> Result:
    """Pages touched with an error code instead of SIGBUS (Linux 5.14)."""
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        done = _libc.madvise(address, mmap.PAGESIZE, _MADV_POPULATE_WRITE) == 0
    return (True, "") if done else (False, f"madvise(MADV_POPULATE_WRITE): {_error()}")


def seals() -> Result:
    """A memfd that no peer can shrink."""
    descriptor = os.memfd_create("ropewalk-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return True, ""
    except OSError as error:
        return False, f"fcntl(F_ADD_SEALS): {_error(error.errno)}"
    finally:
        os.close(descriptor)


def pagemap_scan() -> Result:
    """Page sizes in use, one call a range (Linux 6.7)."""
    try:
        descriptor = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return False, f"/proc/self/pagemap: {_error(error.errno)}"
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            page[0] = 1
            start = ctypes.addressof(ctypes.c_char.from_buffer(page))
            regions = (ctypes.c_uint64 * 3)()
            request = bytearray(
                struct.pack(
                    "12Q",
                    96,
                    0,
                    start,
                    start + mmap.PAGESIZE,
                    0,
                    ctypes.addressof(regions),
                    1,
                    0,
                    0,
                    0,
                    1 << 3,
                    1 << 3,
                )
            )  # category PAGE_IS_PRESENT
            fcntl.ioctl(descriptor, _PAGEMAP_SCAN, request)
            found = regions[1] == start + mmap.PAGESIZE
        return (True, "") if found else (False, "ioctl(PAGEMAP_SCAN) did not find a touched page")
    except OSError as error:
        return False, f"ioctl(PAGEMAP_SCAN): {_error(error.errno)}"
    finally:
        os.close(descriptor)


# ---- what ranks may do with each other -----------------------------------------------------------


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


_SECRET = b"ropewalk"


def _read_peer(peer: int, address: int) -> int:
    """0, or the error number of process_vm_readv."""
    _libc.process_vm_readv.restype = ctypes.c_ssize_t
    own = ctypes.create_string_buffer(len(_SECRET))
    local = _Iovec(ctypes.addressof(own), len(_SECRET))
    remote = _Iovec(address, len(_SECRET))
    done = _libc.process_vm_readv(
        ctypes.c_int(peer),
        ctypes.byref(local),
        ctypes.c_ulong(1),
        ctypes.byref(remote),
        ctypes.c_ulong(1),
        ctypes.c_ulong(0),
    )
    if done < 0:
        return ctypes.get_errno()
    return 0 if own.raw == _SECRET else errno.EIO


def _take_descriptor(peer: int, descriptor: int) -> int:
    """0, or the error number of pidfd_open or pidfd_getfd."""
    try:
        handle = os.pidfd_open(peer)
    except OSError as error:
        return error.errno or errno.EIO
    got = _libc.syscall(
        ctypes.c_long(_SYS_PIDFD_GETFD),
        ctypes.c_int(handle),
        ctypes.c_int(descriptor),
        ctypes.c_uint(0),
    )
    return 0 if got >= 0 else ctypes.get_errno()


def _child(work: Callable[[], None]) -> int:
    """Forks; the child does `work` and ends without running anything else of this program."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def between_ranks() -> dict[str, Result]:
    """What one rank may do to another: siblings, as ranks of one launcher are (a parent may do
    more). Returns {"cma": (works, detail), "pidfd_getfd": (works, detail)}."""
    secret = ctypes.create_string_buffer(_SECRET, len(_SECRET))
    wait_end, keep_end = os.pipe()
    answer_end, write_end = os.pipe()

    def sleep() -> None:
        os.close(keep_end)
        os.close(answer_end)
        os.read(wait_end, 1)  # ends when the parent closes, or is killed

    peer = _child(sleep)

    def ask() -> None:
        results = (_read_peer(peer, ctypes.addressof(secret)), _take_descriptor(peer, wait_end))
        os.write(write_end, struct.pack("2i", *results))

    asker = _child(ask)
    os.close(write_end)
    answer = os.read(answer_end, 8)
    for descriptor in (answer_end, keep_end, wait_end):
        os.close(descriptor)
    for child in (asker, peer):
        os.waitpid(child, 0)
    numbers = struct.unpack("2i", answer) if len(answer) == 8 else (errno.EIO, errno.EIO)
    names = ("process_vm_readv", "pidfd_getfd")
    told = [
        (True, "") if number == 0 else (False, f"{name}: {_error(number)}")
        for name, number in zip(names, numbers, strict=True)
    ]
    return {"cma": told[0], "pidfd_getfd": told[1]}


def xpmem(device: str = "/dev/xpmem") -> Result:
    """The kernel module that attaches private memory of other ranks. Asked in a child: the module
    lets go of all that a process attached when it closes the device."""
    answer_end, write_end = os.pipe()

    def ask() -> None:
        number = 0
        try:
            fcntl.ioctl(os.open(device, os.O_RDWR | os.O_CLOEXEC), _XPMEM_VERSION)
        except OSError as error:
            number = error.errno or errno.EIO
        os.write(write_end, struct.pack("i", number))

    child = _child(ask)
    os.close(write_end)
    answer = os.read(answer_end, 4)
    os.close(answer_end)
    os.waitpid(child, 0)
    number = struct.unpack("i", answer)[0] if len(answer) == 4 else errno.EIO
    return (True, "") if number == 0 else (False, f"{device}: {_error(number)}")


def every() -> dict[str, dict[str, object]]:
    """All probes by name: {"works": bool, "detail": str}."""
    found = {
        "madv_collapse": collapse(),
        "hugetlb_memfd": hugetlb_memfd(),
        "madv_populate_write": populate(),
        "memfd_seals": seals(),
        "pagemap_scan": pagemap_scan(),
        **between_ranks(),
        "xpmem": xpmem(),
    }
    return {name: {"works": works, "detail": detail} for name, (works, detail) in found.items()}
