"""What an asynchronous call returns: a torch.distributed.Work."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .. import _core
from ..exceptions import PeerDeadError


class CompleteWork(dist.Work):
    """Of a call that was complete when it returned. One for all of them: making one costs more
    than a small collective does."""

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


class PendingWork(dist.Work):
    """Of calls that threads of the group make, one after the other.

    `after`, where there is one, puts the result into the tensors. It runs once: in wait(), or
    before the future is told.
    """

    def __init__(
        self,
        started: Sequence[_core.StartedCall],
        tensors: list[torch.Tensor],
        after: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._started = started
        self._tensors = tensors
        self._after = after
        self._lock = threading.Lock()
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        for each in self._started:
            each.wait()
        self._put()
        return True

    def _put(self) -> None:
        with self._lock:
            after, self._after = self._after, None
            if after is not None:
                after()

    def is_completed(self) -> bool:
        try:
            return all(each.test() for each in self._started)
        except Exception:  # wait() raises it
            return True

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        try:
            for each in self._started:
                each.test()
        except Exception as error:
            return error
        return None

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return self._tensors

    def get_future(self) -> Any:
        if self._future is None:
            self._future = torch.futures.Future()
            self._started[-1].tell(self._complete)
        return self._future

    def _complete(self) -> None:
        """By the thread of the group, behind the last of the calls."""
        assert self._future is not None
        error = self.exception()
        if error is None:
            self._put()
            self._future.set_result(self._tensors)
        else:
            self._future.set_exception(error)


class MessageWork(dist.Work):
    """Of a message that is sent or received. `after` as for PendingWork."""

    def __init__(
        self,
        started: _core.StartedMessage,
        tensor: torch.Tensor,
        patience: float,
        what: str,
        after: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._started = started
        self._tensor = tensor
        self._patience = patience
        self._what = what
        self._after = after
        self._future: torch.futures.Future[list[torch.Tensor]] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = self._patience
        if timeout is not None and timeout > timedelta(0):
            seconds = timeout.total_seconds()
        if not self._started.wait(seconds):
            raise PeerDeadError(
                f"time-out: {self._what} was not complete within {math.ceil(seconds)} s; look at "
                "what that rank does, or allow more time"
            )
        self._put()
        return True

    def _put(self) -> None:
        after, self._after = self._after, None
        if after is not None:
            after()

    def is_completed(self) -> bool:
        try:
            return self._started.test()
        except Exception:  # wait() raises it
            return True

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        try:
            self._started.test()
        except Exception as error:
            return error
        return None

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._started.source()

    _source_rank = source_rank

    def result(self) -> list[torch.Tensor]:
        self.wait()
        return [self._tensor]

    def get_future(self) -> Any:
        if self._future is None:
            self._future = torch.futures.Future()
            self._started.tell(self._complete)
        return self._future

    def _complete(self) -> None:
        assert self._future is not None
        error = self.exception()
        if error is None:
            self._put()
            self._future.set_result([self._tensor])
        else:
            self._future.set_exception(error)


COMPLETE = CompleteWork()
