"""This module has the calls of a group appear in torch's profiler, as `ropewalk:all_reduce` and so
on, with the shapes of what this rank gives.

A record is entered and left by functions instead of `with`, so that a call which no profiler sees
pays for one question only, of some 30 ns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._C._profiler import _RecordFunctionFast as Record

profiling = torch.autograd._profiler_enabled


def entered(name: str, arguments: Any) -> Record:
    """Begins what the profiler shows of a call, which leave() ends.

    `arguments` are those of a method of the group. Where the first two are tensors or lists of
    them, the second is what this rank gives.
    """
    record = Record(f"ropewalk:{name}", list(_tensors(arguments)))
    record.__enter__()
    return record


def leave(record: Record) -> None:
    record.__exit__(None, None, None)


def _tensors(arguments: Any) -> Iterator[torch.Tensor]:
    given = [each for each in arguments[:2] if isinstance(each, (torch.Tensor, list, tuple))]
    return _flat(given[-1:])


def _flat(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _flat(each)
