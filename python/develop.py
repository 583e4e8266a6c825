"""Makes a virtual environment of this tree use the package as built here, without pip.

develop.py SOURCE PACKAGE PROGRAMS PRELOADS: links the Python files of SOURCE/python/ropewalk, the
folder of benchmark PROGRAMS and the one of the libraries to preload into PACKAGE, beside the
compiled module; then, where the interpreter that runs this is a virtual environment inside SOURCE,
puts PACKAGE on its path and writes the command `ropewalk`. Other environments are left alone:
`pip install .` is for them.
"""

import os
import pathlib
import runpy
import sys
import sysconfig
import tomllib

COMMAND = """#!{python}
import sys

from ropewalk.command import main

sys.exit(main())
"""


def link(target: pathlib.Path, path: pathlib.Path) -> None:
    if path.is_symlink() and pathlib.Path(os.readlink(path)) == target:
        return
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def link_package(
    source: pathlib.Path, package: pathlib.Path, programs: pathlib.Path, preloads: pathlib.Path
) -> None:
    folder = source / "python/ropewalk"
    files = [one for kind in ("*.py", "*.pyi", "*.css", "py.typed") for one in folder.rglob(kind)]
    for old in package.rglob("*.py*"):
        if old.is_symlink() and not old.exists():  # deleted in the source
            old.unlink()
    for file in files:
        path = package / file.relative_to(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        link(file, path)
    link(programs, package / "libexec")
    link(preloads, package / "preload")


def describe(source: pathlib.Path, folder: pathlib.Path) -> None:
    """What pip would write of the package, as far as other packages look for it."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    version = runpy.run_path(str(source / "python/ropewalk/_version.py"))["__version__"]
    facts = folder / "ropewalk.dist-info"
    facts.mkdir(exist_ok=True)
    name = f"Name: {project['name']}\nVersion: {version}\n"
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}")
    groups = project["entry-points"].items()
    (facts / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
            for group, entries in groups
        )
    )


def install(package: pathlib.Path) -> None:
    site = pathlib.Path(sysconfig.get_path("purelib"))
    (site / "ropewalk-develop.pth").write_text(f"{package.parent}\n")
    command = pathlib.Path(sysconfig.get_path("scripts")) / "ropewalk"
    text = COMMAND.format(python=sys.executable)
    if not command.exists() or command.read_text() != text:
        command.write_text(text)
        command.chmod(0o755)


def main(arguments: list[str]) -> None:
    source, package, programs, preloads = (
        pathlib.Path(argument).absolute() for argument in arguments
    )
    link_package(source, package, programs, preloads)
    environment = pathlib.Path(sys.prefix).absolute()
    if sys.prefix != sys.base_prefix and environment.is_relative_to(source):
        describe(source, package.parent)
        install(package)


if __name__ == "__main__":
    main(sys.argv[1:])
