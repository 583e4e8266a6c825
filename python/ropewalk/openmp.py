"""The threads of each rank: how many, on which of its cores, beside the comm threads of its lanes.

Comm threads take the last cores of a rank's affinity mask (EndpointOptions::pin), over several
nodes the last of those near the adapter (transport::with_last). The program's threads get the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from . import launchers

if TYPE_CHECKING:
    from .plan import Request, SettingWords

# The user's own words on where threads are: ours then stay out.
_PLACEMENT = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")

# These launchers bind a rank where they are told to; of the others it is not known.
_BINDING_LAUNCHERS = ("hydra", "openmpi", "pals")


def threads_of(wanted: int, given: Mapping[str, str]) -> int:
    """--threads, or the user's own OMP_NUM_THREADS instead, whose first number is that of the
    outer parallel regions. 0: --threads was not given."""
    own = given.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(own) if wanted and own.isdigit() and int(own) > 0 else wanted


def variables(request: Request, environment: Mapping[str, str]) -> Iterator[SettingWords]:
    """(name, value, reason) of --threads."""
    if not request.threads:
        return
    given = {**environment, **dict(request.variables)}
    yield "OMP_NUM_THREADS", str(request.threads), "threads of each rank (--threads)"
    if not request.plain and not request.lanes and "ROPEWALK_LANES" not in given:
        reason = f"lanes of an EndpointSet: the cores that {request.threads} threads leave free"
        yield "ROPEWALK_LANES", str(request.lanes_wanted), reason
    if any(name in given for name in _PLACEMENT):
        return
    near = _near_and_far(request)
    if near and request.ranks_here > 1:
        yield "OMP_PROC_BIND", "false", "lanes are near the adapter, where threads would be, too"
    elif near and _has_cores_of_its_own(request, environment):
        yield "OMP_PLACES", _far_first(request), "cores that leave those near the adapter to lanes"
        yield "OMP_PROC_BIND", "close", "a thread stays on its core"
    elif _has_cores_of_its_own(request, environment):
        first = f"the first {request.threads} cores of each rank; its comm threads take the last"
        yield "OMP_PLACES", f"cores({request.threads})", first
        yield "OMP_PROC_BIND", "close", "a thread stays on its core"
    else:
        yield "OMP_PROC_BIND", "false", "threads share cores with others: the system places them"


def _has_cores_of_its_own(request: Request, environment: Mapping[str, str]) -> bool:
    """Whether each rank has a core for each thread that no other rank has."""
    if not request.binding or request.threads > request.cores_each:
        return False
    if request.ranks_here == 1:
        return True
    bound = request.launcher.kind in _BINDING_LAUNCHERS
    return bound and not launchers.leaves_binding_alone(request, environment)


def _near_and_far(request: Request) -> bool:
    """Whether some rank has cores near the adapter and others: only then the order of its cores
    for lanes is another. The launcher deals cores in runs of equal length."""
    if request.plain or not request.near:
        return False
    each = len(request.core_groups) if request.ranks_here == 1 else request.cores_each
    near = [bool(request.near.intersection(group)) for group in request.core_groups]
    return any(len(set(near[at : at + each])) > 1 for at in range(0, len(near), each))


def _far_first(request: Request) -> str:
    """OMP_PLACES of as many cores as threads, those near the adapter last."""
    ordered = sorted(request.core_groups, key=lambda group: bool(request.near.intersection(group)))
    places = ("{" + ",".join(map(str, group)) + "}" for group in ordered[: request.threads])
    return ",".join(places)
