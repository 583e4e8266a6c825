"""The command line of every verb: its parser, and the options that several verbs share.

Help teaches: options in groups, examples, what the exit status means; headings are bold on a
terminal only. What is wrong on the command line is a CommandError, one line as every other error.
Values land in dataclasses, so that what a verb works on has types and defaults in one place.
"""

import argparse
import difflib
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

from .errors import CommandError

_MOST = (1 << 31) - 1  # that the library counts
_WIDEST = 100  # columns of help; wider lines are hard to read


class _Formatter(argparse.HelpFormatter):
    """Wraps each paragraph by itself; lines that begin with a space stay as they are."""

    def __init__(self, prog: str) -> None:
        width = min(_WIDEST, shutil.get_terminal_size().columns) - 2
        super().__init__(prog, max_help_position=28, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(self._paragraph(part, width) for part in text.strip().split("\n\n"))

    def _paragraph(self, text: str, width: int) -> str:
        if any(line.startswith(" ") for line in text.splitlines()):
            return text
        return textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """The parser of one verb. `examples` and `statuses` are pairs (what one writes, what it
    means)."""

    def __init__(
        self,
        prog: str,
        description: str,
        usage: str,
        *,
        notes: str = "",
        examples: Sequence[tuple[str, str]] = (),
        statuses: Sequence[tuple[str, str]] = (),
        add_help: bool = True,
    ) -> None:
        parts = [notes.strip(), _table("examples:", examples), _table("exit status:", statuses)]
        super().__init__(
            prog=prog,
            description=description,
            usage=usage,
            epilog="\n\n".join(part for part in parts if part) or None,
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        if add_help:
            self.add_argument("-h", "--help", action="help", help="show this and end")

    def error(self, message: str) -> NoReturn:
        text = message.removeprefix("argument ")
        _, unknown, rest = text.partition("unrecognized arguments: ")
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            text = f"{rest}: no such option{nearest(rest.split()[0].partition('=')[0], known)}"
        raise CommandError(f"{text}; see `{self.prog} --help`")

    def print_help(self, file: Any = None) -> None:
        stream: IO[str] = sys.stdout if file is None else file
        stream.write(emphasised(self.format_help()) if is_colourful(stream) else self.format_help())


def _table(title: str, pairs: Sequence[tuple[str, str]]) -> str:
    if not pairs:
        return ""
    width = max((len(left) for left, right in pairs if right), default=0)
    rows = (f"  {left:<{width}}  {right}".rstrip() for left, right in pairs)
    return "\n".join([title, *rows])


def nearest(word: str, known: Sequence[str]) -> str:
    """ " (did you mean ...?)" where one of the known words is like it, else ""."""
    found = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {found[0]}?)" if found else ""


def is_colourful(stream: IO[str]) -> bool:
    """A terminal, and nobody has asked for none (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def emphasised(text: str) -> str:
    """Help with bold headings and coloured options, as terminals show them."""
    text = re.sub(r"^(usage:|[a-z][^\n:]*:$)", "\033[1m\\1\033[0m", text, flags=re.MULTILINE)
    return re.sub(r"^(  -[^\n]*?)(?=  |$)", "\033[36m\\1\033[0m", text, flags=re.MULTILINE)


def whole_number(text: str) -> int:
    """The type of an option that counts something."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}', expected a whole number") from None
    if abs(number) > _MOST:
        raise argparse.ArgumentTypeError(f"'{text}', expected at most {_MOST}")
    return number


# ---- what several verbs take ---------------------------------------------------------------------


@dataclass
class RankOptions:
    """How ranks are started: of `run`, `bench` and `cluster`."""

    ranks: int | None = None
    lanes: int | None = None
    bind: bool | None = None
    env: list[str] = field(default_factory=list)
    launcher_option: list[str] = field(default_factory=list)


@dataclass
class DropInOptions(RankOptions):
    """What is put into the ranks, besides: of `run` and `cluster`."""

    mpi: str | None = None
    malloc: bool = True
    preload: bool = True
    stats: bool = False
    grid: str | None = None


def add_grid_option(group: Any) -> argparse.Action:
    """Declares --grid of `run` and `cluster`."""
    made: argparse.Action = group.add_argument(
        "--grid",
        metavar="A.B.C",
        help="the program's grid of ranks, numbered row by row: each node gets a compact block; "
        "-n is its size",
    )
    return made


def add_rank_options(
    parser: Parser, ranks: str, title: str = "ranks", several_mpis: bool = False
) -> list[argparse.Action]:
    """Declares RankOptions and --mpi; `ranks`: what -n is if it is not given. Returns the
    options."""
    group = parser.add_argument_group(title)
    number = f"number of ranks; default: {ranks}"
    one_mpi = "mpich, openmpi, intel, system, or the prefix of an MPI"
    several = f"{one_mpi}; several, as a list or repeated, are measured one after the other"
    append: dict[str, Any] = {"action": "append"}
    return [
        group.add_argument("-n", "--ranks", type=whole_number, metavar="N", help=number),
        group.add_argument("--mpi", metavar="NAME", help=several, **append)
        if several_mpis
        else group.add_argument("--mpi", metavar="NAME", help=one_mpi),
        group.add_argument(
            "--lanes",
            type=whole_number,
            metavar="K",
            help="number of lanes of each EndpointSet; default: automatic",
        ),
        group.add_argument(
            "--bind",
            action=argparse.BooleanOptionalAction,
            help="bind ranks to cores; default: where there are enough",
        ),
        group.add_argument(
            "--env",
            metavar="NAME=VALUE",
            help="an environment variable of the ranks; may be repeated",
            **append,
        ),
        group.add_argument(
            "--launcher-option",
            metavar="OPTION",
            help="an option for the launcher, as in --launcher-option=-hosts=a,b; may be repeated",
            **append,
        ),
    ]


def add_drop_in_options(parser: Parser, title: str = "the drop-in") -> list[argparse.Action]:
    """Declares the rest of DropInOptions; returns the options."""
    group = parser.add_argument_group(title)
    return [
        group.add_argument(
            "--no-malloc",
            dest="malloc",
            action="store_false",
            help="leave the program's memory allocation alone",
        ),
        group.add_argument(
            "--no-preload",
            "--plain",
            dest="preload",
            action="store_false",
            help="load nothing into the ranks: the plain MPI with its settings",
        ),
        group.add_argument(
            "--stats",
            action="store_true",
            help="at the end, write what ropewalk did to standard error",
        ),
    ]


def words_of(actions: Sequence[argparse.Action], options: object) -> list[str]:
    """The words that give another process the same options."""
    words: list[str] = []
    for action in actions:
        value = getattr(options, action.dest)
        names = [name for name in action.option_strings if name.startswith("--")]
        if isinstance(action, argparse.BooleanOptionalAction):
            words += [] if value is None else [names[0] if value else names[1]]
        elif action.nargs == 0:
            words += [names[0]] if value == action.const else []
        elif isinstance(value, list):
            words += [f"{names[0]}={one}" for one in value]
        elif value is not None:
            words.append(f"{names[0]}={value}")
    return words
