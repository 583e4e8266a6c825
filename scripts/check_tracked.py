"""Text alone is tracked by git: fails for binary files and for files above a size.

A downloaded wheel that `git add` took along stays in the history of every clone.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 256 << 10  # seven times the largest file today, a table of results


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def problem_of(name: str) -> str:
    """What is wrong with one tracked file, or nothing."""
    content = (ROOT / name).read_bytes()
    if len(content) > MOST_BYTES:
        return f"{name}: {len(content)} bytes, at most {MOST_BYTES} are tracked by git"
    if b"\0" in content:
        return f"{name}: binary, and git tracks text alone; `git rm --cached` takes it out"
    return ""


def main() -> int:
    problems = [problem for name in tracked() if (problem := problem_of(name))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
