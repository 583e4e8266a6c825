"""A sparse system on a random graph: `ropewalk run -n 4 -- examples/sparse.py`.

The matrix is the graph's Laplacian plus one. Each rank has some of the vertices and all edges of
these; a product with the matrix needs the values of neighbors that other ranks have.
"""

import numpy as np

import ropewalk

VERTICES, EDGES, TOLERANCE = 4000, 12000, 1e-10

comm = ropewalk.Communicator()
first, end = (VERTICES * (comm.rank + i) // comm.size for i in (0, 1))
rows = end - first
ends = np.random.default_rng(1).integers(0, VERTICES, (EDGES, 2))  # the same on all ranks
ends = np.concatenate([ends, ends[:, ::-1]])  # each edge from either end
own, others = ends[(first <= ends[:, 0]) & (ends[:, 0] < end)].T
here = own - first

# Neighbors elsewhere are ghosts, whose values lie behind those of this rank's rows.
away = (others < first) | (others >= end)
ghosts = np.unique(others[away])
there = np.where(away, rows + np.searchsorted(ghosts, others), others - first)
halo = ropewalk.IrregularHalo.by_rows(rows, ghosts)
padded = ropewalk.zeros(rows + len(ghosts))


def dot(a, b):
    return float(comm.allreduce(np.vdot(a, b)))


def multiply(x):
    padded[:rows] = x
    halo.exchange(padded)
    return x + np.bincount(here, x[here] - padded[there], rows)


wanted = np.random.default_rng(2).normal(size=VERTICES)[first:end]
right = multiply(wanted)
x = np.zeros(rows)
residual, direction = right.copy(), right.copy()
norm = start = dot(residual, residual)
steps = 0
while norm > TOLERANCE**2 * start:
    product = multiply(direction)
    step = norm / dot(direction, product)
    x += step * direction
    residual -= step * product
    norm, last = dot(residual, residual), norm
    direction = residual + norm / last * direction
    steps += 1
halo.close()
error = float(comm.allreduce(np.abs(x - wanted).max(initial=0), op="max"))
if comm.rank == 0:
    print(f"{VERTICES} unknowns, {steps} steps, largest error {error:.1e}")
