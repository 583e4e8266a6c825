#!/bin/sh
# For Slurm's Prolog and Epilog, which run as root on every node of a job: a pool for its duration.
#   slurm.conf:  Prolog=/etc/slurm/prolog.d/*   Epilog=/etc/slurm/epilog.d/*
# Install it once in each folder. Users ask for pages in the job's comment: --comment=hugepages=512
PATH=/usr/sbin:/usr/bin:/sbin:/bin
helper=/usr/local/libexec/ropewalk-hugepages
rest=0 # pages outside of jobs: the minimum_2M of hugepages.conf
if [ "${SLURM_SCRIPT_CONTEXT:-}" = epilog_slurmd ]; then
  exec "$helper" set "$rest" 2M
fi
pages=$(printf '%s\n' "${SLURM_JOB_COMMENT:-}" | sed -n 's/^.*hugepages=\([0-9]\{1,7\}\).*$/\1/p')
# A job that gets fewer pages still runs: ropewalk says which pages it has.
[ -z "$pages" ] || "$helper" set "$pages" 2M || true
exit 0
