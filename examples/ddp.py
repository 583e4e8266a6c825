"""This program trains a model on several processes of one machine, with PyTorch and no MPI.

Start it with `torchrun --nproc-per-node 2 examples/ddp.py`.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 200, 64


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Makes up the data of one step. Each rank has its own."""
    numbers = torch.Generator().manual_seed(step * 1000 + rank)
    given = torch.rand(BATCH, 4, generator=numbers)
    return given, torch.sin(given.sum(1, keepdim=True))


def main() -> None:
    dist.init_process_group("ropewalk")  # no other line knows of ropewalk
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # gives all ranks the same weights
    layers = [torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        given, wanted = batch(rank, step)
        loss = torch.nn.functional.mse_loss(model(given), wanted)
        optimizer.zero_grad()
        loss.backward()  # also averages the gradients over the ranks
        optimizer.step()
    dist.all_reduce(loss.detach(), dist.ReduceOp.AVG)
    if rank == 0:
        print(f"{size} ranks, mean squared error {loss.item():.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
