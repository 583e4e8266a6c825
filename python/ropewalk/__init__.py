"""ropewalk: line-rate communication for MPI programs, from user space.

    import numpy as np, ropewalk

    field = ropewalk.zeros((66, 66))  # on 2 MiB pages that peers of the node can map
    grid = ropewalk.CartesianGrid([2, 1])
    with ropewalk.EndpointSet() as endpoints:
        halo = ropewalk.Halo(grid, endpoints, field)
        halo.exchange()

Importing the package costs nothing: NumPy and the compiled part are loaded when a name is used.
"""

from ._version import __version__

TYPE_CHECKING = False  # as typing has it, which is not imported: it would cost something
if TYPE_CHECKING:  # what __getattr__ finds, for type checkers
    from .arrays import ArenaStatistics as ArenaStatistics
    from .arrays import Inspection as Inspection
    from .arrays import arena_statistics as arena_statistics
    from .arrays import empty as empty
    from .arrays import inspect as inspect
    from .arrays import trim as trim
    from .arrays import zeros as zeros
    from .channel import Channel as Channel
    from .channel import MessageStatus as MessageStatus
    from .channel import PendingMessage as PendingMessage
    from .channel import PersistentMessage as PersistentMessage
    from .channel import any_source as any_source
    from .channel import any_tag as any_tag
    from .collectives import Communicator as Communicator
    from .collectives import PendingCollective as PendingCollective
    from .exceptions import ArgumentError as ArgumentError
    from .exceptions import Error as Error
    from .exceptions import InternalError as InternalError
    from .exceptions import MemoryError as MemoryError
    from .exceptions import MpiError as MpiError
    from .exceptions import PeerDeadError as PeerDeadError
    from .exceptions import SystemError as SystemError
    from .exceptions import UnsupportedError as UnsupportedError
    from .exchange import CartesianGrid as CartesianGrid
    from .exchange import EndpointSet as EndpointSet
    from .exchange import Halo as Halo
    from .exchange import MessagePlan as MessagePlan
    from .irregular import IrregularHalo as IrregularHalo
    from .preload import preload_path as preload_path
    from .reduction import PendingReduction as PendingReduction
    from .reduction import ReductionPlan as ReductionPlan
    from .reduction import as_bfloat16 as as_bfloat16
    from .subarrays import SubarrayExchange as SubarrayExchange
    from .window import Window as Window

# The module of each public name.
_NAMES = {
    **dict.fromkeys(
        ("empty", "zeros", "inspect", "Inspection", "arena_statistics", "ArenaStatistics", "trim"),
        "arrays",
    ),
    "preload_path": "preload",
    **dict.fromkeys(("ReductionPlan", "PendingReduction", "as_bfloat16"), "reduction"),
    **dict.fromkeys(
        (
            "Channel",
            "MessageStatus",
            "PendingMessage",
            "PersistentMessage",
            "any_source",
            "any_tag",
        ),
        "channel",
    ),
    "IrregularHalo": "irregular",
    "SubarrayExchange": "subarrays",
    "Window": "window",
    **dict.fromkeys(("Communicator", "PendingCollective"), "collectives"),
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

# These modules need neither NumPy nor the compiled part.
_PURE = ("exceptions", "preload")

__all__ = ["__version__", *sorted(_NAMES)]


def __getattr__(name: str) -> object:
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


def __dir__() -> list[str]:
    return list(__all__)
