"""This module times trainings with DistributedDataParallel for `ropewalk bench torch`.

In weak scaling every process takes as many samples a step as one alone would. In strong scaling the
processes share that many.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ropewalk.torch

from .jobs import Row
from .pytorch_models import MODELS, Model

if TYPE_CHECKING:
    from .pytorch import Options

_ROUNDS = 5
_RATE = 0.01
_STEPS_BEFORE = 3  # DDP makes its buckets anew after the first step
# A mode is a backend, and whether the steps go without communication.
_MODES = [(name, alone) for name in ("gloo", "ropewalk") for alone in (True, False)]


def tensors_in(where: str) -> contextlib.AbstractContextManager[object]:
    """Says where torch's own functions make tensors, in words of the option --tensors."""
    return ropewalk.torch.use_allocator() if where == "allocator" else contextlib.nullcontext()


class Trainee:
    """A model with an optimizer, whose gradients one backend averages."""

    def __init__(self, model: Model, group: Any, batch: int, where: str) -> None:
        self._where = where
        torch.manual_seed(1)
        with tensors_in(where):
            made = model.make()
            self.model: Any = DistributedDataParallel(
                made, process_group=group, gradient_as_bucket_view=True
            )
            self._optimizer = torch.optim.SGD(made.parameters(), lr=_RATE)
            torch.manual_seed(dist.get_rank() + 2)
            self._given, self._wanted = model.data(batch)

    def steps(self, count: int, alone: bool) -> float:
        """Returns the seconds that a step takes. Where `alone` is set, the ranks do not
        communicate, and the weights stay."""
        self._optimizer.param_groups[0]["lr"] = 0.0 if alone else _RATE
        begun = time.perf_counter()
        with tensors_in(self._where), self.model.no_sync() if alone else contextlib.nullcontext():
            for _ in range(count):
                self._optimizer.zero_grad(set_to_none=False)
                answer = self.model(self._given)
                torch.nn.functional.cross_entropy(answer, self._wanted).backward()
                self._optimizer.step()
        return (time.perf_counter() - begun) / count

    def weights(self) -> Any:
        return torch.cat([each.detach().reshape(-1) for each in self.model.parameters()])


def train(options: Options, gloo: Any, ours: Any) -> list[Row]:
    """Trains every model, by weak and, with several ranks, by strong scaling."""
    ranks = dist.get_world_size()
    scalings = ("weak",) if ranks == 1 else ("weak", "strong")
    rows = []
    for name in options.models.split(","):
        for scaling in scalings:
            whole = MODELS[name].batch
            batch = whole if scaling == "weak" else max(1, whole // ranks)
            for where in options.trained_tensors:
                trainees = _trainees(name, batch, where, {"gloo": gloo, "ropewalk": ours})
                facts = {"model": name, "scaling": scaling, "ranks": ranks, "memory": where}
                rows += _train(trainees, facts, batch, options, ours)
    return rows


def _trainees(name: str, batch: int, where: str, groups: dict[str, Any]) -> dict[str, Trainee]:
    """Returns one for each backend, from the same seeds with the same data. Gloo's tensors are
    private always: it maps none."""
    return {
        key: Trainee(MODELS[name], group, batch, where if key == "ropewalk" else "private")
        for key, group in groups.items()
    }


def _train(
    trainees: dict[str, Trainee], facts: dict[str, Any], batch: int, options: Options, ours: Any
) -> list[Row]:
    """Trains a model by both backends, turn by turn."""
    first = [_slowest(each.steps(_STEPS_BEFORE, False), ours) for each in trainees.values()]
    budget = options.seconds_of_training / _ROUNDS / len(_MODES)
    count = max(1, int(budget / max(first)))
    times: dict[tuple[str, bool], list[float]] = {mode: [] for mode in _MODES}
    for _ in range(_ROUNDS):
        for key, alone in _MODES:
            dist.barrier(ours)
            seconds = trainees[key].steps(count, alone)
            times[key, alone].append(_slowest(seconds, ours))
    verified = _same_weights(trainees, ours)
    medians = {mode: statistics.median(found) for mode, found in times.items()}
    facts = {"bench": "torch", "op": "ddp", **facts, "batch": batch}
    return [{**facts, **_figures(key, medians, batch, verified)} for key in trainees]


def _slowest(seconds: float, group: Any) -> float:
    found = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX, group)
    return float(found)


def _same_weights(trainees: dict[str, Trainee], group: Any) -> bool:
    """Returns whether all ranks have the same weights by ropewalk, and those that Gloo has up to
    the order of sums."""
    own, peer = trainees["ropewalk"].weights(), trainees["gloo"].weights()
    first = own.clone()
    dist.broadcast(first, 0, group)
    same = torch.equal(first, own) and torch.allclose(own, peer, rtol=1e-3, atol=1e-4)
    told = torch.tensor([same])
    dist.all_reduce(told, dist.ReduceOp.MIN, group)
    return bool(told)


def _figures(
    key: str, medians: dict[tuple[str, bool], float], batch: int, verified: bool
) -> dict[str, Any]:
    step = medians[key, False]
    return {
        "backend": key,
        "samples_per_s": round(batch * dist.get_world_size() / step, 2),
        "communication_share": round(max(0.0, 1 - medians[key, True] / step), 3),
        "ratio": round(medians["gloo", False] / step, 3),
        "verified": verified,
    }


def add_efficiency(rows: list[Row]) -> None:
    """Adds what share each rank has of the samples/s that one rank alone has."""
    alone = {
        (row["model"], row["memory"], row["backend"]): row["samples_per_s"]
        for row in rows
        if row["ranks"] == 1
    }
    for row in rows:
        base = alone.get((row["model"], row["memory"], row["backend"]))
        if base is not None:
            row["efficiency"] = round(row["samples_per_s"] / row["ranks"] / base, 3)


HEADING = (
    f"{'training':12} {'scaling':7} {'tensors':9} {'ranks':>5} {'batch':>5} "
    f"{'Gloo':>10} {'ropewalk':>10} {'ratio':>6} {'communication':>15} {'efficiency':>13}\n"
    f"{'':42} {'samples/s':>10} {'samples/s':>10} {'':6} {'Gloo, ropewalk':>15} "
    f"{'Gloo, ropewalk':>13}"
)


def lines(rows: list[Row]) -> list[str]:
    """Returns a line for each pair of rows, which are those of Gloo and of ropewalk."""
    made = []
    for gloo, own in zip(rows[::2], rows[1::2], strict=True):
        shares = f"{gloo['communication_share']:.0%}, {own['communication_share']:.0%}"
        both = (gloo.get("efficiency"), own.get("efficiency"))
        kept = "" if None in both else f"{both[0]:.0%}, {both[1]:.0%}"
        wrong = "" if own["verified"] else "  WRONG"
        made.append(
            f"{own['model']:12} {own['scaling']:7} {own['memory']:9} "
            f"{own['ranks']:>5} {own['batch']:>5} "
            f"{gloo['samples_per_s']:>10.1f} {own['samples_per_s']:>10.1f} "
            f"{own['ratio']:>6.2f} {shares:>15} {kept:>13}{wrong}"
        )
    return made
