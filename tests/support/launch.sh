#!/bin/sh
# launch.sh COMMAND...: runs a program under an MPI's launcher; passes on what it prints and its
# status. Anything but the two failures below, failing tests above all, passes as it is.
#
# Open MPI 5.0.11 fails by itself in two ways, and is then started again, at most twice. Once in
# some thousand starts its launcher fails before it has started a rank. And two ranks of a program
# that does nothing but MPI_Init and MPI_Comm_split, with no file of ropewalk in it, hang in the
# latter, one start in sixty on two cores with load beside it: a message of the first is lost.
attempts=3
hang_seconds=100 # of tests that take a few
limit=
case "$*" in *openmpi*) limit="timeout $hang_seconds" ;; esac
while :; do
  # shellcheck disable=SC2086  # a command and its argument, or nothing
  output=$($limit "$@" 2>&1)
  status=$?
  printf '%s\n' "$output"
  attempts=$((attempts - 1))
  [ "$status" -ne 0 ] && [ "$attempts" -gt 0 ] || exit "$status"
  case $status:$output in
    *"PMIx server's listener thread failed to start"*) sleep 1 ;;
    124:*)
      [ -n "$limit" ] || exit "$status"
      printf '%s\n' "launch.sh: hung for $hang_seconds s; started again"
      ;;
    *) exit "$status" ;;
  esac
done
