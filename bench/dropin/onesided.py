"""What one-sided operations take without the drop-in and with it, in turns.

    bench/dropin/onesided.py [--mpi PEER,...] [--window allocate|create] [--time 100s]
                             [--sizes 8,512,4096,65536] [--json FILE]

Compiles onesided.c (its head says what is measured) against each MPI's mpi.h and runs it with two
ranks under the MPI's own launcher; LD_PRELOAD is all the difference.

Peers: mpich, mpich-nodevice, openmpi, openmpi-ucx, intel, as in compare.py.
"""

import sys

from paired import Benchmark


def main():
    benchmark = Benchmark("onesided", "8,512,4096,65536")
    parser = benchmark.parser(__doc__)
    windows = ("allocate", "create")
    parser.add_argument("--window", choices=windows, default="allocate", help="by MPI_Win_...")
    options = parser.parse_args()
    benchmark.arguments = ["--window", options.window]
    benchmark.row = {"window": options.window}
    return benchmark.main(options)


if __name__ == "__main__":
    sys.exit(main())
