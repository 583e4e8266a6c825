"""What `ropewalk run --dry-run` prints: the command and each variable, with its reason."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from . import installations, plan


def as_text(request: plan.Request, planned: plan.Plan, notes: Sequence[str]) -> str:
    """As text."""
    one = request.installation
    name = f"{one.title} {installations.version(one)}".strip()
    cores = f"{request.cores} core{'s' if request.cores != 1 else ''}"
    nodes = f" on {request.nodes} nodes" if request.nodes > 1 else ""
    lines = [
        f"# {name}: {one.library} ({one.origin})",
        f"# {request.ranks} rank{'s' if request.ranks != 1 else ''}{nodes}, {cores} here"
        + (", more ranks than cores" if request.oversubscribed else ""),
    ]
    if request.placement:
        lines.append(f"# {request.placement}")
    if request.launcher.reason:
        lines.append(f"# {request.launcher.path}: {request.launcher.reason}")
    lines += [f"# {what}: {reason}" for what, reason in request.preload.lines]
    lines += [f"# note: {note}" for note in notes]
    lines.append(shlex.join(planned.command))
    shown = _shown(planned)
    width = max((len(f"{s.name}={s.value}") for s in shown), default=0)
    for setting in shown:
        lines.append(f"  {f'{setting.name}={setting.value}':<{min(width, 60)}}  # {setting.reason}")
    return "\n".join(lines)


def _shown(planned: plan.Plan) -> list[plan.Setting]:
    """All variables, in the order in which they are shown."""
    if not planned.preload:
        return planned.settings
    preload = plan.Setting("LD_PRELOAD", planned.preload, "for the ranks only")
    return [*planned.settings, preload]


def as_json(request: plan.Request, planned: plan.Plan, notes: Sequence[str]) -> str:
    """As one JSON object."""
    one = request.installation
    return json.dumps(
        {
            "mpi": {"family": one.family, "version": installations.version(one)},
            "library": one.library,
            "origin": one.origin,
            "ranks": request.ranks,
            "nodes": request.nodes,
            "cores": request.cores,
            "notes": list(notes),
            "command": planned.command,
            "variables": [
                {"name": each.name, "value": each.value, "reason": each.reason}
                for each in _shown(planned)
            ],
        },
        indent=2,
    )
