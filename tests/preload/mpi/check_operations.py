"""check_operations.py -- COMMAND...: runs `operations` under the drop-in with ROPEWALK_STATS=1.

What the MPI accepts was served, every time; what it refuses went to it, as its to judge.
"""

import re
import subprocess
import sys

ROW = re.compile(r"^\s+Allreduce\s+(\d+)\s.*\s\s(\S.*)$", re.MULTILINE)
TOLD = re.compile(r"operations: (\d+) accepted, (\d+) refused")


def problems_of(text: str) -> list[str]:
    told = TOLD.search(text)
    if not told:
        return ["the program has not told its numbers"]
    accepted, refused = int(told[1]), int(told[2])
    rows = [(int(calls), how) for calls, how in ROW.findall(text)]
    served = sum(calls for calls, how in rows if not how.startswith("MPI: "))
    judged = sum(calls for calls, how in rows if how == "MPI: arguments that MPI must judge")
    other = [how for _, how in rows if how.startswith("MPI: ") and "judge" not in how]
    found = []
    if accepted < 500 or refused < 300:
        found.append(f"{accepted} accepted and {refused} refused are too few: types are missing")
    if served != accepted:
        found.append(f"{served} calls were served, {accepted} are such as the MPI accepts")
    if judged != refused:
        found.append(f"{judged} calls went to MPI to judge, {refused} are such as it refuses")
    if other:
        found.append(f"calls went to MPI for other reasons: {other}")
    return found


def main() -> int:
    command = sys.argv[sys.argv.index("--") + 1 :]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)
    text = ran.stdout + ran.stderr
    problems = problems_of(text)
    if ran.returncode != 0:
        problems.append(f"exit status {ran.returncode}")
    if problems:
        print("\n".join([*problems, text]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
