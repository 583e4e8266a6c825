# Sourced by the scripts: where the tree is, how many jobs, and which tools come first.
# Nothing is written outside the tree: pip keeps no cache, but in CI.

root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/.venv
mpis=$venv/mpi
release=$root/build/release
jobs=${ROPEWALK_JOBS:-$(nproc 2>/dev/null || echo 1)}
PATH=$venv/bin:$PATH
export PATH PIP_DISABLE_PIP_VERSION_CHECK=1
[ "${CI:-}" = true ] || export PIP_NO_CACHE_DIR=1

cd "$root" || exit 1

# In Open MPI 5.0.11, btl/ofi sleeps for one second in every MPI_Init where it finds no fabric. The
# tests do without it.
quick_openmpi='^ofi'

# What is built and run for 64-bit Arm: the rooms that know processors, pages and orders of memory.
# shellcheck disable=SC2034  # by scripts/build and scripts/arm
arm_tests='os-tests kernels-tests topology-tests node-tests channel-tests model-tests
  collectives-tests'

say() { printf '%s\n' "-- $*"; }

# took NAME: how long this script has taken, in words; `begun` is the time at its start.
begun=$(date +%s)
took() {
  seconds=$(($(date +%s) - begun))
  say "$1 took $((seconds / 60)) min $((seconds % 60)) s"
}

# fresh STAMP TEXT is true when the last successful run of that step had the same text.
fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
