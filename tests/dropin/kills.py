"""kills.py KILLS SEED PROGRAM COMMAND...: starts COMMAND, which runs PROGRAM on several ranks, and
kills one of them by SIGKILL at a random point, again and again. Each time the job must end by
itself, and leave no process, no shared memory and no file.

An MPI that leaves files of its own behind (MPICH in /dev/shm) does so without the drop-in, too:
those are removed, and counted.
"""

import glob
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ENDS_WITHIN_S = 60  # a job that has lost a rank, on a busy machine; a hang is endless
MARK = "ROPEWALK_TEST_KILLS"
OF_THE_MPI = (
    "mpich_sh",
    "ucx_shm_posix_",
    "sm_segment",
    "vader_segment",
    "pmix",
    "prte",
    "ompi",
    "Intel_MPI",
)


def marked(mark, program=None):
    """Processes that have the mark in their environment; those that run the program."""
    found = []
    for entry in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{entry}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() not in file.read().split(b"\0"):
                    continue
            if program is None or os.path.realpath(os.readlink(f"{entry}/exe")) == program:
                found.append(int(os.path.basename(entry)))
        except OSError:
            continue  # it has ended, or is not ours to look at
    return [process for process in found if process != os.getpid()]


def files():
    return set(os.listdir("/dev/shm")) | set(glob.glob("/tmp/ropewalk*"))


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def end_all(mark):
    for process in marked(mark):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


class EndedByItself(Exception):
    """Before a rank could be killed."""


def one_kill(command, program, dice, words):
    """What was wrong, or None."""
    mark = uuid.uuid4().hex
    before = files()
    job = subprocess.Popen(
        command,
        env=dict(os.environ, **{MARK: mark}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=words,
        start_new_session=True,
    )
    try:
        if not wait_until(lambda: marked(mark, program) or job.poll() is not None, 60):
            return "no rank has started"
        if dice.random() < 0.8:  # the others while they start
            wait_until(lambda: False, dice.uniform(0, 0.8))
        ranks = marked(mark, program)
        if not ranks:
            status = job.wait()
            words.seek(0)
            raise EndedByItself(
                f"the job ended by itself, with status {status}:\n{words.read()[-2000:]}"
            )
        os.kill(dice.choice(ranks), signal.SIGKILL)
        try:
            job.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            return f"the job has not ended; still there: {marked(mark)}"
        if not wait_until(lambda: not marked(mark), 10):
            return f"processes left: {marked(mark)}"
        return leftovers(before)
    finally:
        end_all(mark)
        job.wait()


def kill_in_two_starts(command, program, dice):
    """What was wrong, or None. Now and then Open MPI's launcher fails to start a job."""
    for start in range(2):
        try:
            with tempfile.TemporaryFile("w+") as words:
                return one_kill(command, program, dice, words)
        except EndedByItself as end:
            wrong = str(end)
            print(f"start {start + 1}: {wrong}")
    return wrong


def leftovers(before):
    left = files() - before
    own = {name for name in left if not name.startswith(OF_THE_MPI)}
    for name in left - own:
        os.unlink(os.path.join("/dev/shm", name))
    return f"files left: {sorted(own)}" if own else None


def main():
    kills, seed, program, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    dice = random.Random(seed)
    program = os.path.realpath(program)
    for number in range(kills):
        started = time.monotonic()
        wrong = kill_in_two_starts(command, program, dice)
        if wrong:
            print(f"kill {number + 1} of {kills}: {wrong}")
            return 1
        if time.monotonic() - started > 20:
            print(f"kill {number + 1}: took {time.monotonic() - started:.0f} s")
    print(f"{kills} kills: every job ended by itself and left nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
