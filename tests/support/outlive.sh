#!/bin/sh
# outlive.sh PROGRAM...: runs a rank. When it is killed the launcher must not see it, since every
# launcher then kills the others: this shell stays in its place, until it is killed itself.
"$@"
[ $? -gt 128 ] && exec sleep 100
exit 0
