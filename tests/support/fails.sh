#!/bin/sh
# fails.sh PATTERN COMMAND...: passes where the command fails and prints what matches: an error of
# the MPI in its own words, not any end that is none. Signals are no errors.
pattern=$1
shift
# MPICH's launcher loses what a rank printed last, in one of 60 runs of the plain MPI: an end
# without a word is tried again.
for attempt in 1 2 3 4; do
  output=$("$(dirname "$0")/launch.sh" "$@" 2>&1)
  status=$?
  [ -z "$output" ] || break
done
printf '%s\n' "$output"
[ "$status" -ne 0 ] || { echo "did not fail"; exit 1; }
printf '%s\n' "$output" | grep -q -i -e "$pattern" || { echo "not printed: $pattern"; exit 1; }
! printf '%s\n' "$output" | grep -i -e 'signal 11\|Segmentation fault\|signal: 11\|Bus error'
