"""The torch.distributed.Work objects that the calls of a process group return."""

from __future__ import annotations

import _thread
import atexit
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .. import _core
from ..exceptions import Error, PeerDeadError
from .exceptions import for_torch
from .profiling import entered, leave, profiling


class Completions:
    """The threads that complete futures, each with what follows its future.

    The interpreter waits for them before it ends: a thread that would come back from C++ to Python
    after that is ended inside of torch's destructors, which aborts the process.
    """

    # For what follows a future and waits for a rank that is gone, and for a call that does.
    _PATIENCE_SECONDS = 10.0

    def __init__(self) -> None:
        self._forget()
        atexit.register(self.wait)
        os.register_at_fork(after_in_child=self._forget)  # the threads are the parent's

    def _forget(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._expected = 0  # threads that start when their calls are complete

    def start(self, complete: Callable[[], None]) -> None:
        with self._changed:
            self._running += 1
        self._start(complete)

    def start_after(
        self, tell: Callable[[Callable[[], None]], None], complete: Callable[[], None]
    ) -> None:
        """Starts a thread when `tell` calls the function that it is given, which it does when a
        call is complete. The thread counts from now on: the program may end before that."""

        begun = False

        def begin() -> None:
            nonlocal begun
            with self._changed:
                begun = True
                self._expected -= 1
                self._running += 1
            self._start(complete)

        with self._changed:
            self._expected += 1
        try:
            tell(begin)
        except BaseException:
            with self._changed:
                if not begun:
                    self._expected -= 1
            raise

    def _start(self, complete: Callable[[], None]) -> None:
        try:
            _thread.start_new_thread(self._run, (complete,))
        except BaseException:
            self._end()
            raise

    def _run(self, complete: Callable[[], None]) -> None:
        try:
            complete()
        finally:
            self._end()

    def _end(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def wait(self) -> None:
        # After an uncaught exception the others may not come to the calls, and wait for this rank
        # to be gone.
        failed = hasattr(sys, "last_value")
        with self._changed:
            self._changed.wait_for(
                lambda: self._running == 0 and (failed or self._expected == 0),
                self._PATIENCE_SECONDS,
            )


COMPLETIONS = Completions()


class CompleteWork(dist.Work):
    """Stands for a call that was complete when it returned.

    All such calls share one object: making one costs more than a small collective does.
    """

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def get_future(self) -> Any:
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        future.set_result([])
        return future


class FinishedWork(CompleteWork):
    """Stands for a call that was complete when it returned although the caller would not have
    waited, and whose future has its tensors."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        self._tensors = tensors

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def get_future(self) -> Any:
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        future.set_result(self._tensors)
        return future


def _late(what: str, at: str, seconds: float) -> PeerDeadError:
    return PeerDeadError(
        f"{what} was not complete within the timeout of {math.ceil(seconds)} s; look at what {at}, "
        "or allow more time"
    )


class BackgroundWork(dist.Work):
    """Is what work in the background has in common; a subclass knows how to wait for it.

    `after`, where there is one, puts the result into the tensors. It runs once: in wait(), in the
    first question that finds the work complete, or before the future is told. It may fail; each
    wait() then raises its error.
    """

    members: tuple[int, ...] = ()  # as for_torch() takes them

    def __init__(self, tensors: list[torch.Tensor], after: Callable[[], None] | None) -> None:
        super().__init__()
        self._tensors = tensors
        self._after = after
        # Another thread may run `after`, but tensors made in inference mode are written only in it.
        self._infers = after is not None and torch.is_inference_mode_enabled()
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None
        self._told = False  # the future is complete, or about to be

    def _wait(self, timeout: timedelta | None) -> None:
        """Waits until the work is complete, and raises what has gone wrong."""
        raise NotImplementedError

    def _test(self) -> bool:
        """Returns whether the work is complete, and raises what has gone wrong."""
        raise NotImplementedError

    def _tell(self, complete: Callable[[], Any]) -> None:
        """Has a thread of the group call `complete` when the work is complete."""
        raise NotImplementedError

    def wait(self, timeout: timedelta | None = None) -> bool:
        record = entered("wait", (self._tensors,)) if profiling() else None
        try:
            self._wait(timeout)
            self._put()
            if self._future is not None:  # a program may look at it at once
                self._complete()
        except Error as error:
            raise for_torch(error, self.members) from None
        finally:
            if record is not None:
                leave(record)
        return True

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._tensors

    def is_completed(self) -> bool:
        try:
            return self._is_put()
        except Exception:  # wait() raises it
            return True

    def exception(self) -> Exception | None:
        try:
            self._is_put()
        except Exception as error:
            return for_torch(error, self.members)
        return None

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def get_future(self) -> Any:
        if self._future is None:
            self._future = torch.futures.Future()
            if self.is_completed():
                self._complete()
            else:
                # What follows the future may wait for another call of the group, so the thread
                # that makes the calls must not run it.
                COMPLETIONS.start_after(self._tell, self._complete)
        return self._future

    def _is_put(self) -> bool:
        """Returns whether the work is complete, with its result in the tensors."""
        if not self._test():
            return False
        self._put()
        return True

    def _put(self) -> None:
        if self._after is not None:
            with self._lock:
                if self._after is not None:  # no other thread has been here before
                    self._run(self._after)
        if self._error is not None:
            raise self._error

    def _run(self, after: Callable[[], None]) -> None:
        try:
            with torch.inference_mode(self._infers), torch.no_grad():
                after()
        except Exception as error:
            self._error = error
        self._after = None  # last, for others look at it without the lock

    def _complete(self) -> None:
        """Completes the future, or waits until another thread has done so, which is about to."""
        assert self._future is not None
        error = self.exception()
        with self._lock:
            first, self._told = not self._told, True
        if not first:
            while not self._future.done():
                time.sleep(0)
        elif error is None:
            self._future.set_result(self._tensors)
        else:
            self._future.set_exception(error)


class PendingWork(BackgroundWork):
    """Stands for calls that threads of the group make, one after the other."""

    def __init__(
        self,
        started: Sequence[_core.StartedCall],
        tensors: list[torch.Tensor],
        after: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(tensors, after)
        self._started = started

    def _wait(self, timeout: timedelta | None) -> None:
        if timeout is not None and timeout > timedelta(0):
            self._wait_for(timeout.total_seconds())
        for each in self._started:
            each.wait()

    def _wait_for(self, seconds: float) -> None:
        """Waits at most so long. The calls go on after that, and may be waited for again."""
        end = time.monotonic() + seconds
        pause = 1e-5
        while not self._test():
            if time.monotonic() > end:
                raise _late("a collective", "the other ranks do", seconds)
            time.sleep(pause)
            pause = min(2 * pause, 1e-3)

    def _test(self) -> bool:
        states = [each.test() for each in self._started]  # all, for an error of any is raised
        return all(states)

    def _tell(self, complete: Callable[[], Any]) -> None:
        self._started[-1].tell(complete)  # the last call is complete after the others


class MessageWork(BackgroundWork):
    """Stands for a message that is sent or received."""

    def __init__(
        self,
        started: _core.StartedMessage,
        tensor: torch.Tensor,
        patience: float,
        what: str,
        after: Callable[[], None] | None = None,
    ) -> None:
        super().__init__([tensor], after)
        self._started = started
        self._patience = patience
        self._what = what

    def _wait(self, timeout: timedelta | None) -> None:
        seconds = self._patience
        if timeout is not None and timeout > timedelta(0):
            seconds = timeout.total_seconds()
        if not self._started.wait(seconds):
            raise _late(self._what, "that rank does", seconds)

    def _test(self) -> bool:
        return self._started.test()

    def _tell(self, complete: Callable[[], Any]) -> None:
        self._started.tell(complete)

    def source_rank(self) -> int:
        return self._started.source()

    _source_rank = source_rank


COMPLETE = CompleteWork()
