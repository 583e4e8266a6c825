"""`ropewalk completion` prints what a shell completes. scripts/manual makes the page for man.

Both are made from the parsers of the verbs, so they say what `--help` says.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib import import_module

from .errors import CommandError
from .options import Parser, nearest

SHELLS = ("bash", "zsh", "fish")


def main(words: Sequence[str]) -> int:
    """Prints the completion of a shell, and returns the exit status."""
    options = parser().parse_args(words)
    if options.shell not in SHELLS:
        expected = f"expected {', '.join(SHELLS)}{nearest(options.shell, SHELLS)}"
        raise CommandError(f"SHELL: '{options.shell}', {expected}")
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](), end="")
    return 0


def parser() -> Parser:
    made = Parser(
        "ropewalk completion",
        "Print what a shell needs to complete verbs, options and files.",
        "ropewalk completion bash | zsh | fish",
        examples=(
            ('eval "$(ropewalk completion bash)"', "in ~/.bashrc"),
            ('eval "$(ropewalk completion zsh)"', "in ~/.zshrc, behind compinit"),
            ("ropewalk completion fish | source", "in ~/.config/fish/config.fish"),
        ),
        statuses=(("0", "printed"), ("2", "the command line was wrong")),
    )
    made.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    return made


def parsers() -> dict[str, tuple[str, Parser]]:
    """Returns for each verb its line of help and its parser."""
    from .command import VERBS

    return {
        verb.name: (verb.help, import_module(f".{verb.module}", __package__).parser())
        for verb in VERBS
    }


def options_of(made: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in made._actions if action.option_strings]


def _words_of(made: argparse.ArgumentParser) -> str:
    return " ".join(name for action in options_of(made) for name in action.option_strings)


def bash() -> str:
    verbs = parsers()
    cases = "\n".join(
        f'    {name}) words="{_words_of(made)}" ;;' for name, (_, made) in verbs.items()
    )
    return f"""# ropewalk completion bash
_ropewalk() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{" ".join(verbs)} --help --version --prefix --preload-path"
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _ropewalk ropewalk
"""


def zsh() -> str:
    verbs = parsers()
    named = "\n".join(f"    {_quoted(f'{name}:{help}')}" for name, (help, _) in verbs.items())
    cases = "\n".join(
        f"    {name}) compadd -- {_words_of(made)}; _files ;;" for name, (_, made) in verbs.items()
    )
    return f"""# ropewalk completion zsh
_ropewalk() {{
  local -a verbs
  verbs=(
{named}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  case "$words[2]" in
{cases}
  esac
}}
compdef _ropewalk ropewalk
"""


def fish() -> str:
    lines = ["# ropewalk completion fish"]
    for name, (help, made) in parsers().items():
        lines.append(f"complete -c ropewalk -n __fish_use_subcommand -a {name} -d {_quoted(help)}")
        for action in options_of(made):
            lines.append(_fish_option(name, action))
    return "\n".join(lines) + "\n"


def _fish_option(verb: str, action: argparse.Action) -> str:
    kinds = [
        f"-l {one[2:]}" if one[:2] == "--" else f"-s {one[1:]}" for one in action.option_strings
    ]
    told = (action.help or "").replace("%%", "%").splitlines()[:1] or [""]
    value = " -r" if action.nargs != 0 else ""
    when = _quoted(f"__fish_seen_subcommand_from {verb}")
    return f"complete -c ropewalk -n {when} {' '.join(kinds)}{value} -d {_quoted(told[0])}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ---- the manual ----------------------------------------------------------------------------------


def manual() -> str:
    """Returns the page ropewalk(1) for man, which has the help of every verb."""
    from . import __version__

    parts = [
        f'.TH ROPEWALK 1 "" "ropewalk {__version__}" "User Commands"',
        ".SH NAME\nropewalk \\- line-rate communication for MPI programs, from user space",
        ".SH SYNOPSIS\n.B ropewalk\n.I VERB\n[options]",
        ".SH VERBS",
    ]
    for name, (help, made) in parsers().items():
        parts.append(f".SS {_roff(f'ropewalk {name}')}\n{_roff(help)}.\n.PP\n.nf")
        parts.append(_roff(made.format_help()))
        parts.append(".fi")
    return "\n".join(parts) + "\n"


def _roff(text: str) -> str:
    """Escapes a text so that man shows it as it is: no line of it is a request, no backslash an
    escape, no hyphen a dash."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)
