#!/bin/sh
# For Flux's prolog and epilog, which run as root on every node of a job: a pool for its duration.
# Install it as /etc/flux/system/prolog.d/hugepages and as /etc/flux/system/epilog.d/hugepages.
# Users ask for pages with an attribute of the job: flux batch --setattr=hugepages=512
PATH=/usr/sbin:/usr/bin:/sbin:/bin
pool=/usr/local/libexec/ropewalk-job-pages
case $0 in
  */epilog.d/*) exec "$pool" end ;;
esac
# --setattr puts a name without a dot into attributes.system of the job's specification.
pages=$(flux job info "${FLUX_JOB_ID:-}" jobspec 2>/dev/null |
  sed -n 's/^.*"hugepages": *"\{0,1\}\([0-9]\{1,7\}\)[^0-9].*$/\1/p')
exec "$pool" begin "$pages"
