"""coverage_table.py FILE: what gcovr's JSON says, as one line a room."""

import collections
import json
import pathlib
import sys


def room_of(name: str) -> str:
    """The room of a source: src/halo, preload/mpi, lattice/src, include."""
    parts = pathlib.PurePath(name).parts
    deep = len(parts) > 2 and parts[0] != "include"
    return "/".join(parts[: 2 if deep else 1])


def main(path: str) -> int:
    lines: collections.Counter[str] = collections.Counter()
    reached: collections.Counter[str] = collections.Counter()
    for file in json.loads(pathlib.Path(path).read_text())["files"]:
        # One line of a header or template is counted once, however many programs compile it.
        counts: collections.Counter[int] = collections.Counter()
        for line in file["lines"]:
            counts[line["line_number"]] += line["count"]
        lines[room_of(file["file"])] += len(counts)
        reached[room_of(file["file"])] += sum(count > 0 for count in counts.values())
    lines["total"], reached["total"] = lines.total(), reached.total()
    print(f"{'room':<20} {'lines':>7} {'reached':>8} {'share':>7}")
    for room in [*sorted(set(lines) - {"total"}), "total"]:
        share = 100 * reached[room] / max(lines[room], 1)
        print(f"{room:<20} {lines[room]:>7} {reached[room]:>8} {share:>6.1f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
