"""This module times a small training with DistributedDataParallel for `ropewalk bench torch`."""

from __future__ import annotations

import contextlib
import statistics
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .jobs import Row

if TYPE_CHECKING:
    from .pytorch import Options

# The gradients of this model (11 MB) take as long to exchange as to compute at a small batch.
_WIDTH, _LAYERS, _BATCH = 800, 4, 16
_ROUNDS = 7


def _model() -> Any:
    torch.manual_seed(1)
    layers: list[Any] = []
    for _ in range(_LAYERS):
        layers += [torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(_WIDTH, 10))


def _steps(model: Any, given: Any, wanted: Any, count: int, alone: bool) -> float:
    """Returns the seconds that a step takes. Where `alone` is set, ranks do not communicate."""
    begun = time.perf_counter()
    with model.no_sync() if alone else contextlib.nullcontext():
        for _ in range(count):
            model.zero_grad(set_to_none=False)
            torch.nn.functional.cross_entropy(model(given), wanted).backward()
    return (time.perf_counter() - begun) / count


def train(options: Options, gloo: Any, ours: Any) -> list[Row]:
    """Measures samples/s of both backends, turn by turn, with the same model, data and seeds."""
    models = {
        name: DistributedDataParallel(_model(), process_group=group, gradient_as_bucket_view=True)
        for name, group in (("gloo", gloo), ("ropewalk", ours))
    }
    torch.manual_seed(dist.get_rank())
    given, wanted = torch.randn(_BATCH, _WIDTH), torch.randint(0, 10, (_BATCH,))
    times: dict[tuple[str, bool], list[float]] = {}
    count = 2 if options.quick else 8
    for _ in range(_ROUNDS):
        for name, model in models.items():
            for alone in (True, False):  # the gradients of the last steps are compared
                dist.barrier(ours)
                seconds = torch.tensor([_steps(model, given, wanted, count, alone)])
                dist.all_reduce(seconds, dist.ReduceOp.MAX, ours)
                times.setdefault((name, alone), []).append(float(seconds))
    pairs = zip(models["gloo"].parameters(), models["ropewalk"].parameters(), strict=True)
    same = all(torch.allclose(one.grad, other.grad, atol=1e-4) for one, other in pairs)
    return _rows({key: statistics.median(found) for key, found in times.items()}, same)


def _rows(seconds: dict[tuple[str, bool], float], same: bool) -> list[Row]:
    samples = _BATCH * dist.get_world_size()
    rows: list[Row] = []
    for name in ("gloo", "ropewalk"):
        step = seconds[name, False]
        share = max(0.0, 1 - seconds[name, True] / step)
        row = {
            "bench": "torch",
            "op": "ddp",
            "backend": name,
            "ranks": dist.get_world_size(),
            "samples_per_s": round(samples / step, 1),
            "communication_share": round(share, 3),
            "ratio": round(seconds["gloo", False] / step, 3),
            "verified": same,
        }
        rows.append(row)
        if dist.get_rank() == 0:
            print(
                f"DDP with {name:9} {row['samples_per_s']:>9.1f} samples/s, "
                f"{100 * share:.0f} % of a step is communication"
            )
    return rows
