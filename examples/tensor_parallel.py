"""This program splits the layers of a model over several processes of one machine, as servers of
large language models do, and times a pass through it.

Start it with `torchrun --nproc-per-node 2 examples/tensor_parallel.py`, or with the word `gloo`
behind it.
"""

import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

WIDTH, BLOCKS, PASSES = 1024, 4, 15


class Block(torch.nn.Module):
    """The two linear layers of a transformer's block."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.silu(self.up(x)))


def model() -> torch.nn.Sequential:
    torch.manual_seed(0)  # gives all ranks the same weights
    return torch.nn.Sequential(*(Block() for _ in range(BLOCKS)))


def milliseconds(of: torch.nn.Module, x: torch.Tensor) -> float:
    times = []
    for _ in range(PASSES):
        begun = time.perf_counter()
        of(x)
        times.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(times)


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(sys.argv[1] if len(sys.argv) > 1 else "ropewalk")
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (ranks,))
    whole, split = model(), model()
    for block in split:  # one all_reduce a block
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    for tokens in (1, 16, 128):
        x = torch.randn(tokens, WIDTH, generator=torch.Generator().manual_seed(tokens))
        torch.testing.assert_close(split(x), whole(x), rtol=1e-3, atol=1e-4)
        found = milliseconds(split, x)
        if dist.get_rank() == 0:
            print(f"{ranks} ranks, {tokens} tokens: {found:.2f} ms a pass")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
