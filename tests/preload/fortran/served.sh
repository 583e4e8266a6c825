#!/bin/sh
# served.sh FUNCTIONS COMMAND...: runs a program with ROPEWALK_STATS=1 and launch.sh. Its status, or
# 1 where the drop-in does not report every one of the functions (one word, blanks between) as
# served, or what it prints has no line that matches EXPECT. 77, which is a skipped test, where
# ranks cannot share memory.
# Debian's Open MPI refuses to start where there is no ssh, which one node has no use for.
export OMPI_MCA_plm_rsh_agent=
functions=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
output=$(ROPEWALK_STATS=1 "$here/../../support/launch.sh" "$@" 2>&1)
status=$?
printf '%s\n' "$output"
[ "$status" -eq 0 ] || exit "$status"
case $output in
  *"memory cannot be shared"*) echo "skipped: ranks cannot share memory here"; exit 77 ;;
esac
for function in $functions; do
  printf '%s\n' "$output" | grep -v 'MPI:' | grep -q "^  $function " ||
    { echo "not served: $function"; status=1; }
done
printf '%s\n' "$output" | grep -q -e "${EXPECT:-}" || { echo "not printed: $EXPECT"; status=1; }
exit $status
