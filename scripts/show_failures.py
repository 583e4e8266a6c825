#!/usr/bin/env python3
"""What failed in the output of one step of .ci/run, short enough to be read at the end of it.

Of CTest's output, each failed test with what it printed; of pytest's, the part from its FAILURES
on; of anything else, the end.
"""

import pathlib
import re
import sys

LINES_A_TEST = 60  # of each failed test its last lines: there stand assertion and error
TESTS_AT_MOST = 10
LINES_OF_ANYTHING_ELSE = 60

RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: ")
FAILED = re.compile(r"\*\*\*(Failed|Timeout|Exception|Not Run)")
START = re.compile(r"^ +Start +\d+: ")


def failed_of_ctest(lines: list[str]) -> list[str]:
    """With `--output-on-failure` what a test printed follows the line of its result."""
    out: list[str] = []
    shown = 0
    for at, line in enumerate(lines):
        if not (RESULT.match(line) and FAILED.search(line)):
            continue
        shown += 1
        if shown > TESTS_AT_MOST:
            out.append(line)
            continue
        end = at + 1
        while end < len(lines) and not (RESULT.match(lines[end]) or START.match(lines[end])):
            end += 1
        out += [line, *lines[at + 1 : end][-LINES_A_TEST:]]
    return out


def failed_of_pytest(lines: list[str]) -> list[str]:
    for at, line in enumerate(lines):
        if re.match(r"=+ (FAILURES|ERRORS) =+", line):
            return lines[at:][-3 * LINES_A_TEST :]
    return []


def main() -> None:
    log = pathlib.Path(sys.argv[1])
    lines = log.read_text(errors="replace").splitlines()
    found = failed_of_ctest(lines) + failed_of_pytest(lines)
    print(f"\n==== failed in {log.name}")
    print("\n".join(found or lines[-LINES_OF_ANYTHING_ELSE:]))


if __name__ == "__main__":
    main()
