"""Heat in a square plate whose left edge is hot: `ropewalk run -n 4 -- examples/heat2d.py [FILE]`.

Each rank owns a block of the plate. With the name of a picture (plate.png) rank 0 draws it.
"""

import sys

import numpy as np

import ropewalk

POINTS = 192  # along each side of the plate
STEPS = 2000

comm = ropewalk.Communicator()
rows = next(n for n in range(int(comm.size**0.5), 0, -1) if comm.size % n == 0)
grid = ropewalk.CartesianGrid([rows, comm.size // rows], periodic=False)
if POINTS % grid.extents[0] or POINTS % grid.extents[1]:
    raise SystemExit(f"{comm.size} ranks: expected a number whose factors divide {POINTS}")

height, width = POINTS // grid.extents[0], POINTS // grid.extents[1]
new, old = (ropewalk.zeros((height + 2, width + 2)) for _ in range(2))
if grid.coordinates[1] == 0:
    new[:, 0] = old[:, 0] = 1.0


def step(u, v, rows, columns):
    """The mean of the four neighbours, for some rows and columns of this rank's block."""
    a, b = rows
    c, d = columns
    v[a:b, c:d] = (u[a - 1 : b - 1, c:d] + u[a + 1 : b + 1, c:d]) / 4
    v[a:b, c:d] += (u[a:b, c - 1 : d - 1] + u[a:b, c + 1 : d + 1]) / 4


with ropewalk.EndpointSet() as endpoints:
    halos = {id(u): ropewalk.Halo(grid, endpoints, u) for u in (new, old)}
    for _ in range(STEPS):
        halos[id(old)].start()
        step(old, new, (2, height), (2, width))  # what needs no neighbour
        halos[id(old)].wait()
        for edge in (1, height):
            step(old, new, (edge, edge + 1), (1, width + 1))
        for edge in (1, width):
            step(old, new, (2, height), (edge, edge + 1))
        new, old = old, new

mean = comm.allreduce(old[1:-1, 1:-1].mean()) / comm.size
blocks = comm.gather(old[1:-1, 1:-1])
if comm.rank == 0:
    print(f"mean temperature after {STEPS} steps: {float(mean):.6f}")
    if len(sys.argv) > 1:
        import matplotlib.pyplot as plt

        plate = blocks.reshape(*grid.extents, height, width).swapaxes(1, 2).reshape(POINTS, POINTS)
        plt.imsave(sys.argv[1], np.sqrt(plate), cmap="inferno")
