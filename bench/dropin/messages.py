"""What messages between two ranks take without the drop-in and with it, in turns.

    bench/dropin/messages.py [--mpi PEER,...] [--level single|multiple] [--write] [--time 100s]
                             [--sizes 8,131072,1048576,4194304] [--json FILE]

Compiles messages.c (its head says what is measured) against each MPI's mpi.h and runs it with two
ranks under the MPI's own launcher; LD_PRELOAD is all the difference.

Peers: mpich, mpich-nodevice, openmpi, openmpi-ucx, intel, as in compare.py.
"""

import sys

from paired import Benchmark


def main():
    benchmark = Benchmark("messages", "8,131072,1048576,4194304")
    parser = benchmark.parser(__doc__)
    levels = ("single", "multiple")
    parser.add_argument("--level", choices=levels, default="single", help="thread level (single)")
    parser.add_argument("--write", action="store_true", help="the sender writes its buffer first")
    options = parser.parse_args()
    benchmark.arguments = ["--level", options.level, *(["--write"] if options.write else [])]
    benchmark.row = {"level": options.level, "written": options.write}
    return benchmark.main(options)


if __name__ == "__main__":
    sys.exit(main())
