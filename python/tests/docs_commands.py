"""The commands of the documentation: every fenced block `sh` or `console`, cut into commands.

A block `sh` holds commands alone, a block `console` commands behind `$ ` and what they print. A
line that ends with a backslash goes on in the next one, and ` #` begins a comment.
"""

import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = {"sh", "console"}
OTHERS = {"text", "cpp", "c++", "c", "python", "py", "toml", "cmake", "dockerfile"}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: str  # below the root of the tree
    line: int
    language: str
    text: str


def pages() -> list[pathlib.Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> Iterator[Block]:
    for page in pages():
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Block(str(page.relative_to(ROOT)), line, match[1], match[2])


def commands_of(block: Block) -> list[str]:
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    bare = (re.sub(r"(^|\s)#.*", "", line) for line in lines)
    return [" ".join(line.split()) for line in bare if line.strip()]


def commands() -> dict[str, str]:
    """{command: page and line of the first block that has it}"""
    found: dict[str, str] = {}
    for block in blocks():
        for command in commands_of(block) if block.language in COMMANDS else ():
            found.setdefault(command, f"{block.page}:{block.line}")
    return found
