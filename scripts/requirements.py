"""What .venv needs, read from pyproject.toml so that it is written once.

requirements.py GROUP            prints the requirements of run, test, lint or torch, one a line
requirements.py --older-than V P exits with 0 when the system's program P is missing or older than V
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def requirements(group: str) -> list[str]:
    """`run` is what building and using the package takes; the others are its optional groups."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    if group == "run":
        return project["build-system"]["requires"] + project["project"].get("dependencies", [])
    return project["dependency-groups"][group]


def version_of(program: str) -> tuple[int, ...]:
    """The first dotted number that `program --version` prints; () where it does not run.

    Programs inside this tree do not count: what they satisfied once must stay required.
    """
    found = shutil.which(program)
    if found is None or ROOT in pathlib.Path(found).parents:
        return ()
    output = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\d+(\.\d+)+", output.stdout)
    return tuple(map(int, match.group().split("."))) if match else ()


def main(arguments: list[str]) -> int:
    if arguments[0] == "--older-than":
        wanted = tuple(map(int, arguments[1].split(".")))
        return 0 if version_of(arguments[2]) < wanted else 1
    print("\n".join(requirements(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
