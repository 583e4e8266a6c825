#!/bin/sh
# job-pages.sh begin PAGES | end: the pool of 2 MiB pages for the time of a batch job.
#
# Root runs it on every node of the job, before and after; the prolog of Slurm and of Flux and the
# hook of PBS beside this file do. A job that gets fewer pages still runs: ropewalk says which pages
# it has. So it ends with 0 even then, for a prolog that fails takes the node out of service.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
helper=/usr/local/libexec/ropewalk-hugepages
vm=/proc/sys/vm
most=9999999 # pages; a longer number is not read

case ${1:-} in
  begin)
    case ${2:-} in
      '' | *[!0-9]*) exit 0 ;; # the job asks for none
    esac
    [ ${#2} -le ${#most} ] || exit 0
    # Pages come from whole free blocks. What the file cache of the job before holds, and small
    # blocks in between, are gathered first: Boyle et al. (2017), section II.C.
    sync
    { echo 3 >"$vm/drop_caches" && echo 1 >"$vm/compact_memory"; } 2>/dev/null
    "$helper" set "$2" 2M || true
    ;;
  end) "$helper" set minimum 2M || true ;; # the minimum_2M of hugepages.conf
  *)
    echo "job-pages.sh: '${1:-}', expected begin PAGES or end" >&2
    exit 2
    ;;
esac
exit 0
