"""The plain MPI that a benchmark measures beside ropewalk: it runs with its own defaults, and what
it runs with is shown.

Interfaces, contexts and split threads for lanes cost a plain MPI time in every call, so it gets
them only where the program takes lanes itself.
"""

from collections.abc import Mapping, Sequence

from .. import nested
from ..options import RankOptions
from ..plan import Plan

VARIABLE = "ROPEWALK_BENCH_SETTINGS"  # read by bench/common/program.cc
# These programs have an option --lanes.
WITH_LANES = ("comms", "overlap", "itt")
# The variables of an MPI, its launcher and its network libraries begin with these.
_PREFIXES = ("MPIR_", "MPICH_", "OMPI_", "PRTE_", "I_MPI_", "FI_", "UCX_", "PSM2_", "HYDRA_")
# Where something is, or what lets it start at all.
_NOT_SHOWN = ("I_MPI_ROOT", "FI_PROVIDER_PATH", "OMPI_ALLOW_RUN_AS_ROOT")


def is_plain(name: str, options: RankOptions, words: Sequence[str]) -> bool:
    """Whether the MPI is left as it is: the bench takes no lanes when called like this."""
    if name not in WITH_LANES:
        return True
    if options.lanes is not None:
        return options.lanes == 1
    if name == "comms":
        strategies = _value(words, "--strategy")
        return strategies is not None and not {"threaded", "automatic"} & {*strategies.split(",")}
    return name == "itt"  # one lane unless it is told otherwise


def _value(words: Sequence[str], option: str) -> str | None:
    """Of the last `option value` or `option=value`; None where there is none."""
    found = None
    for at, word in enumerate(words):
        if word == option and at + 1 < len(words):
            found = words[at + 1]
        elif word.startswith(option + "="):
            found = word.partition("=")[2]
    return found


def environment(planned: Plan, base: Mapping[str, str]) -> dict[str, str]:
    """The environment of the launcher, with a line for the heading of the bench."""
    return {**planned.environment(base), VARIABLE: settings(planned, base)}


def settings(planned: Plan, base: Mapping[str, str]) -> str:
    """ "NAME=VALUE ..." of what the MPI is told, by ropewalk or by the user; "none"."""
    base = nested.outer(base)
    found = {**base, **{one.name: one.value for one in planned.settings}}
    shown = [
        f"{name}={value}"
        for name, value in sorted(found.items())
        if name.startswith(_PREFIXES) and not name.startswith(_NOT_SHOWN)
    ]
    return " ".join(shown) or "none"
