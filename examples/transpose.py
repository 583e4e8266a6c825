"""A Fourier transform of a matrix that is divided among ranks:
`ropewalk run -n 4 -- examples/transpose.py`.

Each rank has some of the rows. It transforms them, exchanges them for columns, and transforms
these. The exchange delivers each column contiguous, so that it is transformed where it lies.
"""

import numpy as np

import ropewalk

ROWS, COLUMNS = 96, 120

comm = ropewalk.Communicator()


def share(extent, rank):
    return slice(extent * rank // comm.size, extent * (rank + 1) // comm.size)


def length(part):
    return part.stop - part.start


everyone = range(comm.size)
rows, columns = share(ROWS, comm.rank), share(COLUMNS, comm.rank)
transpose = ropewalk.SubarrayExchange(
    (length(rows), COLUMNS),
    [np.s_[:, share(COLUMNS, peer)] for peer in everyone],
    (length(columns), ROWS),
    [np.s_[:, share(ROWS, peer)] for peer in everyone],
    np.complex128,
    axes=(1, 0),  # a part travels as columns
)

whole = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)) + 0j  # the same on all ranks
mine = np.fft.fft(whole[rows], axis=1)
spectrum = np.fft.fft(transpose.exchange(mine), axis=1).T

error = float(np.abs(spectrum - np.fft.fft2(whole)[:, columns]).max(initial=0))
error = float(comm.allreduce(error, op="max"))
transpose.close()
if comm.rank == 0:
    print(f"{ROWS} x {COLUMNS} on {comm.size} ranks, largest error {error:.1e}")
