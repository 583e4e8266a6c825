"""Comments and docs name only what exists: files, links and their anchors, `Class::function`,
and variables of the environment. Prose of Markdown is wrapped.

A file may be named by the end of its path (`nodes/choice.cc`), or without its suffix where it
begins with a folder of the tree (`src/mpi/abi`). Of a name with `::`, each part must occur in the
code somewhere; which class has which member is the compiler's affair.
"""

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_LIKE = {".cc", ".cpp", ".c", ".h", ".hpp", ".inc"}
HASH_LIKE = {".cmake", ".sh", ".yaml", ".toml"}
HASH_NAMES = {"CMakeLists.txt", "Makefile", "run", "setup", "build", "test", "lint", "sanitize"}

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
SUFFIXES = "cc|cpp|hpp|h|c|py|md|sh|cmake|inc"
FILE = re.compile(rf"(?<![\w/.<~$*{{+-])((?:[\w.-]+/)*[\w-][\w.-]*\.(?:{SUFFIXES}))(?![\w(*{{/])")
FOLDERS = "src|include|preload|lattice|bench|python|scripts|docs|examples|packaging|cmake|tests"
PLACE = re.compile(rf"(?<![\w/.<~$*{{-])((?:{FOLDERS})/[\w/.-]*\w)(?![\w*{{])")
SCOPED = re.compile(r"(?<![\w:./-])((?:[A-Za-z_]\w*::)+~?[A-Za-z_]\w*)(?![\w:])")
VARIABLE = re.compile(r"\bROPEWALK_[A-Z0-9_]*[A-Z0-9]\b(?![*_])")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
CODE = re.compile(r"^```(cpp|python)\n(.*?)\n```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

CALL = re.compile(r"(?<![\w.:>/-])([A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*)\(\)")

# Not ours: files of kernels, MPIs and other programs that comments rightly name, and placeholders.
FOREIGN_FILES = {
    *("mpi.h", "mpi_abi.h", "mpi_proto.h", "mpif.h", "dl-cache.h", "cuda.h", "dlpack.h"),
    *("script.py", "main.py", "a.b.c"),
}
FOREIGN_FOLDERS = ("linux/", "src/mpid/", "lib/tools/", "mpi4py/")
FOREIGN_CALLS = ("omp_",)
MAX_COLUMNS = 100
# A list of one line each, and a page that a table of settings makes.
NOT_WRAPPED = {"CHANGELOG.md", "environment.md"}
FOREIGN_SCOPES = {"std", "testing", "fmt", "CLI", "nlohmann", "nanobind", "nb", "rc", "Grid"}
PLACEHOLDER = re.compile(r"\b[A-Z]+\b(?:\.\w+)?$")


def listed() -> list[pathlib.Path]:
    """What git tracks or would take."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()})


def c_comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments of a C or C++ file, each with the line it begins at."""
    for match in COMMENT_OR_STRING.finditer(text):
        if match.group().startswith(("//", "/*")):
            yield text.count("\n", 0, match.start()) + 1, match.group()


def c_code(text: str) -> str:
    """A C or C++ file without its comments."""
    return COMMENT_OR_STRING.sub(
        lambda match: " " if match.group().startswith(("//", "/*")) else match.group(), text
    )


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Comments and docstrings of a Python file."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(r"(?:^|\s)#\s(.*)", line):
            yield number, match.group(1)
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, holders) and (words := ast.get_docstring(node, clean=False)):
            yield node.body[0].lineno, words


