#!/bin/sh
# served.sh FUNCTIONS COMMAND...: runs a program by launch.sh with ROPEWALK_STATS=1, and passes on
# what it prints and its status. Where that is 0, the drop-in must have served calls, or the test
# compares the MPI with itself. FUNCTIONS is one word, blanks between: each of these must have been
# served; `any`: some call; `none`: nothing, as on one rank. Fails, too, where a communicator has
# got no team (but not with TEAMS=some: calls fail in the test), and where nothing that is printed
# matches EXPECT.
# Debian's Open MPI refuses to start where there is no ssh, which one node has no use for.
case "$*" in
  *mpiexec.openmpi*) export OMPI_MCA_plm_rsh_agent= ;;
esac
functions=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
output=$(ROPEWALK_STATS=1 "$here/launch.sh" "$@" 2>&1)
status=$?
printf '%s\n' "$output"
[ "$status" -eq 0 ] || exit "$status"

rows=$(printf '%s\n' "$output" | sed -n 's/^  \([A-Z][a-z_]* .*\)/\1/p')
served=$(printf '%s\n' "$rows" | grep -v 'MPI:')
case $functions in
  none) [ -z "$served" ] || { echo "served, against expectation: $served"; status=1; } ;;
  any) [ -n "$served" ] || { echo "nothing was served"; status=1; } ;;
  *)
    for function in $functions; do
      printf '%s\n' "$served" | grep -q "^$function " ||
        { echo "not served: $function"; status=1; }
    done
    ;;
esac
case $rows in
  *"MPI: ranks of a node cannot share memory"*)
    [ "${TEAMS:-all}" = some ] || { echo "no team was made"; status=1; } ;;
  *"MPI: settings are"*) echo "settings were refused"; status=1 ;;
esac
printf '%s\n' "$output" | grep -q -e "${EXPECT:-}" || { echo "not printed: $EXPECT"; status=1; }
exit $status
