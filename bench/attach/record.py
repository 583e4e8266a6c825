"""record.py halo|allreduce|alltoall: the programs whose registration traces lie in traces/.

    ROPEWALK_REGISTRATION_TRACE=halo ropewalk run -n 4 --no-malloc -- python record.py halo

All buffers are private memory of NumPy. `halo`: a slab of points by Jacobi steps, whose faces are
copied into buffers that are kept. `allreduce`: one of many vectors in turn, as gradients of layers
are. `alltoall`: particles that move between ranks, in arrays which are made anew for each step.
"""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
random = np.random.default_rng(comm.rank)


def halo(points: int = 192, steps: int = 40) -> None:
    """Faces of 288 KiB to both neighbours along the slowest dimension."""
    ring = comm.Create_cart([comm.size], periods=[True])
    field = random.random((10, points, points))
    send, received = (np.empty((2, points, points)) for _ in range(2))
    for _ in range(steps):
        send[0], send[1] = field[1], field[-2]
        ring.Neighbor_alltoall(send, received)
        field[0], field[-1] = received
        field[1:-1] = (field[:-2] + field[2:]) / 2
        ring.Allreduce(MPI.IN_PLACE, np.array([abs(field).max()]), MPI.MAX)


def allreduce(layers: int = 24, steps: int = 5) -> None:
    """Vectors of 32 KiB to 1 MiB, the last layer first."""
    vectors = [random.random(4096 << layer % 6) for layer in range(layers)]
    for _ in range(steps):
        for vector in reversed(vectors):
            comm.Allreduce(MPI.IN_PLACE, vector)


def alltoall(particles: int = 40000, steps: int = 40) -> None:
    """Six numbers of each particle, to the rank that its place says."""
    mine = random.random((particles, 6))
    for _ in range(steps):
        mine[:, 0] = (mine[:, 0] + 0.3 * random.random(len(mine))) % 1
        owner = (mine[:, 0] * comm.size).astype(int)
        counts = np.bincount(owner, minlength=comm.size)
        coming = np.empty_like(counts)
        comm.Alltoall(counts, coming)
        sent = np.ascontiguousarray(mine[np.argsort(owner)])
        mine = np.empty((int(coming.sum()), 6))
        comm.Alltoallv([sent, 6 * counts, MPI.DOUBLE], [mine, 6 * coming, MPI.DOUBLE])


PROGRAMS = {"halo": halo, "allreduce": allreduce, "alltoall": alltoall}

if len(sys.argv) != 2 or sys.argv[1] not in PROGRAMS:
    sys.exit(f"program: found {sys.argv[1:]}, expected one of {', '.join(PROGRAMS)}; name one")
PROGRAMS[sys.argv[1]]()
