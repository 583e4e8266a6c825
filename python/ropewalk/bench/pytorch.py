"""`ropewalk bench torch` measures torch.distributed on the CPU, with ropewalk beside Gloo.

Ranks are children of this process, which has imported torch once for all of them; no MPI is needed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..cluster.network import bits_per_second
from ..errors import CommandError
from ..options import Parser
from . import jobs

OPERATIONS = (
    "all_reduce",
    "broadcast",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "send_recv",
    "barrier",
)
MODELS = ("linear", "alexnet", "transformer")
# Where tensors lie: in memory of torch's own, in the arena by ropewalk.torch.use_allocator, or in
# the arena by ropewalk.torch.empty.
TENSORS = ("private", "allocator", "arena")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZES = "8,64,1K,16K,64K,256K,1M,4M,16M,64M"
_QUICK_SIZES = "8,1K,64K,1M"

DESCRIPTION = """Times of torch.distributed's collectives on float32 tensors, ropewalk's backend
beside Gloo in the same run, turn by turn; then trainings with DistributedDataParallel on made-up
data, by one rank and by all. The times are those of calls from Python, as programs make them."""

EXAMPLES = (
    ("ropewalk bench torch", "two ranks, all operations"),
    ("ropewalk bench torch --ops all_reduce --sizes 8,64K,4M --json torch.json", ""),
    ("ropewalk bench torch -n 4 --quick", ""),
    ("ropewalk bench torch --tensors private,allocator", "with the allocator, and without it"),
    ("ropewalk bench torch --nodes 2 --rate 10gbit", "one rank on each of two hosts, without MPI"),
    ("ropewalk bench torch --models alexnet --scale 1,2,4", "a training by 1, 2 and 4 ranks"),
)


@dataclass
class Options:
    ranks: int = 2
    nodes: int = 1
    rate: str = "2gbit"
    ops: str = ",".join(OPERATIONS)
    sizes: str | None = None
    quick: bool = False
    time: float | None = None
    json: str | None = None
    tensors: str = "private"
    models: str = ",".join(MODELS)
    scale: str | None = None
    no_training: bool = False
    no_bind: bool = False
    help: bool = False
    bytes: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def network(self) -> dict[str, int | str]:
        """Returns what rows say of the nodes."""
        return {"nodes": self.nodes, "rate": self.rate} if self.nodes > 1 else {}

    @property
    def seconds(self) -> float:
        """Returns how long the measurements of all cases may take together."""
        return self.time if self.time is not None else (10.0 if self.quick else 60.0)

    @property
    def seconds_of_calls(self) -> float:
        return self.seconds if self.no_training else 0.6 * self.seconds

    @property
    def seconds_of_training(self) -> float:
        """Returns how long one training may take. One rank has no strong scaling."""
        cases = sum(1 if ranks == 1 else 2 for ranks in self.counts)
        cases *= len(self.trained_tensors)
        return 0.4 * self.seconds / (cases * len(self.models.split(",")))

    @property
    def trained_tensors(self) -> list[str]:
        """Returns where tensors of trainings lie. Models make theirs by torch's own functions."""
        return [each for each in self.tensors.split(",") if each != "arena"] or ["private"]


