"""Runs torch's own tests of torch.distributed, as the installed package has them, with one backend.

    torch_tests.py BACKEND LIKE RANKS RECORD [TEST ...]

The tests look at the name of the backend for what they may ask of it. LIKE, `gloo` or `mpi`, is the
name that they see, and BACKEND makes the process groups. Each rank is a child of fork, because
loading torch takes seconds. RECORD gets one line a test: its outcome, its name and the last line of
its error or its reason, separated by tabs.
"""

import os
import sys
import unittest

BACKEND, LIKE, RANKS, RECORD, *NAMES = sys.argv[1:]
# The module reads these when it is imported.
os.environ.update(BACKEND=LIKE, WORLD_SIZE=RANKS, INIT_METHOD="env://")
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "60")
os.environ["PYTORCH_PRINT_REPRO_ON_FAILURE"] = "0"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.testing._internal.distributed import distributed_test as theirs  # noqa: E402

torch.set_num_threads(1)
_init_process_group = dist.init_process_group


def init_process_group(*arguments, backend=None, **named):
    return _init_process_group(*arguments, backend=BACKEND, **named)


dist.init_process_group = init_process_group


class TestDistributed(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Record(unittest.TestResult):
    """Writes each outcome at once, so that a run that is cut off tells how far it came."""

    def __init__(self, file):
        super().__init__()
        self._file = file

    def _write(self, outcome, test, text=""):
        last = text.strip().splitlines()[-1:] or [""]
        self._file.write(f"{outcome}\t{test.id().split('.')[-1]}\t{last[0]}\n")
        self._file.flush()

    def startTest(self, test):
        super().startTest(test)
        self._write("begun", test)

    def addSuccess(self, test):
        self._write("passed", test)

    def addSkip(self, test, reason):
        self._write("skipped", test, reason)

    def addFailure(self, test, error):
        self._failed(test, error)

    def addError(self, test, error):
        self._failed(test, error)

    def _failed(self, test, error):
        sys.stderr.write(f"{test.id()}\n{self._exc_info_to_string(error, test)}\n")
        self._write("failed", test, str(error[1]))


def main():
    names = NAMES or unittest.TestLoader().getTestCaseNames(TestDistributed)
    with open(RECORD, "w", encoding="utf-8") as file:
        unittest.TestSuite(map(TestDistributed, names)).run(Record(file))


if __name__ == "__main__":
    main()
