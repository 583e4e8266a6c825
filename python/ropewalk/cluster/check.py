"""Raw TCP between two nodes of a box: what its network gives before any MPI is in the way.

`check` starts one process on each of two nodes; they talk over all rails at once, one connection a
rail, first one way and then both ways, and tell what arrived.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from ..paths import PARENT

TYPE_CHECKING = False  # as typing has it, whose import a bare interpreter would pay for
if TYPE_CHECKING:
    from .box import Box

_PORT = 7700
_PIECE = 1 << 18
_WARM_SECONDS = 0.3  # congestion windows open, and the buckets are spent
_SECONDS = 1.0
_PATIENCE = 30.0


def _stream(connection: socket.socket, end: float) -> None:
    data = bytes(_PIECE)
    try:
        while time.monotonic() < end:
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def _drain(connection: socket.socket, begin: float, end: float, counts: list[int], at: int) -> None:
    """Counts what comes between two moments; goes on until the other side is done."""
    data = bytearray(_PIECE)
    while True:
        count = connection.recv_into(data)
        if count == 0:
            return
        if begin <= time.monotonic() < end:
            counts[at] += count


def _connections(server: bool, own: Sequence[str], other: Sequence[str]) -> Iterator[socket.socket]:
    """One a rail: between (address, port) of both."""
    for rail, address in enumerate(other if not server else own):
        place = (address, _PORT + rail)
        if server:
            with socket.create_server(place) as listener:
                listener.settimeout(_PATIENCE)
                yield listener.accept()[0]
        else:
            yield _connect(place)


def _connect(place: tuple[str, int]) -> socket.socket:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection(place, timeout=_PATIENCE)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def talk(server: bool, own: Sequence[str], other: Sequence[str], sends: bool) -> float:
    """MB/s that arrived here, over all rails. Run on both nodes."""
    connections = list(_connections(server, own, other))
    begin = time.monotonic() + _WARM_SECONDS
    end = begin + _SECONDS
    counts, threads = [0] * len(connections), []
    for at, connection in enumerate(connections):
        connection.settimeout(None)
        threads.append(threading.Thread(target=_drain, args=(connection, begin, end, counts, at)))
        if sends:
            threads.append(threading.Thread(target=_stream, args=(connection, end + 0.1)))
        else:
            connection.shutdown(socket.SHUT_WR)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.close()
    return sum(counts) / _SECONDS / 1e6


def main(arguments: Sequence[str]) -> None:
    """ROLE SENDS OWN-ADDRESSES OTHER-ADDRESSES, inside a node."""
    role, sends, own, other = arguments
    print(f"{talk(role == 'server', own.split(','), other.split(','), sends == '1'):.3f}")


def _measure(box: Box, both: bool) -> dict[str, float | str]:
    """MB/s at n0 (and at n1 where both send)."""
    network = box.network
    addresses = [
        ",".join(network.address(node, rail) for rail in range(network.rails)) for node in (0, 1)
    ]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from ropewalk.cluster.check import main; main(sys.argv[2:])"
    )
    words = [sys.executable, "-IS", "-c", code, PARENT]
    results: dict[str, float | str] = {}

    def run(node: str, role: str, sends: str, own: str, other: str) -> None:
        done = box.run([*words, role, sends, own, other], node=node, timeout=_PATIENCE)
        results[node] = float(done.stdout) if done.returncode == 0 else done.stderr

    threads = [
        threading.Thread(target=run, args=("n0", "server", "1" if both else "0", *addresses)),
        threading.Thread(target=run, args=("n1", "client", "1", *reversed(addresses))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def lines(box: Box) -> Iterator[str]:
    """A line for each direction: MB/s and the share of the line rate."""
    rate = box.network.line_rate_mb
    rails = f"{box.network.rails} rail{'s' if box.network.rails > 1 else ''}"
    yield f"raw TCP, n0 and n1, {rails} of {box.network.rate / 1e9:g} Gbit/s: {rate:.1f} MB/s"
    for both in (False, True):
        found = _measure(box, both)
        rates = {node: one for node, one in found.items() if not isinstance(one, str)}
        for text in found.values():
            if isinstance(text, str):
                yield f"  failed: {text.strip()}"
                return
        total = sum(rates.values()) if both else rates["n0"]
        whole = rate * (2 if both else 1)
        what = "both ways" if both else "one way"
        yield f"  {what:<10} {total:8.1f} MB/s  {100 * total / whole:5.1f} % of the line rate"
