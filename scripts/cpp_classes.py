"""The classes that a C++ source defines, each with the number of member functions it declares.

A reader of tokens, not a compiler: it follows braces through namespaces and classes and judges each
statement of a class by its first parenthesis. Functions that are deleted or defaulted do not count,
nor do friends; a class inside another counts for itself. It does not look into function bodies.
"""

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
      | (?P<text>R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
      | (?P<token>::|\[\[|\]\]|[A-Za-z_]\w*|\d[\w.']*|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
CLOSING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}
# What may stand before a parenthesis that is none of a function's parameters.
NO_FUNCTION = {"alignas", "decltype", "explicit", "noexcept", "requires", "__attribute__", "throw"}
NO_MEMBER = {"friend", "using", "typedef", "static_assert", "enum"}
NO_NAME = {"final", "alignas"}
MACRO = re.compile(r"RW_[A-Z_]+")
ACCESS = {"public", "protected", "private"}


def tokens_of(text: str) -> list[str]:
    """The tokens of a source; a literal is one token, `"`."""
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "token":
            found.append(match.group())
        elif match.group("text"):
            found.append('"')
    return found


def skipped(tokens: list[str], at: int) -> int:
    """The place behind the bracket that closes the one at `at`."""
    opening, closing, depth = tokens[at], CLOSING[tokens[at]], 0
    while at < len(tokens):
        depth += (tokens[at] == opening) - (tokens[at] == closing)
        at += 1
        if depth == 0:
            break
    return at


def angles_skipped(tokens: list[str], at: int) -> int:
    """The place behind the `>` that closes the `<` at `at`."""
    depth = 0
    while at < len(tokens):
        if tokens[at] in CLOSING:
            at = skipped(tokens, at)
            continue
        depth += (tokens[at] == "<") - (tokens[at] == ">")
        at += 1
        if depth == 0:
            break
    return at


def plain(head: list[str]) -> list[str]:
    """A statement's head without template arguments, attributes, `alignas(...)` and such."""
    kept: list[str] = []
    at = 0
    while at < len(head):
        token = head[at]
        if token == "[[" or (token == "(" and kept and kept[-1] in NO_FUNCTION):
            at = skipped(head, at)
        elif token == "<" and kept and kept[-1] != "operator" and kept[-1] != "<":
            at = angles_skipped(head, at)
        else:
            kept.append(token)
            at += 1
    return kept


def is_function(head: list[str]) -> bool:
    """Whether a statement of a class declares a function that has a body somewhere."""
    head = plain(head)
    if not head or head[0] in NO_MEMBER or head[-1] in ("delete", "default") or "friend" in head:
        return False
    if "operator" in head:
        return True
    for before, token, after in zip(head, head[1:], [*head[2:], ""], strict=False):
        if before == "=" or token == "=":
            return False
        if token == "(" and after not in ("*", "&") and re.match(r"[A-Za-z_]", before):
            return True
    return False


def class_name(head: list[str]) -> str | None:
    """The name of the class that a head ending before `{` defines; None where it defines none."""
    head = plain(head)
    head = head[: head.index(":")] if ":" in head else head
    if "(" in head or "=" in head or "enum" in head:
        return None
    for key in ("class", "struct", "union"):
        if key in head:
            words = head[head.index(key) + 1 :]
            return "".join(w for w in words if w not in NO_NAME and not MACRO.fullmatch(w)) or None
    return None


def namespace_name(head: list[str]) -> str | None:
    """The name of the namespace that a head opens; None where it opens none."""
    if head[:1] == ["extern"] and head[1:] == ['"']:
        return ""
    if "namespace" in head:
        return "".join(word for word in head[head.index("namespace") + 1 :])
    return None


class Reader:
    """Walks the tokens of one source."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.at = 0
        self.found: list[tuple[str, int]] = []
        self.outermost: list[str] = []  # the names of those in no other class
        self.within_class = False

    def read(self, name: str | None, counts: bool) -> int:
        """Reads one scope up to its closing brace; how many functions it declares."""
        head: list[str] = []
        functions = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token == "}":
                break
            if token == "{":
                if self.body_ends_statement(head, name):
                    functions += is_function(head)
                    head = []
                continue
            self.at += 1
            if token == ";":
                functions += is_function(head)
                head = []
            elif token == ":" and len(head) == 1 and head[0] in ACCESS:
                head = []
            else:
                head.append(token)
        self.at += 1
        if counts and name:
            self.found.append((name, functions))
        return functions

    def body_ends_statement(self, head: list[str], scope: str | None) -> bool:
        """Reads what an opening brace begins; whether the statement ends with its closing brace."""
        if (inner := namespace_name(head)) is not None:
            self.at += 1
            self.read("::".join(filter(None, (scope, inner))), counts=False)
            return True
        if inner := class_name(head):
            if not self.within_class and "::" not in inner:
                self.outermost.append(inner)
            self.at += 1
            outer, self.within_class = self.within_class, True
            self.read("::".join(filter(None, (scope, inner))), counts=True)
            self.within_class = outer
            head[:] = ["using"]  # what comes before the semicolon declares no function
            return False
        self.at = skipped(self.tokens, self.at)
        following = self.tokens[self.at] if self.at < len(self.tokens) else ""
        return is_function(head) and following not in (",", "{", ";")


def whole(text: str) -> Reader:
    """A reader that has walked to the end of the text."""
    reader = Reader(text)
    while reader.at < len(reader.tokens):
        reader.read(None, counts=False)
    return reader


def classes(text: str) -> Iterator[tuple[str, int]]:
    """Each class defined in the text, with its namespaces, and its number of member functions."""
    yield from whole(text).found


def outermost(text: str) -> list[str]:
    """The names, without namespaces, of the classes defined in the text within no other class."""
    return whole(text).outermost
