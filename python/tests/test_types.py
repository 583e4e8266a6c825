"""What type checkers are told is what there is: the stub of the compiled part, the public names."""

import ast
import pathlib
import re

import pytest

import ropewalk

FOLDER = pathlib.Path(ropewalk.__file__).parent


def names_of(body):
    return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_the_stub_has_the_names_of_the_compiled_part():
    core = pytest.importorskip("ropewalk._core")
    stub = ast.parse((FOLDER / "_core.pyi").read_text())
    assert names_of(stub.body) == public(core)
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            assert names_of(node.body) == public(getattr(core, node.name)), node.name


def argument_count(signature):
    """Of nanobind's `def name(arg: type, /) -> type`, whose types are not all Python's."""
    inside = signature.split("(", 1)[1].split(" -> ")[0].rpartition(")")[0]
    while "[" in inside:
        inside = re.sub(r"\[[^\[\]]*\]", "", inside)
    return len([one for one in inside.split(",") if one.strip() not in ("", "/", "self")])


def test_the_stub_has_as_many_arguments_as_the_compiled_part():
    core = pytest.importorskip("ropewalk._core")
    stub = ast.parse((FOLDER / "_core.pyi").read_text())
    places = [(core, stub)] + [
        (getattr(core, node.name), node) for node in stub.body if isinstance(node, ast.ClassDef)
    ]
    for place, inside in places:
        for node in inside.body:
            if isinstance(node, ast.FunctionDef):
                [(signature, *_)] = getattr(place, node.name).__nb_signature__
                given = (*node.args.posonlyargs, *node.args.args)
                names = [one.arg for one in given if one.arg != "self"]
                assert len(names) == argument_count(signature), (signature, names)


def test_type_checkers_see_every_public_name():
    tree = ast.parse((FOLDER / "__init__.py").read_text())
    [block] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {alias.asname: one.module for one in block.body for alias in one.names}
    assert seen == ropewalk._NAMES
    assert (FOLDER / "py.typed").exists()
