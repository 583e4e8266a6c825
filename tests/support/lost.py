"""lost.py SURVIVORS COMMAND...: starts COMMAND, a job that loses a rank (lost_program.cc), and
waits until so many ranks have printed "rank R: GOOD"; any other verdict is an error. Then it ends
the job.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import uuid

PATIENCE_S = 60  # of a job that takes two seconds; a hang is endless
MARK = "ROPEWALK_TEST_LOST"


def marked(mark):
    """Processes that have the mark in their environment."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            continue  # it has ended, or is not ours to look at
    return [process for process in found if process != os.getpid()]


def end_all(mark):
    while processes := marked(mark):
        for process in processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass


def main():
    survivors, command = int(sys.argv[1]), sys.argv[2:]
    mark = uuid.uuid4().hex
    job = subprocess.Popen(
        command,
        env=dict(os.environ, **{MARK: mark}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(PATIENCE_S, end_all, [mark])
    watchdog.start()
    verdicts = {}
    try:
        for line in job.stdout:
            print(line, end="", flush=True)
            if verdict := re.search(r"rank (\d+): (GOOD|BAD)", line):
                verdicts[int(verdict[1])] = verdict[2]
            if len(verdicts) == survivors:
                break
    finally:
        watchdog.cancel()
        end_all(mark)
        job.wait()
    good = [rank for rank, verdict in verdicts.items() if verdict == "GOOD"]
    print(f"{len(good)} of {survivors} survivors were told")
    return 0 if len(good) == survivors else 1


if __name__ == "__main__":
    sys.exit(main())
