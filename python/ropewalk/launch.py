"""Starts a launcher, passes signals to it, and ends every process that it leaves behind.

ropewalk stays as the parent: it adopts what the launcher orphans (PR_SET_CHILD_SUBREAPER), so ranks
whose launcher was killed end, too. The launcher gets SIGTERM if ropewalk itself is killed.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from .errors import CommandError

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SI_KERNEL = 0x80  # sent by the kernel, as the terminal's Ctrl-C is: the launcher got it, too
_GRACE_SECONDS = 2.0  # for ranks to end by themselves once their launcher has

_PASSED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def start(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs the command to its end; returns its exit status, 128 + N where signal N ended it."""
    return start_one_of(command, environment)[0]


def start_one_of(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int | None]:
    """As start(), for several in a row: returns the status and the last signal passed on, or
    None."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Blocked, not handled: sigwaitinfo below takes them one by one, and none is lost.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED, signal.SIGCHLD))
    try:
        sys.stdout.flush()
        child = _fork(command, environment, prctl)
        status, passed = _wait(child)
        _end_orphans()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _exit_status(status), passed


def _fork(command: Sequence[str], environment: Mapping[str, str], prctl: Callable[..., int]) -> int:
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        raise CommandError(
            f"no process for {command[0]}: {error.strerror}; see `ulimit -u` and the pids.max of "
            "the control group",
            status=1,
        ) from None
    if child == 0:
        _become(command, environment, prctl, parent)
    return child


def _become(
    command: Sequence[str], environment: Mapping[str, str], prctl: Callable[..., int], parent: int
) -> None:
    """In the child: never returns."""
    try:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before prctl
            os._exit(1)
        if not _stdin_is_useful():
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            if null > 0:
                os.close(null)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_PASSED, signal.SIGCHLD))
        # Python ignores this one; programs expect the default.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(command[0], list(command), environment)
    except OSError as error:
        sys.stderr.write(f"ropewalk run: {command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    finally:
        os._exit(126)


def _stdin_is_useful() -> bool:
    """A terminal in the foreground, a file, or a pipe that somebody may still write to. Launchers
    stop, or read for nothing, with anything else."""
    import select
    import stat

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False  # closed
    if os.isatty(0):
        try:
            return os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return False
    if stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    poll = select.poll()
    poll.register(0, select.POLLIN)
    events = dict(poll.poll(0)).get(0, 0)
    return bool(events & select.POLLIN) or not events & select.POLLHUP


def _wait(child: int) -> tuple[int, int | None]:
    """Passes signals on until the child ends; returns its wait status and the last of them."""
    passed = None
    while True:
        info = signal.sigwaitinfo((*_PASSED, signal.SIGCHLD))
        if info.si_signo != signal.SIGCHLD:
            passed = info.si_signo
            if info.si_code != _SI_KERNEL:
                os.kill(child, info.si_signo)
            continue
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0, passed
            if ended == child:
                return status, passed
            if ended == 0:
                break


def _end_orphans() -> None:
    """Ends what the launcher has left: first it waits for these processes, then it sends SIGKILL.
    Only our own children."""
    deadline = time.monotonic() + _GRACE_SECONDS
    pause = 0.001
    while _reap():
        if time.monotonic() > deadline:
            for orphan in _children():
                try:
                    os.kill(orphan, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            deadline = time.monotonic() + _GRACE_SECONDS
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _reap() -> bool:
    """True while there are children that have not ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    except ChildProcessError:
        return False


def _children() -> Iterator[int]:
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == own:
                yield int(name)


def _exit_status(status: int) -> int:
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)
