"""A hook of OpenPBS and PBS Professional: a pool of huge pages for the time of a job.

An administrator installs it once, with a resource by which users ask (qsub -l hugepages=512):

    qmgr -c "create resource hugepages type=long"
    qmgr -c "create hook hugepages"
    qmgr -c "set hook hugepages event='execjob_begin,execjob_end'"
    qmgr -c "set hook hugepages alarm=90"
    qmgr -c "import hook hugepages application/x-python default pbs_hook.py"

PBS runs it as root on every node of the job. A job that gets fewer pages still runs.
"""

import subprocess

import pbs

POOL = "/usr/local/libexec/ropewalk-job-pages"
PATIENCE_SECONDS = 60  # dropping the file cache and compacting; PBS's own alarm is 30 by default


def words(event):
    """What job-pages.sh is told for this event; None where the job asks for no pages."""
    pages = event.job.Resource_List["hugepages"]
    if not pages:
        return None
    return ["end"] if event.type == pbs.EXECJOB_END else ["begin", str(int(pages))]


def main(event):
    """Never rejects: without the pages the job runs, and ropewalk says which pages it has."""
    try:
        told = words(event)
        if told:
            subprocess.call([POOL, *told], timeout=PATIENCE_SECONDS)
    except Exception as error:
        pbs.logmsg(pbs.LOG_WARNING, f"hugepages: {error}")
    event.accept()


main(pbs.event())
