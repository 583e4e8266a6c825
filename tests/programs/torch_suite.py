"""torch's own tests of torch.distributed with ropewalk's backend and with Gloo: what passes with
Gloo passes with ropewalk.

The tests are those that the installed package has (`DistributedTest`). They ask for the name of the
backend before they ask something of it, so ropewalk's process groups answer to `gloo`. Tests that
are skipped then are run once more under the name `mpi`: those of all-to-all and of some ranks.
"""

import os
import pathlib
import subprocess
import tempfile
import time

import launching

# What ropewalk does not pass, and why that is no fault of its own.
LEFT_OUT = {
    "test_get_backend": "asks for the name of the backend",
    "test_monitored_barrier_gloo": "torch has this call for groups of Gloo alone",
    "test_monitored_barrier_gloo_rank_0_timeout": "calls a function of Gloo's C++ class",
    "test_monitored_barrier_gloo_subgroup": "torch has this call for groups of Gloo alone",
}
# One test of each kind, for a quick look.
SHORT = (
    "test_all_gather_coalesced_simple",
    "test_all_gather_object_default_pg",
    "test_all_reduce_coalesced_group_sum",
    "test_all_reduce_sum_async",
    "test_average_parameters",
    "test_barrier_timeout_full_group",
    "test_broadcast_object_list",
    "test_ddp_hook_parity_powerSGD",
    "test_ddp_uneven_inputs",
    "test_gather_full_group",
    "test_isend_autograd_profiler",
    "test_reduce_full_group_max",
    "test_scatter_object_list",
    "test_send_recv_any_source",
    "test_sparse_all_reduce_sum",
)


def python():
    """The interpreter of the tree, where it has what torch's tests need."""
    found = launching.python()
    asked = subprocess.run(
        [found, "-c", "import torch.distributed, expecttest, ropewalk"], capture_output=True
    )
    if asked.returncode:
        raise launching.Skip("torch, expecttest or ropewalk is not in .venv; scripts/setup torch")
    return found


def run(backend, like, ranks, names, timeout):
    """Returns {test: (outcome, reason)} and the seconds that the tests took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record"
        program = str(pathlib.Path(__file__).with_name("torch_tests.py"))
        words = [python(), program, backend, like, str(ranks), str(record), *names]
        child = subprocess.Popen(
            words,
            env=dict(os.environ, TMPDIR=folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        finally:
            launching.end(child)
        lines = record.read_text().splitlines() if record.exists() else []
    results = {}
    for line in lines:
        outcome, test, reason = line.split("\t")
        results[test] = (outcome, reason)
    if not results:
        results["(start)"] = ("failed", f"status {child.returncode}")
    return results, time.monotonic() - started


def for_mpi(ours):
    """Returns the tests that may run under the name `mpi` instead."""
    return [test for test, (kind, _) in ours.items() if kind == "skipped" and "cuda" not in test]


def compare(ours, gloo):
    """[(test, outcome, reason)] of what passes with Gloo, or is not run by it, and fails here."""
    return [
        (test, *result)
        for test, result in ours.items()
        if result[0] not in ("passed", "skipped")
        and test not in LEFT_OUT
        and gloo.get(test, ("passed",))[0] in ("passed", "skipped")
    ]
