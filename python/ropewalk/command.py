"""The command `ropewalk`: one verb a job. A verb's module is imported when it is called."""

import sys

from .errors import CommandError

VERBS = {
    "run": "start an MPI program with the settings its MPI needs",
    "bench": "measure communication and memory on this machine",
    "cluster": "run a command on several nodes with a network of known rate, on this machine",
    "doctor": "what this machine gives, and what each shortfall costs",
    "hugepages": "show, reserve and release the pool of huge pages",
}


def main(arguments=None):
    """Runs one verb; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    verb = arguments[0] if arguments else ""
    try:
        if verb == "run":
            from . import run

            return run.main(arguments[1:])
        if verb == "cluster":
            from . import cluster

            return cluster.main(arguments[1:])
        from .verbs import application

        return application(arguments)
    except CommandError as error:
        sys.stderr.write(f"ropewalk {verb}: {error}\n")
        return error.status
    except BrokenPipeError:  # `ropewalk doctor | head`
        sys.stderr.close()
        return 0
