"""A sparse system solved by conjugate gradients: `ropewalk run -n 4 -- examples/solve.py`.

The matrix is that of Poisson's equation on a square. Each rank has as many rows of the square as
the others, give or take one; a product with the matrix takes one row from either neighbour, a dot
product one number from every rank.
"""

import numpy as np

import ropewalk

POINTS = 128
TOLERANCE = 1e-10

comm = ropewalk.Communicator()
rows = [len(part) for part in np.array_split(np.arange(POINTS), comm.size)]
own, first = rows[comm.rank], sum(rows[: comm.rank])
line = ropewalk.CartesianGrid([comm.size], periodic=False)
padded = ropewalk.zeros((own + 2, POINTS))  # this rank's rows of a vector and one more on each side


def dot(a, b):
    return float(comm.allreduce(np.vdot(a, b)))


def multiply(halo, x):
    """The product of the matrix and a vector: 4 x minus its neighbours in the square."""
    padded[1:-1] = x
    halo.exchange()
    y = 4 * x - padded[:-2] - padded[2:]
    y[:, 1:] -= x[:, :-1]
    y[:, :-1] -= x[:, 1:]
    return y


with ropewalk.EndpointSet() as endpoints:
    halo = ropewalk.Halo(line, endpoints, padded)
    wanted = np.random.default_rng(1).normal(size=(POINTS, POINTS))[first : first + own]
    right = multiply(halo, wanted)
    x = np.zeros_like(right)
    residual, direction = right.copy(), right.copy()
    norm = start = dot(residual, residual)
    steps = 0
    while norm > TOLERANCE**2 * start:
        product = multiply(halo, direction)
        step = norm / dot(direction, product)
        x += step * direction
        residual -= step * product
        norm, last = dot(residual, residual), norm
        direction = residual + norm / last * direction
        steps += 1

error = float(comm.allreduce(np.abs(x - wanted).max(), op="max"))
solution = comm.gatherv(x, counts=rows)
if comm.rank == 0:
    print(f"{solution.size} unknowns, {steps} steps, largest error {error:.1e}")
