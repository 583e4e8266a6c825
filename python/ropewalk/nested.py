"""What `ropewalk run` sets in the environment of its ranks, told apart from what the user has set.

A rank may be a script that starts another `ropewalk run`, with another MPI. What the outer one set
is then not "your own setting": it is written down in one variable, and undone by the inner one. So
is what the outer launcher has told the rank.
"""

import json
from collections.abc import Mapping, MutableMapping

MARK = "ROPEWALK_SET"  # {name: [the value it got, the value it had or null]}

_MARKS_OF_A_RANK = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
)
_SIZES = (("PMI_SIZE", "PMI_RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"))
# What a launcher has told a rank: who it is, and where it is to report. MPICH does not start where
# it finds the words of two launchers.
OF_A_RANK = (
    *("PMI_", "PMI2_", "PMIX_", "HYDI_", "HYDRA_BSTRAP_", "MPI_LOCAL", "PRTE_LAUNCHED"),
    *("OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "OMPI_WORLD_", "OMPI_APP_", "OMPI_NUM_", "OMPI_FIRST_"),
    *("OMPI_FILE_", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_TOOL_NAME", "OMPI_VERSION", "OMPI_LIBDIR_"),
    *("OMPI_MCA_PREFIXES", "OMPI_MCA_num_procs", "OMPI_MCA_initial_wdir", "OMPI_MCA_cpu_type"),
    *("OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_shmem_RUNTIME_QUERY_hint"),
    *("I_MPI_INFO_", "I_MPI_HYDRA_UUID", "I_MPI_HYDRA_TOPOLIB", "I_MPI_PIN_INFO"),
    *("I_MPI_PIN_MAPPING", "I_MPI_INTERNAL_", "I_MPI_RETURN_WIN_MEM_NUMA"),
)
_OF_THE_USER = ("PMIX_MCA_",)


def mark(settings: Mapping[str, str], before: Mapping[str, str]) -> str:
    """The value of MARK: of {name: value} in the environment `before`."""
    return json.dumps({name: [value, before.get(name)] for name, value in settings.items()})


def outer(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment as it was before an outer `ropewalk run`. What has been changed since is the
    user's, but a list that grew at its ends loses what was ours."""
    made = dict(environment)
    for name, (value, before) in _marked(made.pop(MARK, None)):
        now = made.get(name)
        if now == value:
            now = before
        elif now is not None and name == "LD_LIBRARY_PATH":
            now = _without(now, value, before)
        if now is None:
            made.pop(name, None)
        else:
            made[name] = now
    return made


def set_by_run(environment: Mapping[str, str]) -> dict[str, str]:
    """{name: value} of what an outer `ropewalk run` has set; changed since, or not."""
    return {name: value for name, (value, _) in _marked(environment.get(MARK))}


def is_rank(environment: Mapping[str, str]) -> bool:
    """Whether a launcher has started what has this environment as a rank."""
    return any(name in environment for name in _MARKS_OF_A_RANK)


def outside(environment: Mapping[str, str]) -> dict[str, str]:
    """outer(), and without what a launcher has told this rank: of a process that starts a job."""
    made = outer(environment)
    if not is_rank(made):
        return made
    return {
        name: value
        for name, value in made.items()
        if name.startswith(_OF_THE_USER) or not name.startswith(OF_A_RANK)
    }


def leave(environment: MutableMapping[str, str]) -> None:
    """outer(), in place."""
    if MARK not in environment:
        return
    made = outer(environment)
    for name in list(environment):
        if name not in made:
            del environment[name]
    environment.update(made)


def other_job(environment: Mapping[str, str]) -> tuple[str, ...]:
    """A note where another launcher has started several of this process; the first tells. Ranks of
    `ropewalk run` are scripts that start jobs of their own."""
    if MARK in environment:
        return ()
    for size, rank in _SIZES:
        count = environment.get(size, "")
        if count.isdecimal() and int(count) > 1 and environment.get(rank, "0") == "0":
            return (
                f"this is one of {int(count)} ranks that another launcher has started ({size}), "
                "and each starts a job of its own; call `ropewalk run` without that launcher",
            )
    return ()


def _marked(text: str | None) -> list[tuple[str, tuple[str, str | None]]]:
    try:
        found = json.loads(text or "{}")
        return [(name, (str(value), before)) for name, (value, before) in found.items()]
    except (ValueError, TypeError, AttributeError):  # somebody else's: nothing is known
        return []


def _without(now: str, value: str, before: str | None) -> str:
    """A search path without the folder that we had put in front."""
    folder = value.removesuffix(f":{before}") if before else value
    parts = now.split(":")
    if folder in parts:
        parts.remove(folder)
    return ":".join(parts)
