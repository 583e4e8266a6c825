#!/bin/sh
# launch_test.sh TREE PROGRAM COMMAND...: launch.sh under Open MPI, with hangs of both kinds made on
# purpose: COMMAND PROGRAM start|later. The restarts are counted in a tree of its own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$1
program=$2
shift 2
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
ln -s "$tree/tests" "$own/tests"
cd "$own" || exit 1
failures=0

# holds NUMBER PATTERN: so many lines of what was printed match.
holds() {
  found=$(printf '%s\n' "$output" | grep -c -e "$2")
  [ "$found" = "$1" ] && return
  echo "$found lines, not $1, match: $2"
  failures=$((failures + 1))
}

# One rank waits for the other past the start: no fault of the MPI's, whatever it is.
output=$(ROPEWALK_TEST_HANG_SECONDS=10 "$here/launch.sh" "$@" "$program" later 2>&1)
[ $? = 124 ] || { echo "a hang past the start: not status 124"; failures=1; }
holds 0 'started again'
holds 1 'launch.sh: hung: ended after 10 s'
printf '%s\n' "$output" | grep -q '^past the start: process' || holds 1 '^past the start: process'
printf '%s\n' "$output" | grep -q ' wait_for_the_other at ' || holds 1 ' wait_for_the_other at '
[ ! -e "$own/restarts" ] || { echo "a hang past the start was started again"; failures=1; }
[ "$failures" = 0 ] || printf '%s\n' "$output"

# One rank waits for the other in MPI_Init: started again, at most twice, and counted.
output=$(ROPEWALK_TEST_HANG_SECONDS=3 "$here/launch.sh" "$@" "$program" start 2>&1)
[ $? != 0 ] || { echo "a hang in the start: status 0"; failures=1; }
holds 2 'launch.sh: hung in MPI_Init or the first messages; started again'
holds 0 '^past the start'
[ "$(wc -l <"$own/restarts")" = 2 ] || { echo "restarts not counted"; failures=1; }
"$here/restarts.sh" "$own/restarts" >"$own/shown" || { echo "two are too many"; failures=1; }
grep -q 'of which 9 are allowed' "$own/shown" || { echo "restarts not shown"; failures=1; }
for line in 1 2 3 4 5 6 7 8; do echo "$line" >>"$own/restarts"; done
"$here/restarts.sh" "$own/restarts" >/dev/null && { echo "ten are not too many"; failures=1; }
[ "$failures" = 0 ] || printf '%s\n' "$output"
[ "$failures" = 0 ]