def parser() -> Parser:
    made = Parser(
        "ropewalk bench torch",
        DESCRIPTION,
        "ropewalk bench torch [options]",
        examples=EXAMPLES,
        add_help=False,
    )
    made.add_argument("-h", "--help", action="store_true", help="show this and end")
    made.add_argument("-n", "--ranks", type=int, metavar="N", help="number of ranks; default: 2")
    made.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="deal the ranks to this number of hosts of a cluster in a box; default: 1, no box",
    )
    made.add_argument(
        "--rate", metavar="RATE", help="of the network of --nodes, as in 1gbit; default: 2gbit"
    )
    made.add_argument(
        "--ops", metavar="OP,...", help="calls to measure, of " + ", ".join(OPERATIONS)
    )
    made.add_argument("--sizes", metavar="SIZE,...", help=f"bytes of a tensor; default: {_SIZES}")
    made.add_argument(
        "--quick", action="store_true", help=f"measure for a few seconds, at sizes {_QUICK_SIZES}"
    )
    made.add_argument("--time", type=float, metavar="S", help="how many seconds to measure at most")
    made.add_argument(
        "--tensors",
        metavar="WHERE,...",
        help="where tensors lie: private (torch.empty), allocator (torch.empty under "
        "ropewalk.torch.use_allocator, and ropewalk's trainings) or arena (ropewalk.torch.empty); "
        "default: private",
    )
    made.add_argument(
        "--arena",
        dest="tensors",
        action="store_const",
        const="arena",
        help="the same as --tensors arena",
    )
    made.add_argument(
        "--models", metavar="MODEL,...", help="models to train, of " + ", ".join(MODELS)
    )
    made.add_argument(
        "--scale", metavar="N,...", help="numbers of ranks to train with; default: 1 and all"
    )
    made.add_argument(
        "--no-training", action="store_true", help="measure the calls alone, no training"
    )
    made.add_argument(
        "--no-bind",
        action="store_true",
        help="leave ranks wherever the kernel runs them; otherwise each is bound to its share of "
        "the cores, where every rank can have one",
    )
    made.add_argument("--json", metavar="FILE", help="write the rows as JSON lines")
    return made


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if found is None or int(found[1]) == 0:
        raise CommandError(f"--sizes: '{text}', expected bytes such as 8, 64K or 4M")
    return int(found[1]) * _UNITS[found[2]]


def _require_known(option: str, given: str, known: Sequence[str]) -> None:
    unknown = [name for name in given.split(",") if name not in known]
    if unknown:
        raise CommandError(f"{option}: '{unknown[0]}', expected {', '.join(known)}")


def _counts(text: str) -> list[int]:
    if re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text) is None:
        raise CommandError(f"--scale: '{text}', expected numbers of ranks such as 1,2,4")
    return sorted({int(count) for count in text.split(",")})


def options_of(words: Sequence[str]) -> Options:
    options = parser().parse_args(words, namespace=Options())
    _require_known("--ops", options.ops, OPERATIONS)
    _require_known("--models", options.models, MODELS)
    _require_known("--tensors", options.tensors, TENSORS)
    if options.ranks < 1:
        raise CommandError(f"-n: {options.ranks}, expected 1 or more")
    if options.nodes < 1 or options.ranks < options.nodes:
        raise CommandError(f"--nodes: {options.nodes}, expected 1 to {options.ranks}, as -n says")
    bits_per_second(options.rate)
    sizes = options.sizes or (_QUICK_SIZES if options.quick else _SIZES)
    options.bytes = [_bytes(text) for text in sizes.split(",")]
    options.counts = _counts(options.scale or f"1,{options.ranks}")
    folder = os.path.dirname(options.json or "") or "."
    if not os.path.isdir(folder):
        raise CommandError(f"--json: there is no folder '{folder}'; make it, or name another")
    return options


def main(words: Sequence[str]) -> int:
    options = options_of(words)
    if options.help:
        parser().print_help()
        return 0
    if importlib.util.find_spec("torch") is None:
        raise CommandError("torch: PyTorch is not installed; `pip install torch`", status=1)
    # PyTorch takes seconds to load.
    sys.stderr.write(f"-- torch: ropewalk beside Gloo, {options.ranks} ranks; PyTorch is loading\n")
    sys.stderr.flush()
    from . import pytorch_ranks

    with tempfile.TemporaryDirectory(prefix="ropewalk-torch-") as folder:
        rows = pytorch_ranks.measure(options, folder)
    if rows is None:
        return 1
    if options.json:
        jobs.write_rows(options.json, [_machine(words), *rows])
    return 0


def _machine(words: Sequence[str]) -> jobs.Row:
    import torch

    return {**jobs.machine("torch", words), "torch": torch.__version__}
