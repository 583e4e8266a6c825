"""torch.compile leaves the calls of this package as they are: it must not look into them.

Dynamo, which torch.compile imports at its first use, takes a second to import, so nothing here
imports it: it is told when somebody else does.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_RULES = "torch._dynamo.trace_rules"
_SKIPPED = "ropewalk.torch"


class _Loader(importlib.abc.Loader):
    """Loads the module of rules as another does, and adds a rule to it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.add(_SKIPPED)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module of rules once, and nothing else."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _RULES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def leave_alone() -> None:
    """Has torch.compile break its graph at calls of this package. May be called again."""
    if _RULES in sys.modules:
        sys.modules[_RULES].add(_SKIPPED)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
