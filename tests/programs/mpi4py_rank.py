"""A rank of mpi4py's test suite: runs the suite's own main.py, unchanged, and writes one line a
test to RECORD.RANK as it goes, so that a crash or a hang leaves the name of its test.

    mpi4py_rank.py TESTS RECORD [argument of main.py ...]
"""

import os
import sys
import unittest

tests, record = sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path.insert(0, tests)

import main  # noqa: E402  (the suite's)


class Recorder(unittest.TextTestResult):
    """Outcomes: passed, failed, error, skipped, expected (to fail), unexpected (success)."""

    file = None

    def note(self, test, outcome):
        if Recorder.file is None:
            from mpi4py import MPI

            path = f"{record}.{MPI.COMM_WORLD.Get_rank()}"
            Recorder.file = open(path, "w", buffering=1)  # noqa: SIM115 (to the end)
        Recorder.file.write(f"{outcome}\t{test.id() if hasattr(test, 'id') else test}\n")

    def startTest(self, test):
        super().startTest(test)
        self.note(test, "begun")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed")

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "unexpected")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(subtest, "failed")


class Runner(unittest.TextTestRunner):
    resultclass = Recorder


sys.argv = [os.path.join(tests, "main.py"), *sys.argv[3:]]
main.TestProgram(module=None, testRunner=Runner)
