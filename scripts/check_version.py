"""Fails for a file that repeats the version and differs from python/ropewalk/_version.py."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = r"(\d+\.\d+\.\d+)"
# Each file with what stands around the version; every place of it counts.
REPEATED = {
    "CITATION.cff": rf"^version: {VERSION}$",
    "packaging/spack/package.py": rf'version\("{VERSION}"|ropewalk-{VERSION}\.tar',
    "packaging/spack/python/package.py": rf'version\("{VERSION}"|ropewalk-{VERSION}\.tar',
    "packaging/easybuild/ropewalk.eb": rf"^version = '{VERSION}'$",
    "packaging/modulefile/ropewalk.lua": rf'Version: {VERSION}"|/ropewalk/{VERSION}"',
    "packaging/containers/Dockerfile": rf"ropewalk:{VERSION}|ropewalk=={VERSION}",
    "packaging/containers/ropewalk.def": rf"Version {VERSION}$|ropewalk=={VERSION}",
    "packaging/debian/changelog": rf"\Aropewalk \({VERSION}\)",
}


def version() -> str:
    text = (ROOT / "python/ropewalk/_version.py").read_text()
    return re.findall(rf'^__version__ = "{VERSION}', text, re.MULTILINE)[0]


def problem_of(name: str, pattern: str) -> str:
    matches = re.finditer(pattern, (ROOT / name).read_text(), re.MULTILINE)
    found = [next(filter(None, match.groups())) for match in matches]
    if found and set(found) == {version()}:
        return ""
    return f"{name}: the version is {' and '.join(found) or 'not there'}, expected {version()}"


def main() -> int:
    problems = [problem for one in REPEATED.items() if (problem := problem_of(*one))]
    print("\n".join(problems) if problems else f"version: {version()} everywhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
