"""The scheduling group of this session (sched(7), "The autogroup feature").

Benchmark ranks raise it while they measure (bench/common/scheduling.cc), and put it back at their
end. Where they are killed, or abort, who started them does it: it outlives them.
"""

import contextlib
import time
from collections.abc import Iterator

_FILE = "/proc/self/autogroup"  # "/autogroup-7 nice 0"
# Without rights the kernel takes one change in 0.1 s (proc_sched_autogroup_set_nice, EAGAIN).
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1


def read() -> tuple[str, int] | None:
    """(name of the group, nice value); None where there are no autogroups."""
    try:
        with open(_FILE, encoding="ascii") as file:
            name, _, nice = file.read().split()
        return name, int(nice)
    except (OSError, ValueError):
        return None


def write(nice: int) -> bool:
    """Whether the kernel took it. To raise a group takes rights; to put it back does not."""
    for _ in range(_ATTEMPTS):
        try:
            with open(_FILE, "w", encoding="ascii") as file:
                file.write(str(nice))
            return True
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return False
    return False


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """The group has the nice value afterwards that it had before. A group that is another one by
    then is nobody's business here."""
    before = read()
    try:
        yield
    finally:
        after = read()
        if before and after and after != before and after[0] == before[0]:
            write(before[1])
