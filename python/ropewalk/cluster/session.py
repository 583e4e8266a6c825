"""Commands on the nodes of a box: the calling side, and the `ssh` that programs find there.

A node listens on a socket in FOLDER. Standard input, output and error of a command go along as they
are, so that what it writes passes through nobody. Only what starting needs is imported: a launcher
waits for it once a node.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence

TYPE_CHECKING = False  # as typing has it, whose import a bare interpreter would pay for
if TYPE_CHECKING:
    from typing import Any

    Request = dict[str, Any]  # as JSON carries it; answers, too

# The box has a tmpfs in each of its namespaces. From outside it is /proc/PID/root + FOLDER.
FOLDER = "/dev/shm/.ropewalk"
CONTROL = "switch"  # the socket that cuts links


def folder(box: int | None = None) -> str:
    """Where the sockets of a box are: of this one (None), or of that of process `box`."""
    return FOLDER if box is None else f"/proc/{box}/root{FOLDER}"


def send_request(path: str, request: Request, descriptors: Sequence[int] = ()) -> socket.socket:
    """Connects and hands over a request and open files; returns the socket."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.connect(path)
    memory = os.memfd_create("ropewalk-request")
    try:
        data = json.dumps(request, ensure_ascii=True).encode()
        with os.fdopen(os.dup(memory), "wb") as file:
            file.write(data)
        numbers = array.array("i", [memory, *descriptors])
        made.sendmsg([b"R"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
    finally:
        os.close(memory)
    return made


def receive_request(connection: socket.socket) -> tuple[Request | None, tuple[int, ...]]:
    """(request, descriptors); (None, ()) where the other side has left, or what it sent is no
    request. Call it when there is something to be read."""
    room = socket.CMSG_SPACE(8 * array.array("i").itemsize)
    flags = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
    data, ancillary, told, _ = connection.recvmsg(1, room, flags)
    numbers = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    request = None
    # Cut short: there was no free descriptor for one of the files.
    if data and numbers and not told & socket.MSG_CTRUNC:
        request = _read_request(numbers[0])
    if request is None:
        for number in numbers:
            os.close(number)
        return None, ()
    os.close(numbers[0])
    return request, tuple(numbers[1:])


def _read_request(file: int) -> Request | None:
    """The JSON object in a file; None where there is none. A pipe would be waited for."""
    try:
        size = os.fstat(file).st_size
        request = json.loads(os.pread(file, size, 0))
    except (OSError, ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def call(path: str, request: Request) -> Request:
    """A request that is answered by one line of JSON."""
    with send_request(path, request) as connection, connection.makefile("r") as lines:
        answer: Request = json.loads(lines.readline() or "{}")
        return answer


class Command:
    """A command that runs on a node."""

    def __init__(
        self,
        path: str,
        words: Iterable[str],
        environment: Mapping[str, str],
        directory: str | None = None,
        files: Sequence[int] = (0, 1, 2),
        own_group: bool = False,
    ) -> None:
        request = {
            "words": list(words),
            "environment": dict(environment),
            "directory": directory or os.getcwd(),
            "own_group": own_group,
        }
        opened = []
        try:
            for number in files:
                try:
                    os.fstat(number)
                    opened.append(number)
                except OSError:  # closed: as a shell gives it
                    opened.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
            self._connection = send_request(path, request, opened)
        finally:
            for number in set(opened) - set(files):
                os.close(number)
        self._text = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def signal(self, number: int) -> None:
        try:
            self._connection.sendall(f"{number}\n".encode())
        except OSError:  # it has ended
            pass

    def status(self) -> int:
        """Waits for the end; the exit status as a shell gives it. A node that is gone: 255, as ssh
        has it."""
        while not self._text.endswith(b"\n"):
            try:
                more = self._connection.recv(64)
            except InterruptedError:
                continue
            except OSError:
                more = b""
            if not more:
                return 255
            self._text += more
        return int(self._text)

    def close(self) -> None:
        self._connection.close()


_WITH_VALUE = "bcDEeFIiJLlmOopQRSWw"  # of ssh's options


def ssh_words(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """(host, words of the command) of ssh's arguments."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if len(option) == 2 and option[1] in _WITH_VALUE and rest:
            rest.pop(0)
    rest = rest[1:] if rest[:1] == ["--"] else rest
    host = rest.pop(0).rpartition("@")[2] if rest else None
    return host, rest


def ssh(arguments: Sequence[str]) -> int:
    """`ssh [options] NODE [command ...]` inside a box."""
    host, words = ssh_words(arguments)
    name = (host or "").partition(".")[0].partition("-rail")[0]
    path = os.path.join(FOLDER, name)
    if not name or name == CONTROL or not os.path.exists(path):
        known = os.environ.get("ROPEWALK_BOX_NODES", "")
        names = ", ".join(part.partition(":")[0] for part in known.split(",") if part)
        sys.stderr.write(f"ssh: {host}: no node of this box (they are {names})\n")
        return 255
    shell = ["/bin/sh", "-c", " ".join(words)] if words else [os.environ.get("SHELL", "/bin/sh")]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # we end, and the node ends what we started
    try:
        command = Command(path, shell, os.environ, own_group=bool(words))
    except OSError as error:
        sys.stderr.write(f"ssh: {host}: {error.strerror}\n")
        return 255
    return command.status()
