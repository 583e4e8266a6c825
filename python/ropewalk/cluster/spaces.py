"""The kernel's part of a box: namespaces, the rights in them, and their mounts.

As root where that is enough; an ordinary user becomes the owner of a user namespace and keeps their
name in it, so that files belong to the same person inside and outside.
"""

import ctypes
import os
import signal
import struct

from . import session

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_SPACES = _CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_CAP_AMBIENT = 1, 15, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _unshare(flags: int, what: str) -> None:
    _checked(_libc.unshare(flags), what)


def mount(
    source: str | None,
    target: str,
    kind: str | None = None,
    flags: int = 0,
    data: str | None = None,
) -> None:
    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    result = _libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data))
    _checked(result, f"mount {kind or source} on {target}")


def _prctl(*arguments: int) -> int:
    result: int = _libc.prctl(*(ctypes.c_ulong(one) for one in arguments))
    return result


def die_with(parent: int) -> None:
    die_with_parent()
    if os.getppid() != parent:  # it died before
        os._exit(1)


def _has_capability(number: int) -> bool:
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> number & 1)
    return False


# ---- privileges ----------------------------------------------------------------------------------


def isolate() -> None:
    """Namespaces for the children of this process: its own rights where they are enough, else as
    the owner of a user namespace in which it keeps its name."""
    if _has_capability(_CAP_SYS_ADMIN) and _has_capability(_CAP_NET_ADMIN):
        try:
            return _unshare(_SPACES, "namespaces")
        except OSError:
            pass
    user, group = os.geteuid(), os.getegid()
    _unshare(_CLONE_NEWUSER | _SPACES, "an unprivileged user namespace")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    _keep_capabilities()
    return None


def _keep_capabilities() -> None:
    """For `ip` and `tc`: an ordinary user's program loses what is not ambient."""
    header = struct.pack("<Ii", 0x20080522, 0)
    data = ctypes.create_string_buffer(24)
    _checked(_libc.capget(header, data), "capget")
    words = list(struct.unpack("<6I", data.raw))
    words[2], words[5] = words[1], words[4]  # inheritable = permitted
    _checked(_libc.capset(header, struct.pack("<6I", *words)), "capset")
    for number in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN):
        _prctl(_PR_CAP_AMBIENT, _AMBIENT_RAISE, number, 0, 0)


def name_process(name: str) -> None:
    """What `ps` and /proc/PID/comm show."""
    _libc.prctl(_PR_SET_NAME, ctypes.create_string_buffer(name.encode()), 0, 0, 0)


def drop_capabilities() -> None:
    """Before a command of the user's."""
    _prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)


def die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def separate() -> None:
    """Namespaces of its own for this process, and for its children those of processes."""
    _unshare(_SPACES, "a node's namespaces")


_SWITCH_BYTES = 16 << 20  # sockets and a few lines of text
_LEAST_BYTES = 16 << 20


def shared_memory_bytes(share: float) -> int:
    """Of a node's /dev/shm: Linux gives a machine half its memory, and the nodes share that, so
    that all together can have what they are promised."""
    pages = int(os.sysconf("SC_PHYS_PAGES") / 2 * share)
    return max(_LEAST_BYTES, pages * os.sysconf("SC_PAGE_SIZE"))


def fresh_mounts(first: bool, share: float = 1.0) -> None:
    """/proc and /sys of this namespace, and a /dev/shm with nothing of others in it; `share`: of
    the machine, that is this node's."""
    mount(None, "/", flags=_MS_REC | _MS_PRIVATE)
    box = -1 if first else os.open(session.FOLDER, os.O_PATH | os.O_DIRECTORY)
    size = _SWITCH_BYTES if first else shared_memory_bytes(share)
    mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=1777,size={size}")
    os.mkdir(session.FOLDER, 0o755)
    if not first:
        mount(f"/proc/self/fd/{box}", session.FOLDER, flags=MS_BIND)
        os.close(box)
    mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    mount("sysfs", "/sys", "sysfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
