"""What nonblocking collectives take without the drop-in and with it, in turns.

    bench/dropin/nonblocking.py [--mpi PEER,...] [--op iallreduce,...] [--time 100s]
                                [--sizes 8,1024,...] [--json FILE]

Compiles nonblocking.c (its head says what is measured) against each MPI's mpi.h and runs it with
two ranks under the MPI's own launcher; LD_PRELOAD is all the difference. The program has one
thread.

Peers: mpich, mpich-nodevice, openmpi, openmpi-ucx, intel, as in compare.py.
"""

import sys

from paired import Benchmark

OPERATIONS = "iallreduce,ireduce,ireduce_scatter_block,ibcast,iallgather,ialltoall"


def main():
    benchmark = Benchmark("nonblocking", "8,1024,16384,65536,262144,1048576")
    parser = benchmark.parser(__doc__)
    parser.add_argument("--op", default=OPERATIONS, help=f"calls, as a list ({OPERATIONS})")
    options = parser.parse_args()
    benchmark.arguments = ["--op", options.op]
    return benchmark.main(options)


if __name__ == "__main__":
    sys.exit(main())
