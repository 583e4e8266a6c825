"""This module has the barrier that says which ranks have not come: `monitored_barrier`, as Gloo has
it. Its ranks meet in torch's store and not in shared memory, so that a group can be used after a
barrier that failed, and nothing of a call that is under way can hold it up."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from ..exceptions import ArgumentError, PeerDeadError
from .base import Base
from .exceptions import for_torch, with_ranks_of_the_job

if TYPE_CHECKING:
    import torch.distributed as dist

# A wait in the store ends this often, so that Python sees an interrupt.
_LOOK_AFTER = timedelta(seconds=0.2)
# So much longer the others wait for the answer of rank 0, which may have begun its wait later.
_LEAST_GRACE_SECONDS = 1.0


def _seconds(timeout: timedelta | float) -> float:
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not seconds > 0:
        raise ArgumentError(f"timeout: {seconds} s, expected more than 0")
    return seconds


class _Deadline:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.milliseconds = round(seconds * 1000)

    def again(self) -> _Deadline:
        return _Deadline(max(_LEAST_GRACE_SECONDS, self.milliseconds / 1000))

    def meets(self, store: dist.Store, key: str) -> bool:
        """Waits for the key; says whether it came in time."""
        while not store.check([key]):
            left = timedelta(seconds=self._end - time.monotonic())
            if left <= timedelta(0):
                return False
            try:
                store.wait([key], min(left, _LOOK_AFTER))
            except RuntimeError:  # it has not come yet; check() raises where the store is gone
                continue
        return True


class Monitoring(Base):
    # How many such barriers this rank has called.
    _barriers = 0

    def monitored_barrier(
        self, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
    ) -> None:
        """Waits until all ranks have come, and raises an error on every rank where one has not come
        to rank 0 within `timeout` (that of the group). The error of ranks that have come names it;
        with `wait_all_ranks` it names all that are missing, not the first alone."""
        try:
            deadline = _Deadline(_seconds(self._patience if timeout is None else timeout))
            if self._ranks.closed():
                raise ArgumentError("process group: destroyed, expected one in use")
            self._barriers += 1
            if self._my_rank == 0:
                self._monitor(deadline, wait_all_ranks)
            else:
                self._report(deadline)
        except Exception as error:
            raise for_torch(error) from None

    def _monitor(self, deadline: _Deadline, wait_all_ranks: bool) -> None:
        store, missing = self._formation.store, list[int]()
        for rank in range(1, self._group_size):
            if not deadline.meets(store, f"monitored/{self._barriers}/{rank}"):
                missing.append(rank)
                if not wait_all_ranks:
                    break
        answer = json.dumps([deadline.milliseconds, missing])
        store.set(f"monitored/{self._barriers}", answer)
        if missing:
            raise self._missing(deadline.milliseconds, missing)
        # All have come to this barrier, and so have left the one before.
        store.delete_key(f"monitored/{self._barriers - 1}")
        for rank in range(1, self._group_size):
            store.delete_key(f"monitored/{self._barriers}/{rank}")

    def _report(self, deadline: _Deadline) -> None:
        store, answer = self._formation.store, f"monitored/{self._barriers}"
        store.set(f"{answer}/{self._my_rank}", "")
        if not deadline.meets(store, answer) and not deadline.again().meets(store, answer):
            raise PeerDeadError(
                f"Rank {self._my_rank} timed out in monitoredBarrier after {deadline.milliseconds} "
                "ms: rank 0 has not answered; see what it does, or allow more time"
            )
        milliseconds, missing = json.loads(store.get(answer))
        if missing:
            raise self._missing(milliseconds, missing)

    def _missing(self, milliseconds: int, ranks: list[int]) -> PeerDeadError:
        """The text begins as Gloo's does."""
        name = f"Rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
        text = (
            f"{name} failed to pass monitoredBarrier in {milliseconds} ms; see what "
            f"{'they do' if len(ranks) > 1 else 'it does'}, or allow more time"
        )
        return PeerDeadError(with_ranks_of_the_job(text, ranks, self._members))
