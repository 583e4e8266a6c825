"""ropewalk: line-rate communication for MPI programs, from user space.

Importing the package costs nothing: the compiled part is loaded when one of its names is used.
"""

__version__ = "0.1.0"

_CORE_NAMES = frozenset()

__all__ = ["__version__", *sorted(_CORE_NAMES)]


def __getattr__(name):
    if name not in _CORE_NAMES:
        raise AttributeError(f"module 'ropewalk' has no attribute '{name}'")
    from . import _core

    return getattr(_core, name)


def __dir__():
    return sorted(__all__)
