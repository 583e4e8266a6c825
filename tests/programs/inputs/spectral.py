"""mpi4py-fft: a spectral Poisson solver, whose transforms redistribute arrays by MPI_Alltoallw.

FFTW chooses its plan by measurement and its instructions by the alignment of memory, so that the
last bits differ from run to run: twelve digits are printed."""

import time

import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

comm = MPI.COMM_WORLD
shape = (96, 96, 96)
fft = PFFT(comm, shape, axes=(0, 1, 2), dtype=float)
field = newDistArray(fft, False)
field[:] = numpy.random.default_rng(7 + comm.rank).standard_normal(field.shape)
here = fft.local_slice(True)
waves = [numpy.fft.fftfreq(n, 1 / n) for n in shape[:2]] + [numpy.arange(shape[2] // 2 + 1)]
k = numpy.meshgrid(*(w[s] for w, s in zip(waves, here, strict=True)), indexing="ij", sparse=True)
laplace = sum(w**2 for w in k) + 1.0

fft.backward(fft.forward(field), field)
comm.Barrier()
started = time.perf_counter()
for step in range(20):
    spectrum = fft.forward(field)
    spectrum /= laplace
    field = fft.backward(spectrum, field)
    field /= numpy.sqrt(comm.allreduce(float(numpy.vdot(field, field))))
    extremes = numpy.array([field.max(), -field.min()])
    comm.Allreduce(MPI.IN_PLACE, extremes, op=MPI.MAX)
    if comm.rank == 0:
        print(step, f"{extremes[0]:.11e} {-extremes[1]:.11e}")
if comm.rank == 0:
    print("seconds", time.perf_counter() - started)
