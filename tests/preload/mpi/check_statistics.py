"""check_statistics.py KIND RANKS -- COMMAND...: what ROPEWALK_STATS prints. KIND: on, compare,
unwatched, passes, disabled, devices, settings (ranks differ in one), unknown (names of settings).

The command runs `counted` under the drop-in: 10 allreduces of an int, 10 broadcasts of 56 bytes and
4 barriers on each rank.
"""

import re
import subprocess
import sys

MADE = {"Allreduce": (10, 4), "Bcast": (10, 56), "Barrier": (4, 0)}
DIFFERENT = (
    'settings: ROPEWALK_ALLREDUCE: found "ring" on rank 1 and "auto" on rank 0, expected the same'
)
UNKNOWN = (
    "settings: ROPEWALK_LANE: unknown, expected a name that `ropewalk config` lists; did you mean "
    "ROPEWALK_LANES?",
    'settings: ROPEWALK_NONBLOCKING: found "maybe", expected auto, off or on;',
)
ROW = re.compile(r"^\s+([A-Z]\w+)\s+(\d+)\s+(\d+) B\s+([\d.]+)\s+(.*)$")


def rows_of(text: str) -> list[tuple[str, int, int, str]]:
    found = (ROW.match(line) for line in text.splitlines())
    return [(m[1], int(m[2]), int(m[3]), m[5]) for m in found if m]


def problems_of_settings(kind: str, text: str) -> list[str]:
    lines = {DIFFERENT: kind == "settings"} | dict.fromkeys(UNKNOWN, kind == "unknown")
    found = [
        f"{text.count(line)} times: {line}"
        for line, told in lines.items()
        if text.count(line) != told
    ]
    refused = {
        r[0] for r in rows_of(text) if r[3].startswith("MPI: settings are malformed, or differ")
    }
    if refused != (set(MADE) if kind == "settings" else set()):
        found.append(f"calls that stayed out for settings: {refused}")
    return found


def problems_of(kind: str, ranks: int, text: str) -> list[str]:
    rows = rows_of(text)
    if kind in ("disabled", "passes", "settings"):
        served = [r for r in rows if not r[3].startswith("MPI: ")]
        return [f"nothing was to be served: {served}"] if served else []
    found = []
    if text.count(f"ropewalk: collectives of {ranks} rank") != 1:
        found.append("the table is printed once, for all ranks")
    for name, (calls, size) in MADE.items():
        of_it = [r for r in rows if r[0] == name]
        if sum(r[1] for r in of_it) != calls:
            found.append(f"{name}: {of_it} are not {calls} calls on each rank")
        if any(r[2] != size for r in of_it):
            found.append(f"{name}: {of_it} are not of {size} bytes")
    if {r[0] for r in rows} != set(MADE):
        found.append(f"functions that nobody called: {rows}")
    if kind == "devices":
        served = [r for r in rows if not r[3].startswith("MPI: ")]
        told = [r for r in rows if r[3].startswith("MPI: buffers may be a device's")]
        if served or len(told) != len(MADE):
            found.append(f"calls are to stay out for devices: {rows}")
        return found
    if not any(not r[3].startswith("MPI: ") for r in rows):
        found.append("nothing was served")
    told = text.count("nobody is told: ROPEWALK_TIMEOUT=off on rank 0")
    if told != (kind == "unwatched"):
        found.append(f"{told} times that nobody is told of deaths")
    if kind == "compare" and "made twice" not in text:
        found.append("no call was made twice")
    return found


def main() -> int:
    kind, ranks = sys.argv[1], int(sys.argv[2])
    command = sys.argv[sys.argv.index("--") + 1 :]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)
    text = ran.stdout + ran.stderr
    problems = problems_of(kind, ranks, text) + problems_of_settings(kind, text)
    if ran.returncode != 0:
        problems.append(f"exit status {ran.returncode}")
    if problems:
        print("\n".join([*problems, text]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
