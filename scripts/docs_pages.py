"""This script makes the pages of the site: docs/ as it is, and pages that are made from sources.

`docs_pages.py FOLDER` fills the folder with a copy of docs/, a page for each public header, a page
for the Python package, and a page for each file outside docs/ that another page links to.

A header's page has its first comment as text and the rest as it stands, because the headers are
written to be read. mkdocstrings makes the page of the Python package from the docstrings.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".cc": "cpp", ".h": "c", ".c": "c", ".py": "python"}
# Each heading on the page of the Python package has these modules below it.
MODULES = {
    "Collectives": ["ropewalk.collectives"],
    "Messages": ["ropewalk.channel"],
    "Windows": ["ropewalk.window"],
    "Endpoints and halos": ["ropewalk.exchange", "ropewalk.irregular", "ropewalk.subarrays"],
    "Repeated reductions": ["ropewalk.reduction"],
    "Memory": ["ropewalk.arrays", "ropewalk.preload"],
    "PyTorch": ["ropewalk.torch", "ropewalk.torch.allocator", "ropewalk.torch.hooks"],
    "Errors": ["ropewalk.exceptions"],
}


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def source_page(path: pathlib.Path) -> str:
    """Returns the page that shows a file of the tree."""
    if path.suffix == ".md":
        return path.read_text()
    language = LANGUAGES.get(path.suffix, "")
    return f"# {path.relative_to(ROOT)}\n\n````{language}\n{path.read_text()}````\n"


def header_page(path: pathlib.Path) -> str:
    """Returns the page of a header, with the first comment as text and the rest as it stands."""
    lines = path.read_text().splitlines()
    end = next(k for k, line in enumerate(lines) if not line.startswith("//"))
    about = "\n".join(line.removeprefix("//").strip() for line in lines[:end])
    code = "\n".join(lines[end:]).strip()
    name = path.relative_to(ROOT / "include")
    return f"# {name}\n\n{about}\n\n```cpp\n{code}\n```\n"


def python_page() -> str:
    parts = ["# The Python package\n\nMade from its docstrings.\n"]
    for title, modules in MODULES.items():
        made = "\n\n".join(
            f"::: {module}\n    options:\n      show_root_heading: false\n      heading_level: 3"
            for module in modules
        )
        parts.append(f"## {title}\n\n{made}\n")
    return "\n".join(parts)


def headers(folder: pathlib.Path) -> None:
    lines = ["# The C++ and C interface\n\nA page for each public header, as it is installed.\n"]
    for path in sorted((ROOT / "include/ropewalk").glob("*.h*")):
        write(folder / f"interfaces/{path.name}.md", header_page(path))
        lines.append(f"- [ropewalk/{path.name}]({path.name}.md)")
    write(folder / "interfaces/headers.md", "\n".join(lines) + "\n")


def listed(page: pathlib.Path, path: pathlib.Path, folder: pathlib.Path) -> str:
    """Makes a page that names the files of a folder of docs/, and returns the link to it. A folder
    outside docs/ gets no page, because its name is enough."""
    if ROOT / "docs" not in path.parents:
        return "#"
    made = folder / path.relative_to(ROOT / "docs") / "files.md"
    names = sorted(one.name for one in path.iterdir() if one.is_file())
    write(made, f"# {path.name}\n\n" + "".join(f"- [{name}]({name})\n" for name in names))
    return os.path.relpath(made, page.parent)


def linked(page: pathlib.Path, target: str, folder: pathlib.Path) -> str:
    """Returns the link as the site has it. A file outside docs/ gets a page of its own."""
    origin = ROOT / "docs" / page.relative_to(folder)
    path = pathlib.Path(os.path.normpath(origin.parent / target))
    if path.is_dir():
        return listed(page, path, folder)
    if not path.exists() or ROOT / "docs" in path.parents:
        return target
    made = folder / "sources" / f"{path.relative_to(ROOT)}{'' if path.suffix == '.md' else '.md'}"
    if not made.exists():
        write(made, source_page(path))
    return os.path.relpath(made, page.parent)


def relink(page: pathlib.Path, folder: pathlib.Path) -> None:
    text = page.read_text()
    made = LINK.sub(
        lambda match: f"{match[1]}{linked(page, match[2], folder)}{match[3] or ''}{match[4]}", text
    )
    if made != text:
        page.write_text(made)


def separated(text: str) -> str:
    """Returns the text with empty lines before tables and lists, which the site's parser asks for
    and that of repositories does not."""
    made: list[str] = []
    in_code = in_list = False
    for line in text.split("\n"):
        before = made[-1] if made else ""
        is_item = re.match(r"([-*]|\d+\.) ", line) is not None
        begins = (is_item and not in_list) or (line[:1] == "|" and before[:1] != "|")
        if begins and before.strip() and not in_code:
            made.append("")
        if line.startswith("```"):
            in_code = not in_code
        in_list = is_item or (in_list and line.strip() != "")
        made.append(line)
    return "\n".join(made)


def main(folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for page in sorted(folder.rglob("*.md")):
        relink(page, folder)
        page.write_text(separated(page.read_text()))
    headers(folder)
    write(folder / "interfaces/python.md", python_page())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
