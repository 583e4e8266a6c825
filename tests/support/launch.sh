#!/bin/sh
# launch.sh COMMAND...: runs a program under an MPI's launcher; passes on what it prints and its
# status. What hangs is ended and fails, and prints where every thread of every rank stood:
# watched_start.c, which is preloaded, writes that down.
#
# Open MPI 5.0.11 fails by itself in two ways, and is then started again, at most twice. Once in
# some thousand starts its launcher fails before it has started a rank. And two ranks of a program
# that does nothing but MPI_Init and MPI_Comm_split, with no file of ropewalk in it, hang in the
# latter, one start in sixty on two cores with load beside it: a message of the first is lost.
# A hang counts as that one only where a rank stood in MPI_Init or in the first messages, which
# watched_start.c sends before the program goes on, and where no thread waits in a function of
# ropewalk: the first one on its stack beyond libc and watched_start.c. Each of these starts is a
# line of the file `restarts` in the build tree, of which scripts/test allows a few.
attempts=3
starts_again=
case "$*" in *openmpi*) starts_again=yes ;; esac
# Tests take a few seconds; the limit is below CTest's own, which tells nothing.
hang_seconds=${ROPEWALK_TEST_HANG_SECONDS:-230}

# A test runs in a folder of its build tree.
tree=$PWD
watch=tests/support/libropewalk-test-watched-start.so
while [ "$tree" != / ] && [ ! -e "$tree/$watch" ]; do tree=$(dirname "$tree"); done
report=
if [ -e "$tree/$watch" ]; then
  report=$(mktemp) || exit 1
  trap 'rm -f "$report"' EXIT
  trap 'exit 143' TERM INT HUP
  export ROPEWALK_TEST_HANG="$hang_seconds $report"
  export LD_PRELOAD="$tree/$watch${LD_PRELOAD:+:$LD_PRELOAD}"
fi

# The report, with the functions that are not exported named as well.
show_report() {
  while read -r file offset symbol; do
    case $file in
      /*) printf '  %s\n' "$(LD_PRELOAD='' addr2line -Cfpse "$file" "$offset" 2>/dev/null |
        grep -v '^??' || echo "$symbol at $offset of $file")" ;;
      *) printf '%s %s %s\n' "$file" "$offset" "$symbol" ;;
    esac
  done <"$report"
}

# Whether some thread stands in ropewalk itself, and not in an MPI that it has called.
stands_in_ropewalk() {
  awk '!/^ / { innermost = 1; next }
       innermost && $1 !~ /(libc|ld-linux|linux-vdso|watched-start)[^\/]*$/ {
         innermost = 0
         if ($1 ~ /\/libropewalk/) found = 1
       }
       END { exit !found }' "$report"
}

# again WHY: notes it, and whether there is an attempt left.
again() {
  [ "$attempts" -gt 0 ] || return 1
  printf '%s\n' "launch.sh: $1; started again"
  [ "$tree" = / ] || printf '%s: %s\n' "$1" "$command" >>"$tree/restarts"
}

command=$*
while :; do
  [ -z "$report" ] || : >"$report"
  # This is more than the ranks have, which begin to count in MPI_Init and tell where they are.
  limit=$((hang_seconds + 45))
  begun=$(date +%s)
  output=$(timeout -k 10 "$limit" "$@" 2>&1)
  status=$?
  # Now and then the launcher of Open MPI does not end by itself when it is told to, and is killed.
  [ "$status" -ne 137 ] || [ $(($(date +%s) - begun)) -lt "$limit" ] || status=124
  printf '%s\n' "$output"
  if [ -n "$report" ] && [ -s "$report" ]; then show_report; fi
  attempts=$((attempts - 1))
  [ "$status" -ne 0 ] || exit 0
  if [ "$starts_again" ]; then
    case $output in
      *"PMIx server's listener thread failed to start"*)
        if again "no listener thread"; then sleep 1; continue; fi ;;
    esac
    if [ -n "$report" ] && grep -q '^in the start:' "$report" && ! stands_in_ropewalk; then
      if again "hung in MPI_Init or the first messages"; then continue; fi
    fi
  fi
  [ "$status" -ne 124 ] || printf '%s\n' "launch.sh: hung: ended after $hang_seconds s"
  exit "$status"
done