def hash_prose(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(r"(?:^|\s)#\s?(.*)", line):
            yield number, match.group(1)


def prose(path: pathlib.Path, text: str) -> Iterator[tuple[int, str]]:
    """What of a file is written for people, in parts, each with its first line."""
    if path.suffix in C_LIKE:
        yield from c_comments(text)
    elif path.suffix == ".py":
        yield from python_prose(text)
    elif path.suffix == ".md":
        yield 1, re.sub(r"\]\([^)\s]+\)", "]", text)  # where links lead is checked apart
    elif path.suffix in HASH_LIKE or path.name in HASH_NAMES:
        yield from hash_prose(text)


class Tree:
    """What exists: paths, folders, identifiers of the code, variables that the code reads."""

    def __init__(self, files: dict[pathlib.Path, str]) -> None:
        self.ends: set[str] = set()
        self.places: set[str] = set()
        self.identifiers: set[str] = set()
        for path, text in files.items():
            self._add_path(path.relative_to(ROOT))
            if path.suffix in C_LIKE:
                text = c_code(text)
            if path.suffix != ".md":
                self.identifiers.update(IDENTIFIER.findall(text))

    def _add_path(self, path: pathlib.PurePath) -> None:
        parts = path.parts
        self.ends.update("/".join(parts[i:]) for i in range(len(parts)))
        for depth in range(1, len(parts) + 1):
            self.places.add("/".join(parts[:depth]))
        self.places.add(str(path.with_suffix("")))

    def has_file(self, name: str) -> bool:
        """A public header is also named as programs include it, or as the build makes it."""
        foreign = name in FOREIGN_FILES or name.startswith(FOREIGN_FOLDERS)
        made = PLACEHOLDER.search(name) is not None
        return foreign or made or name in self.ends or f"{name}.in" in self.ends

    def has_place(self, name: str) -> bool:
        made = PLACEHOLDER.search(name) is not None
        return made or name in self.places or name.startswith(FOREIGN_FOLDERS)

    def has_scoped(self, name: str) -> bool:
        parts = name.replace("~", "").split("::")
        return parts[0] in FOREIGN_SCOPES or all(part in self.identifiers for part in parts)


def missing_names(tree: Tree, words: str) -> Iterator[tuple[int, str]]:
    """Names in prose that nothing in the tree has, each with its place in the words."""
    for match in FILE.finditer(words):
        if not tree.has_file(match.group(1).removeprefix("./")):
            yield match.start(), f"there is no file {match.group(1)}"
    for match in PLACE.finditer(words):
        name = match.group(1)
        if not FILE.fullmatch(name) and not tree.has_place(name):
            yield match.start(), f"there is no {name}"
    for match in SCOPED.finditer(words):
        if not tree.has_scoped(match.group(1)):
            yield match.start(), f"nothing in the code is named {match.group(1)}"
    for match in CALL.finditer(words):
        name = match.group(1)
        if name not in tree.identifiers and not name.startswith(FOREIGN_CALLS):
            yield match.start(), f"nothing in the code is named {match.group()}"
    for match in VARIABLE.finditer(words):
        if match.group() not in tree.identifiers:
            yield match.start(), f"no code knows {match.group()}"


def anchors(text: str) -> set[str]:
    """The anchors that a Markdown page offers, as GitHub makes them of headings."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


def broken_links(path: pathlib.Path, text: str) -> Iterator[tuple[int, str]]:
    """Links of a page to pages and headings that do not exist."""
    for match in LINK.finditer(FENCE.sub(lambda m: "\n" * m.group().count("\n"), text)):
        target, _, anchor = match.group(1).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        goal = (path.parent / target).resolve() if target else path
        line = text.count("\n", 0, match.start())
        if not goal.exists():
            yield line, f"the link {match.group(1)} leads nowhere"
        elif anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text()):
            yield line, f"{target or path.name} has no heading #{anchor}"


def wide_prose(path: pathlib.Path, text: str) -> Iterator[tuple[int, str]]:
    """Lines of prose that are not wrapped; tables, code and single long words need not be."""
    if path.name in NOT_WRAPPED:
        return
    code = comment = False
    for number, line in enumerate(text.splitlines()):
        code ^= line.lstrip().startswith("```")
        comment = (comment or line.startswith("<!--")) and not line.endswith("-->")
        free = code or comment or line.startswith(("|", "    ")) or " " not in line.strip()
        if not free and len(line) > MAX_COLUMNS and "](http" not in line:
            yield number, f"{len(line)} columns of prose, at most {MAX_COLUMNS}"


def flush_left(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def invented_code(files: dict[pathlib.Path, str]) -> Iterator[str]:
    """Code of these pages that no example has, and so nobody compiles or runs."""
    examples = [flush_left(text) for path, text in files.items() if path.parent.name == "examples"]
    for page in ("README.md", "docs/how-to/messages.md"):
        for match in CODE.finditer(files[ROOT / page]):
            shown = flush_left(match.group(2))
            if not any(shown in text for text in examples):
                yield f"{page}: no file in examples/ has the lines after `{shown[:60]}`"


def problems_of(tree: Tree, path: pathlib.Path, text: str) -> Iterator[str]:
    name = path.relative_to(ROOT)
    for first, words in prose(path, text):
        for place, problem in missing_names(tree, words):
            yield f"{name}:{first + words.count(chr(10), 0, place)}: {problem}"
    if path.suffix == ".md":
        for line, problem in [*broken_links(path, text), *wide_prose(path, text)]:
            yield f"{name}:{line + 1}: {problem}"


def read(paths: list[pathlib.Path]) -> dict[pathlib.Path, str]:
    """The texts, without what is no text (figures, recorded bytes)."""
    texts = {}
    for path in paths:
        try:
            texts[path] = path.read_text()
        except UnicodeDecodeError:
            continue
    return texts


def main() -> int:
    files = read(listed())
    tree = Tree(files)
    problems = [
        problem for path, text in files.items() for problem in problems_of(tree, path, text)
    ]
    problems += invented_code(files)
    print("\n".join(problems) if problems else "references: all that comments and docs name exists")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
