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

say() { printf '%s\n' "-- $*"; }

# fresh STAMP TEXT: true when the last successful run of that step had the same text.
fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
