"""What each MPI found here can do: version, binary interface, thread level, providers.

The thread level is asked from a child that opens the library through ctypes and initialises it as
one rank. Nothing of MPI is loaded into this process.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from .. import cores, installations, plan, preload
from ..installations import Installation
from . import dropin

_SECONDS = 20  # a start takes 0.2 s; more than this is a broken installation
ABIS = {"mpich": "MPICH", "intel": "MPICH", "openmpi": "Open MPI"}
THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")

# Runs as a rank: standard library only.
_ASK = """
import ctypes, json, sys
mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
level = ctypes.c_int(-1)
mpi.MPI_Init_thread(None, None, 3, ctypes.byref(level))
text, size = ctypes.create_string_buffer(16384), ctypes.c_int()
mpi.MPI_Get_library_version(text, ctypes.byref(size))
major, minor = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Get_version(ctypes.byref(major), ctypes.byref(minor))
print("ropewalk:" + json.dumps({
    "level": level.value, "standard": f"{major.value}.{minor.value}",
    "library": text.value.decode(errors="replace").strip().splitlines()[0]}), flush=True)
mpi.MPI_Finalize()
"""


def ask(installation: Installation) -> dict[str, Any]:
    """{"level", "standard", "library"} of a run with one rank, or {"error"}."""
    request = plan.Request(
        installation=installation,
        ranks=1,
        program=[sys.executable, "-I", "-S", "-c", _ASK, installation.library],
        lanes=1,
        cores=cores.usable_cores(),
        root=os.geteuid() == 0,
        python=True,
    )
    planned = plan.make(request)
    try:
        done = subprocess.run(
            planned.command,
            env=planned.environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": f"{type(error).__name__} after starting {installation.launcher}"}
    for line in done.stdout.splitlines():
        if line.startswith("ropewalk:"):
            answer: dict[str, Any] = json.loads(line.removeprefix("ropewalk:"))
            level = answer["level"]
            if level in range(len(THREAD_LEVELS)):
                return answer
            return {"error": f"MPI_Init_thread said nothing of its level (found {level})"}
    complaint = (done.stderr or done.stdout).strip().splitlines()
    return {"error": complaint[-1] if complaint else f"status {done.returncode}"}


def _providers(installation: Installation) -> list[str]:
    """Names of the libfabric providers that the MPI brings as files."""
    folder = plan.providers(installation.prefix)
    if folder is None:
        return []
    names = {
        name.removeprefix("lib").split("-")[0]
        for name in os.listdir(folder)
        if name.endswith("-fi.so")
    }
    return sorted(names)


def describe(installation: Installation, run: bool = True) -> dict[str, Any]:
    """The JSON object of one installation."""
    found = {
        "family": installation.family,
        "version": installations.version(installation),
        "abi": ABIS[installation.family],
        "mpi5_abi": installation.standard_library is not None,
        "prefix": installation.prefix,
        "library": installation.library,
        "origin": installation.origin,
        "providers": _providers(installation),
        "fortran": dropin.fortran(installation, preload.find().get("mpi")),
    }
    answer = ask(installation) if run else {}
    if "level" in answer:
        found["thread_level"] = THREAD_LEVELS[answer["level"]]
        found["standard"] = answer["standard"]
        found["library_version"] = answer["library"]
    elif "error" in answer:
        found["error"] = answer["error"]
    return found


def every(run: bool = True, tell: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    """All installations; `tell` is told of each before it is started."""
    found = []
    for one in installations.every():
        if run:
            tell(f"starting one rank of {one.title}")
        found.append(describe(one, run))
    return found
