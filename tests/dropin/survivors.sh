#!/bin/sh
# survivors.sh NUMBER COMMAND...: passes where the command, which gets the name of a file as its
# last argument, has written so many lines into it, all of which begin with `named:`.
number=$1
shift
file=$(mktemp)
"$@" "$file"
cat "$file"
named=$(grep -c '^named:' "$file")
others=$(grep -vc '^named:' "$file")
rm -f "$file"
[ "$named" -eq "$number" ] && [ "$others" -eq 0 ]
