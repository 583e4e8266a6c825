"""compiled_files.py TREE ROOM...: the C++ files that a build tree compiles for these folders.

Groups of sources (cmake/unity.cmake) are files of the tree itself.
"""

import json
import sys
from pathlib import Path


def main(tree: Path, rooms: list[str]) -> None:
    root = Path(__file__).resolve().parent.parent
    parents = [place / room for place in (root, tree.resolve()) for room in rooms]
    commands = json.loads((tree / "compile_commands.json").read_text())
    files = {Path(command["file"]) for command in commands}
    for file in sorted(files):
        if file.suffix in {".cc", ".cxx"} and any(parent in file.parents for parent in parents):
            print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
