"""Ranks of torch.distributed are children of the test, so that torch is imported only once."""

import contextlib
import faulthandler
import os
import pathlib
import pickle
import signal
import tempfile
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

import ropewalk.torch  # noqa: F401

PATIENCE_S = 120


def join(backend, rank, size, file, timeout_s=60):
    """Makes the default group of this rank."""
    store = dist.FileStore(file, size)
    seconds = timedelta(seconds=timeout_s)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=seconds)


def _live(body, rank, size, folder, arguments):
    """Runs the body of a rank in its process, and writes its result or its error to a file."""
    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(PATIENCE_S - 5, exit=True)
    try:
        result = (True, body(rank, size, str(folder / "store"), *arguments))
    except BaseException:
        result = (False, traceback.format_exc())
    (folder / f"{rank}").write_bytes(pickle.dumps(result))
    os._exit(0)


def run(size, body, *arguments):
    """Calls body(rank, size, file of the store, *arguments) in each of `size` processes. Returns
    their results in the order of ranks, with None for a rank that has ended by a signal."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        children = []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                _live(body, rank, size, folder, arguments)
            children.append(child)
        try:
            _wait(children)
        finally:
            for child in children:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
        results = [_result(folder / f"{rank}") for rank in range(size)]
    errors = [f"rank {rank}: {value}" for rank, (fine, value) in enumerate(results) if not fine]
    assert not errors, "\n".join(errors)
    return [value for _, value in results]


def _wait(children):
    left = list(children)
    end = time.monotonic() + PATIENCE_S
    while left:
        assert time.monotonic() < end, f"{len(left)} ranks are still running"
        for child in list(left):
            if os.waitpid(child, os.WNOHANG)[0] == child:
                left.remove(child)
                children.remove(child)
        time.sleep(0.01)


def _result(file):
    return pickle.loads(file.read_bytes()) if file.exists() else (True, None)
