#!/bin/sh
# on_rank.sh RANK NAME=VALUE COMMAND...: the command, on that rank alone with the variable.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-}}}
wanted=$1 setting=$2
shift 2
[ "$rank" != "$wanted" ] || exec env "$setting" "$@"
exec "$@"
