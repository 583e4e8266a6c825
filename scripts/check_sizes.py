"""Files a person can hold in mind: at most 500 lines, and lines of at most 100 columns."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 500
MAX_COLUMNS = 100
SUFFIXES = {".cc", ".cpp", ".c", ".h", ".hpp", ".inc", ".py", ".cmake", ".sh"}
NAMES = {"CMakeLists.txt", "Makefile", "run", "setup", "build", "test", "lint", "sanitize"}


def sources() -> list[pathlib.Path]:
    """What git tracks or would take, of the kinds that people write by hand."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return [p for p in paths if p.is_file() and (p.suffix in SUFFIXES or p.name in NAMES)]


def problems_of(path: pathlib.Path) -> list[str]:
    lines = path.read_text().splitlines()
    name = path.relative_to(ROOT)
    found = [
        f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
        for number, line in enumerate(lines, 1)
        if len(line) > MAX_COLUMNS
    ]
    if len(lines) > MAX_LINES:
        found.append(f"{name}: {len(lines)} lines, at most {MAX_LINES}; split it by what it owns")
    return found


def main() -> int:
    problems = [problem for path in sources() for problem in problems_of(path)]
    print("\n".join(problems) if problems else "sizes: every file and line is within bounds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
