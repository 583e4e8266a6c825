"""ropewalk: line-rate communication for MPI programs, from user space.

    import numpy as np, ropewalk

    field = ropewalk.zeros((66, 66))  # on 2 MiB pages that peers of the node can map
    grid = ropewalk.CartesianGrid([2, 1])
    with ropewalk.EndpointSet() as endpoints:
        halo = ropewalk.Halo(grid, endpoints, field)
        halo.exchange()

Importing the package costs nothing: NumPy and the compiled part are loaded when a name is used.
"""

__version__ = "0.1.0"

# The module of each public name.
_NAMES = {
    **dict.fromkeys(
        ("empty", "zeros", "inspect", "Inspection", "arena_statistics", "ArenaStatistics", "trim"),
        "arrays",
    ),
    "preload_path": "preload",
    **dict.fromkeys(("ReductionPlan", "PendingReduction", "as_bfloat16"), "reduction"),
    **dict.fromkeys(("EndpointSet", "MessagePlan", "CartesianGrid", "Halo"), "exchange"),
    **dict.fromkeys(
        (
            "Error",
            "ArgumentError",
            "MemoryError",
            "SystemError",
            "MpiError",
            "PeerDeadError",
            "UnsupportedError",
            "InternalError",
        ),
        "exceptions",
    ),
}

# Modules that need neither NumPy nor the compiled part.
_PURE = ("exceptions", "preload")

__all__ = ["__version__", *sorted(_NAMES)]


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'ropewalk' has no attribute '{name}'")
    from importlib import import_module, util

    for needed in (f"{__name__}._core", "numpy"):
        if _NAMES[name] not in _PURE and util.find_spec(needed) is None:
            raise ImportError(
                f"ropewalk.{name} needs {needed}, which is not here: build the package with "
                "`make build` or `pip install .`"
            )
    return getattr(import_module(f".{_NAMES[name]}", __name__), name)


def __dir__():
    return list(__all__)
