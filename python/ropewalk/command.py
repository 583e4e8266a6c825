"""The command `ropewalk`: one verb a job. A verb's module is imported when it is called."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from . import nested, streams
from .errors import CommandError


class Verb(NamedTuple):
    name: str
    help: str  # one line
    module: str  # below ropewalk
    function: str = "main"  # of the words behind the verb; returns the exit status
    inside: bool = False  # sees what an outer `ropewalk run` has set


VERBS = (
    Verb("run", "start an MPI program with the settings its MPI needs", "run", inside=True),
    Verb("bench", "measure communication and memory on this machine", "bench.command"),
    Verb("report", "make a page with pictures of what benches have measured", "report.command"),
    Verb("cluster", "run a command on several nodes, made on this machine", "cluster.command"),
    Verb("doctor", "what this machine gives, and what each shortfall costs", "doctor.command"),
    Verb(
        "config",
        "every setting, its value here and where that is from",
        "config",
        inside=True,
    ),
    Verb(
        "explain",
        "which way a collective or a halo goes, why, and what would change it",
        "explain",
        inside=True,
    ),
    Verb(
        "tune",
        "measure this machine and write a profile of its thresholds",
        "tune.command",
    ),
    Verb("completion", "print what a shell needs to complete all this", "completion"),
    Verb("hugepages", "show, reserve and release the pool of huge pages", "hugepages_command"),
)

_EXAMPLES = (
    ("ropewalk run -n 4 -- ./program", "an unchanged MPI program"),
    ("ropewalk run -n 4 --dry-run -- ./program", "what that would start, and why"),
    ("ropewalk doctor", "what falls short on this machine"),
    ("ropewalk bench", "the quick suite, about a minute"),
    ("ropewalk report rows.json", "a page with pictures of what a bench wrote"),
    ("ropewalk cluster --nodes 4 -- ./program", "four nodes on this machine"),
)
_STATUSES = (
    ("0", "all went well"),
    ("1", "it did not; one line on standard error says why and what to do"),
    ("2", "the command line was wrong"),
    ("N", "of `run`, `bench` and `cluster`: that of what they started"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; returns the exit status."""
    streams.open_closed()
    words = list(sys.argv[1:] if arguments is None else arguments)
    verb = next((one for one in VERBS if words[:1] == [one.name]), None)
    name = f"ropewalk {verb.name}" if verb else "ropewalk"
    try:
        return _call(verb, words)
    except CommandError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return error.status
    except BrokenPipeError:  # `ropewalk doctor | head`
        streams.drop_output()
        return 0
    except OSError as error:
        if not streams.is_of_output(error):
            raise
        streams.drop_output()
        sys.stderr.write(f"{name}: standard output: {error.strerror}; write it elsewhere\n")
        return 1
    except KeyboardInterrupt:
        return _interrupted()


def _call(verb: Verb | None, words: list[str]) -> int:
    """The verb, or the command without one. All of its output is written at the end."""
    if verb is None or not verb.inside:
        nested.leave(os.environ)  # where a rank of `ropewalk run` starts another
    try:
        if verb is None:
            return _without_verb(words)
        called = getattr(import_module(f".{verb.module}", __package__), verb.function)
        status: int = called(words[1:])
        return status
    finally:
        sys.stdout.flush()


def _interrupted() -> int:
    """Ends as a program that does not catch Ctrl-C, so that a shell's loop ends, too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    return 128 + signal.SIGINT


def _without_verb(words: list[str]) -> int:
    """The options of `ropewalk` itself."""
    from .options import Parser, nearest
    from .preload import LIBRARIES

    names = [verb.name for verb in VERBS]
    if words and not words[0].startswith("-"):
        expected = f"expected {', '.join(names)}{nearest(words[0], names)}"
        raise CommandError(f"VERB: '{words[0]}', {expected}; see `ropewalk --help`")
    width = max(map(len, names))
    verbs = "\n".join(["verbs:", *(f"  {one.name:<{width}}  {one.help}" for one in VERBS)])
    parser = Parser(
        "ropewalk",
        f"Line-rate communication for MPI programs, from user space.\n\n{verbs}",
        "ropewalk VERB [options]\n"
        "       ropewalk --version | --prefix | --preload-path [malloc|mpi]",
        notes="`ropewalk VERB --help` teaches each of them.",
        examples=_EXAMPLES,
        statuses=_STATUSES,
    )
    parser.add_argument("--version", action="store_true", help="show the version")
    parser.add_argument(
        "--prefix",
        action="store_true",
        help="show the folder with include and lib, for CMAKE_PREFIX_PATH",
    )
    parser.add_argument(
        "--preload-path",
        nargs="?",
        const="all",
        choices=("all", *LIBRARIES),
        metavar="LIBRARY",
        help="show the value of LD_PRELOAD for launchers of your own: all libraries, malloc or mpi",
    )
    options = parser.parse_args(words)
    if options.version:
        from . import __version__

        print(f"ropewalk {__version__}")
    elif options.prefix:
        print(_prefix())
    elif options.preload_path:
        print(_preload_path(options.preload_path))
    else:
        parser.print_help(sys.stderr)
        return 2
    return 0


def _prefix() -> str:
    from .paths import PACKAGE

    if not os.path.isdir(os.path.join(PACKAGE, "include", "ropewalk")):
        raise CommandError(
            f"--prefix: {PACKAGE} has no headers, as the package of a build tree has none; "
            "`make install PREFIX=...` or `pip install .` installs them",
            status=1,
        )
    return PACKAGE


def _preload_path(library: str) -> str:
    from . import preload

    try:
        return preload.preload_path(
            libraries=tuple(preload.LIBRARIES) if library == "all" else (library,)
        )
    except FileNotFoundError as error:
        raise CommandError(str(error), status=1) from None
