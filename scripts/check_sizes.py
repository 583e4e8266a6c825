"""Files, functions and classes that a person can hold in mind.

check_sizes.py           fails on what is larger than the limits below allow
check_sizes.py --lower   besides, drops outdated exceptions and lowers figures that have gone down

exceptions.toml lists what is larger today, with its figure, which may only go down, and a reason.
A function's lines are those with code on them. Its branches are its cyclomatic complexity, where a
switch counts once however many cases it has. A class's functions are those it declares
(cpp_classes.py), or defines in Python.
"""

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import cpp_classes
import exceptions

try:
    import lizard
except ImportError:
    sys.exit("check_sizes: lizard is missing; scripts/setup lint installs it into .venv")

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_COLUMNS = 100
# What exceptions.toml calls a figure: the most it may be.
LIMITS = {"lines": 500, "function lines": 60, "branches": 15, "member functions": 25}
CPP = {".cc", ".cpp", ".c", ".h", ".hpp"}
SUFFIXES = {*CPP, ".inc", ".py", ".cmake", ".sh"}
NAMES = {"CMakeLists.txt", "Makefile", "run", "setup", "build", "test", "lint", "sanitize"}

# A figure found in the tree: the kind in LIMITS, what has it, and how much it is.
Figure = tuple[str, str, int]


def sources() -> list[pathlib.Path]:
    """What git tracks or would take, of the kinds that people write by hand."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return [p for p in paths if p.is_file() and (p.suffix in SUFFIXES or p.name in NAMES)]


def wide_lines(path: pathlib.Path, text: str) -> Iterator[str]:
    """Lines of more columns than the house allows; for these there are no exceptions."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            where = f"{path.relative_to(ROOT)}:{number}"
            yield f"{where}: {len(line)} columns, at most {MAX_COLUMNS}"


def classes(path: pathlib.Path, text: str) -> Iterator[tuple[str, int]]:
    """Each class of a source with the number of its functions."""
    if path.suffix in CPP:
        yield from cpp_classes.classes(text)
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                yield node.name, sum(isinstance(item, ast.FunctionDef) for item in node.body)


def figures_of_file(path: pathlib.Path, text: str) -> Iterator[Figure]:
    """The file's lines, and its classes."""
    name = path.relative_to(ROOT)
    yield "lines", str(name), len(text.splitlines())
    for class_name, functions in classes(path, text):
        yield "member functions", f"{name} {class_name.split('::')[-1]}", functions


def name_of(function: "lizard.FunctionInfo") -> str:
    """A function's name without namespaces; a test's is what its macro is given."""
    if function.name.split("::")[-1].startswith(("TEST", "TYPED_TEST", "INSTANTIATE")):
        arguments = function.long_name.partition("(")[2].rstrip(") ")
        return arguments.replace(" ", "").replace(",", ".")
    return function.name.replace("ropewalk::", "")


def figures_of_functions(paths: list[pathlib.Path]) -> Iterator[Figure]:
    """Lines and branches of every function."""
    extensions = lizard.get_extensions(["modified"])
    names = [str(path) for path in paths if path.suffix in CPP or path.suffix == ".py"]
    for file in lizard.analyze_files(names, threads=1, exts=extensions):
        for function in file.function_list:
            name = f"{pathlib.Path(file.filename).relative_to(ROOT)} {name_of(function)}"
            yield "function lines", name, function.nloc
            yield "branches", name, function.cyclomatic_complexity


def main(arguments: list[str]) -> int:
    paths = sources()
    tables = {kind: exceptions.Exceptions(kind) for kind in LIMITS}
    problems = []
    figures = list(figures_of_functions(paths))
    for path in paths:
        text = path.read_text()
        problems += wide_lines(path, text)
        figures += figures_of_file(path, text)
    for kind, name, figure in figures:
        problem = tables[kind].problem(name, figure, LIMITS[kind])
        problems += [problem] if problem else []
    hints = [hint for table in tables.values() for hint in table.hints()]
    if "--lower" in arguments:
        exceptions.lower(list(tables.values()))
    elif hints:
        print("\n".join([*hints, "sizes: `python scripts/check_sizes.py --lower` does that"]))
    exempt = sum(len(table.entries) for table in tables.values())
    rest = f", but for {exempt} exceptions" if exempt else ""
    print("\n".join(problems) if problems else f"sizes: everything is within bounds{rest}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
