"""h5py on parallel HDF5: collective writes and reads of one file by all ranks."""

import hashlib
import os
import sys
import time

import h5py
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows = 256
path = os.path.join(sys.argv[1], "field.h5")
started = time.perf_counter()
for step in range(8):
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        data = file.create_dataset("field", (comm.size * rows, 512), dtype="f8")
        mine = numpy.random.default_rng(step * 100 + comm.rank).standard_normal((rows, 512))
        with data.collective:
            data[comm.rank * rows : (comm.rank + 1) * rows] = mine
        file.create_dataset("norms", (comm.size,), dtype="f8")
        file["norms"][comm.rank] = numpy.linalg.norm(mine)
        file.attrs["step"] = step
    with h5py.File(path, "r", driver="mpio", comm=comm) as file:
        other = (comm.rank + 1) % comm.size
        with file["field"].collective:
            theirs = file["field"][other * rows : (other + 1) * rows]
        digests = comm.gather(hashlib.sha256(theirs.tobytes()).hexdigest())
        total = comm.allreduce(float(file["norms"][comm.rank]))
        if comm.rank == 0:
            print(step, repr(total), *digests)
if comm.rank == 0:
    print("seconds", time.perf_counter() - started)
