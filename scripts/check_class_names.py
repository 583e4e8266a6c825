"""This check fails where two headers of the tree define classes of the same name.

It looks at the classes, structs and unions that headers define in any namespace. It leaves out
those inside another class, those of a source file, and enumerations. exceptions.toml lists the
names that two headers define today, each with its reason.
"""

import pathlib
import subprocess
import sys
from collections import defaultdict

import cpp_classes
import exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent
AREAS = ["include", "src", "preload", "lattice", "bench"]


def headers() -> list[str]:
    """Returns the headers that git tracks or would take, as paths from the root of the tree."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--"]
    command += [f"{area}/*.{suffix}" for area in AREAS for suffix in ("hpp", "h")]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def main() -> int:
    definers = defaultdict(set)
    for header in headers():
        for name in cpp_classes.outermost((ROOT / header).read_text()):
            definers[name].add(header)
    allowed = exceptions.Exceptions("class names")
    problems = [
        f"{name}: defined by {' and '.join(sorted(found))}; rename all but one"
        for name, found in sorted(definers.items())
        if len(found) > 1 and not allowed.allow(name)
    ]
    print("\n".join(allowed.hints()), end="\n" if allowed.hints() else "")
    print("\n".join(problems) if problems else f"class names: {len(definers)}, each of one header")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
