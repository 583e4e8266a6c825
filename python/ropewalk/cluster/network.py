"""The network of a cluster in a box: what it is asked to be, and the commands that make it.

Every node has one end of a virtual cable (veth) a rail; the other ends hang on one bridge a rail,
the switch. Both ends send through a token bucket (tbf) of the rail's rate: the node's shapes what
it sends, the switch's what it receives. Commands are made from facts alone, so tests read them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import CommandError

MOST_NODES = 64
MOST_RAILS = 8
# 10.77.RAIL.NODE+1, in network namespaces of its own: it meets no address of the machine.
_PREFIX = "10.77"
# These are Ethernet's jumbo frames: 8948 of the 9014 bytes that the bucket counts are payload, 99.3
# %.
JUMBO = 9000
# Packets leave TCP in pieces of up to this size. Larger ones would need a deeper bucket, whose
# depth is what a burst may have above the rate.
_SEGMENT_BYTES = 32768
# The bucket holds 1 ms of the rate, because it is refilled by timers that may come late where nodes
# share cores.
_BURST_SECONDS = 0.001
# This is a switch's buffer for one port: what several nodes send to one at once waits here.
_QUEUE_SECONDS = 0.05
_LEAST_QUEUE = 4 << 20
# tbf counts its queue in 32 bits, and tc refuses more: from some 690 Gbit/s on, or with a long
# delay, a port holds 4 GiB and not what _QUEUE_SECONDS would give.
_MOST_QUEUE = (1 << 32) - 1

_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def bits_per_second(text: str) -> float:
    """2e9 of "2gbit"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    unit = _UNITS.get(match[2]) if match else None
    value = float(match[1]) * unit if match and unit else 0.0
    if not 1e6 <= value <= 1e12:
        raise CommandError(
            f"--rate: '{text}', expected 1mbit to 1tbit, as in 500mbit or 2gbit (bits a second, "
            "each way, of one rail)"
        )
    return value


def seconds(text: str) -> float:
    """0.00002 of "20us"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    unit = _TIMES.get(match[2]) if match else None
    if match is None or unit is None or float(match[1]) * unit > 10:
        raise CommandError(f"--delay: '{text}', expected a time up to 10s, as in 20us or 1ms")
    return float(match[1]) * unit


@dataclass(frozen=True)
class Network:
    nodes: int = 2
    rails: int = 1
    rate: float = 1e9  # bits a second, each way, of one rail
    delay: float = 0.0  # seconds, one way; 0: what the kernel takes
    mtu: int = JUMBO

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MOST_NODES:
            raise CommandError(f"--nodes: {self.nodes}, expected 1 to {MOST_NODES}")
        if not 1 <= self.rails <= MOST_RAILS:
            raise CommandError(f"--rails: {self.rails}, expected 1 to {MOST_RAILS}")
        if not 576 <= self.mtu <= 65000:
            raise CommandError(f"--mtu: {self.mtu}, expected 576 to 65000 bytes")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{node}" for node in range(self.nodes))

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Of every node, one a rail."""
        return tuple(f"rail{rail}" for rail in range(self.rails))

    @property
    def line_rate_mb(self) -> float:
        """MB/s (10^6 bytes) of a node over all rails, one way."""
        return self.rails * self.rate / 8e6

    def address(self, node: int, rail: int) -> str:
        return f"{_PREFIX}.{rail}.{node + 1}"

    def port(self, node: int, rail: int) -> str:
        """The switch's end of a cable."""
        return f"n{node}r{rail}"

    def hosts(self) -> str:
        """/etc/hosts: a node's name is its address on the first rail."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        for node, name in enumerate(self.names):
            for rail in range(self.rails):
                first = f" {name}" if rail == 0 else ""
                lines.append(f"{self.address(node, rail)}{first} {name}-rail{rail}")
        return "\n".join(lines) + "\n"

    # ---- commands, as lines of `ip -batch` and `tc -batch` ---------------------------------------

    def _link(self) -> str:
        return f"addrgenmode none gso_max_size {min(_SEGMENT_BYTES, 65536)} up"

    def _shape(self, device: str) -> str:
        burst = round(max(2 * _SEGMENT_BYTES, self.rate / 8 * _BURST_SECONDS))
        queue = round(max(_LEAST_QUEUE, self.rate / 8 * (_QUEUE_SECONDS + self.delay)))
        queue = min(queue, _MOST_QUEUE)
        rate = round(self.rate)
        return (
            f"qdisc add dev {device} root handle 1: tbf rate {rate}bit burst {burst} limit {queue}"
        )

    def _late(self, device: str) -> str:
        """Delayed behind the bucket; as many packets as may be under way."""
        packets = round(self.rate / 8 * self.delay / self.mtu) + 1000
        return (
            f"qdisc add dev {device} parent 1:1 handle 10: netem "
            f"delay {self.delay * 1e6:g}us limit {packets}"
        )

    def switch_links(self, processes: Sequence[int | str]) -> Iterator[str]:
        """In the namespace of the switch; `processes`: one of each node, by which the kernel
        knows its network namespace."""
        for bridge in self.interfaces:
            yield f"link add name {bridge} mtu {self.mtu} type bridge mcast_snooping 0"
            yield f"link set dev {bridge} addrgenmode none up"
        for node, process in enumerate(processes):
            for rail, interface in enumerate(self.interfaces):
                port = self.port(node, rail)
                yield (
                    f"link add name {port} mtu {self.mtu} type veth "
                    f"peer name {interface} mtu {self.mtu} netns {process}"
                )
                yield f"link set dev {port} master {interface} {self._link()}"

    def switch_shapes(self) -> Iterator[str]:
        for node in range(self.nodes):
            for rail in range(self.rails):
                yield self._shape(self.port(node, rail))

    def node_links(self, node: int) -> Iterator[str]:
        """In the namespace of a node."""
        yield "link set dev lo up"
        for rail, interface in enumerate(self.interfaces):
            yield f"link set dev {interface} {self._link()}"
            yield f"address add {self.address(node, rail)}/24 dev {interface}"

    def node_shapes(self) -> Iterator[str]:
        for interface in self.interfaces:
            yield self._shape(interface)
            if self.delay:
                yield self._late(interface)

    def link_state(self, node: int, rail: int | None, state: str) -> Iterator[str]:
        """Pulls a cable ("down") or puts it back ("up"); rail None: all of the node."""
        rails = range(self.rails) if rail is None else (rail,)
        for one in rails:
            yield f"link set dev {self.port(node, one)} {state}"
