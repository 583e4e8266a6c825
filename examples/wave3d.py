"""A wave in a periodic box: `ropewalk run -n 4 -- examples/wave3d.py [FILE]`.

The box is cut along its first axis. With the name of a picture (wave.png) rank 0 draws the slice
through the middle.
"""

import sys

import numpy as np

import ropewalk

POINTS = 64  # along each side of the box
STEPS = 40
COURANT = 0.25  # (speed * time step / spacing) squared; stable below 1/3

comm = ropewalk.Communicator()
if POINTS % comm.size or POINTS // comm.size < 2:
    raise SystemExit(f"{comm.size} ranks: expected a number that divides {POINTS}, at most 32")
slab = POINTS // comm.size
grid = ropewalk.CartesianGrid([comm.size, 1, 1])

# A round pulse in the middle, at rest.
axis = np.arange(POINTS) - POINTS / 2
x, y, z = axis[comm.rank * slab : (comm.rank + 1) * slab], axis, axis
now = ropewalk.zeros((slab + 2, POINTS + 2, POINTS + 2))
distance = x[:, None, None] ** 2 + y[None, :, None] ** 2 + z[None, None, :] ** 2
now[1:-1, 1:-1, 1:-1] = np.exp(-distance / 18.0)
before = ropewalk.empty(now.shape)
before[:] = now


def advance(u, before):
    """The next step, into `before`, for the planes of u but its first and last."""
    inner = u[1:-1, 1:-1, 1:-1]
    laplacian = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1]
    laplacian += u[1:-1, 2:, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * inner
    target = before[1:-1, 1:-1, 1:-1]
    target[:] = 2 * inner - target + COURANT * laplacian


with ropewalk.EndpointSet() as endpoints:
    halos = {id(u): ropewalk.Halo(grid, endpoints, u) for u in (now, before)}
    for _ in range(STEPS):
        halos[id(now)].exchange()
        advance(now, before)
        now, before = before, now

total = float(comm.allreduce(now[1:-1, 1:-1, 1:-1].sum()))  # stays what it was
box = comm.gather(np.ascontiguousarray(now[1:-1, 1:-1, 1 + POINTS // 2]))
if comm.rank == 0:
    print(f"sum of the field after {STEPS} steps: {total:.6f}")
    if len(sys.argv) > 1:
        import matplotlib.pyplot as plt

        plt.imsave(sys.argv[1], box.reshape(POINTS, POINTS), cmap="coolwarm")
