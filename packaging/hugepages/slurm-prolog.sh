#!/bin/sh
# For Slurm's Prolog and Epilog, which run as root on every node of a job: a pool for its duration.
#   slurm.conf:  Prolog=/etc/slurm/prolog.d/*   Epilog=/etc/slurm/epilog.d/*
# Install it once in each folder. Users ask for pages in the job's comment: --comment=hugepages=512
pool=/usr/local/libexec/ropewalk-job-pages
[ "${SLURM_SCRIPT_CONTEXT:-}" != epilog_slurmd ] || exec "$pool" end
pages=$(printf '%s\n' "${SLURM_JOB_COMMENT:-}" | sed -n 's/^.*hugepages=\([0-9]\{1,7\}\).*$/\1/p')
exec "$pool" begin "$pages"
