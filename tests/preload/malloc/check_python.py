"""Python's ways to start processes, under the malloc library. Starts itself again with it."""

import ctypes
import hashlib
import multiprocessing
import os
import subprocess
import sys

SIZE = 3 << 20


def in_arena(buffer: bytearray) -> bool:
    """Whether the buffer lies in the mapping of the arena."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if begin <= address < end:
                return "/memfd:ropewalk" in line
    return False


def digest(buffer: bytes) -> str:
    """Of the contents."""
    return hashlib.sha256(buffer).hexdigest()


def child(buffer: bytearray, pipe) -> None:
    """Answers with what it found, whether it could write, and where its memory lies."""
    found = digest(buffer)
    buffer[:] = b"c" * len(buffer)
    own = bytearray(SIZE)
    pipe.send((found, digest(buffer), in_arena(own), any(own)))
    pipe.recv()


def check(method: str) -> None:
    """A process of this start method neither sees nor disturbs its parent's later writes."""
    context = multiprocessing.get_context(method)
    buffer = bytearray(b"p" * SIZE)
    assert in_arena(buffer)
    mine, theirs = context.Pipe()
    process = context.Process(target=child, args=(buffer, theirs))
    process.start()
    answer = mine.recv()
    wanted = (digest(b"p" * SIZE), digest(b"c" * SIZE), True, False)
    assert answer == wanted, (method, answer)
    assert digest(buffer) == digest(b"p" * SIZE), method
    mine.send(0)
    process.join()
    assert process.exitcode == 0, (method, process.exitcode)


def use() -> None:
    """All of it, in a process that has the library."""
    for method in "fork", "forkserver", "spawn":
        check(method)
    payload = bytes(range(256)) * (SIZE // 256)
    done = subprocess.run(["cat"], input=payload, capture_output=True, check=True)
    assert done.stdout == payload
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(len, [bytes(SIZE)] * 6) == [SIZE] * 6
    table = list(range(10**6))
    if (pid := os.fork()) == 0:
        table.reverse()
        os._exit(0 if table[0] == 10**6 - 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0 and table[0] == 0
    print("all as expected")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        environment = dict(os.environ, LD_PRELOAD=sys.argv[1], ROPEWALK_ARENA_BYTES="1G")
        command = [sys.executable, os.path.abspath(__file__)]
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    use()
