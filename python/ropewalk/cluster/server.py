"""Process 1 of a namespace of a box: serves a socket, and reaps whatever ends.

One thread that must not fail: what one connection brings (a request that is none, a fork that the
kernel refuses, a client that stops in the middle) is the trouble of that connection alone.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import socket
import time
from collections.abc import Sequence

from . import session, spaces

TYPE_CHECKING = False  # as in session.py
if TYPE_CHECKING:
    from .session import Request

# Files of a command start here while they are moved: above those that they are moved to, and above
# what received ones usually are.
_FIRST_MOVED = 32
_PAUSE_SECONDS = 0.02  # where accept() itself fails, as it does without free file descriptors
_FAILED = 126  # exit status of what could not be started, as a shell has it


class Server:
    """Serves one socket."""

    def __init__(self, name: str) -> None:
        self.selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(os.path.join(session.FOLDER, name))
        self._listener.listen(64)
        self._listener.setblocking(False)  # a client may have left before accept()
        self.selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._woken, waker = socket.socketpair()
        for one in (self._woken, waker):
            one.setblocking(False)
        self._waker = waker
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self.selector.register(self._woken, selectors.EVENT_READ, self._reap)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select(self.patience()):
                self._handle(key)
            try:
                self.look()
            except Exception:  # no descriptor left, say: it is tried again
                time.sleep(_PAUSE_SECONDS)

    def patience(self) -> float | None:
        """Seconds until look() is wanted; None: not before something happens."""
        return None

    def look(self) -> None:
        pass

    def _handle(self, key: selectors.SelectorKey) -> None:
        try:
            key.data()
        except Exception:
            if key.fileobj in (self._listener, self._woken):
                time.sleep(_PAUSE_SECONDS)  # it is asked again at once
            elif isinstance(key.fileobj, socket.socket):
                self.drop(key.fileobj)

    def drop(self, connection: socket.socket) -> None:
        try:
            self.selector.unregister(connection)
        except (KeyError, ValueError):  # not registered, or closed
            pass
        connection.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        # The request is not received here, so that a client that is stopped before it has sent
        # keeps nobody waiting.
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._receive(connection))

    def _receive(self, connection: socket.socket) -> None:
        request, files = session.receive_request(connection)
        try:
            if request is None:
                self.drop(connection)
            else:
                self.selector.unregister(connection)
                self.take(connection, request, files)
        except Exception:
            self.drop(connection)
        finally:
            for file in files:
                os.close(file)

    def _reap(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            pass
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            self.ended(process, os.waitstatus_to_exitcode(status))

    def take(self, connection: socket.socket, request: Request, files: Sequence[int]) -> None:
        """Owns the connection from here on; the files are closed after it."""
        raise NotImplementedError

    def ended(self, process: int, status: int) -> None:
        pass


class Node(Server):
    """Starts commands, passes signals to them, tells how they ended."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._name = name
        # process: (connection, whether it has a session of its own)
        self._running: dict[int, tuple[socket.socket | None, bool]] = {}

    def take(self, connection: socket.socket, request: Request, files: Sequence[int]) -> None:
        own_group = bool(request["own_group"])
        # A signal that comes before the child has restored its handlers waits until then.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            process = os.fork()
            if process == 0:
                _become(request, files, mask)
        except OSError as error:
            self._refuse(connection, files, error)
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._running[process] = (connection, own_group)
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._hear(process))

    def _refuse(self, connection: socket.socket, files: Sequence[int], error: OSError) -> None:
        text = f"ropewalk cluster: {self._name}: no process for it: {error.strerror}\n"
        try:
            if len(files) == 3:
                os.write(files[2], text.encode())
        except OSError:
            pass
        _answer(connection, _FAILED)

    def _hear(self, process: int) -> None:
        connection, own_group = self._running.get(process, (None, False))
        if connection is None:  # it ended in this very round
            return
        try:
            text = connection.recv(64)
        except OSError:
            text = b""
        words = text.split()
        if words and all(word.isdigit() for word in words):
            for word in words:
                self._signal(process, int(word), False)
            return
        self.drop(connection)
        self._running[process] = (None, own_group)
        self._signal(process, signal.SIGHUP, own_group)

    def _signal(self, process: int, number: int, group: bool) -> None:
        for tell in (os.killpg, os.kill) if group else (os.kill,):
            try:
                tell(process, number)
                return
            except (OSError, OverflowError):  # it has ended, it has no group yet; or no such signal
                continue

    def ended(self, process: int, status: int) -> None:
        connection, _ = self._running.pop(process, (None, False))
        if connection is not None:
            self.selector.unregister(connection)
            _answer(connection, status if status >= 0 else 128 - status)


def _answer(connection: socket.socket, status: int) -> None:
    try:
        connection.sendall(f"{status}\n".encode())
    except OSError:
        pass
    connection.close()


def _become(request: Request, files: Sequence[int], mask: set[int | signal.Signals]) -> None:
    """In the child: never returns."""
    words = [""]
    try:
        signal.set_wakeup_fd(-1)
        _take_files(files)
        words = request["words"]
        if request["own_group"]:
            os.setsid()
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        spaces.drop_capabilities()
        os.chdir(request["directory"])
        os.execvpe(words[0], words, request["environment"])
    except OSError as error:
        what = request["directory"] if error.filename == request["directory"] else words[0]
        os.write(2, f"ropewalk cluster: {what}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else _FAILED)
    finally:
        os._exit(_FAILED)


def _take_files(files: Sequence[int]) -> None:
    """They become 0, 1 and 2, and nothing else stays open. All are moved away first: one may lie
    where another is to go."""
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _FIRST_MOVED) for file in files]
    for at, file in enumerate(moved):
        os.dup2(file, at)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
