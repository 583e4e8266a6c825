"""The recipes of packaging/ are well formed, and name what exists. Building them needs more."""

import ast
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"


def test_the_version_is_the_same_everywhere():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/check_version.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def options_of_cmake():
    files = ("CMakeLists.txt", "cmake/rooms.cmake", "cmake/unity.cmake")
    text = "\n".join((ROOT / name).read_text() for name in files)
    return set(re.findall(r"\b(?:option|set)\((ROPEWALK_\w+)", text))


@pytest.mark.parametrize("name", ["spack/package.py", "debian/rules"])
def test_recipes_name_options_that_exist(name):
    named = set(re.findall(r"ROPEWALK_[A-Z_]+", (PACKAGING / name).read_text()))
    assert named
    assert named <= options_of_cmake()


@pytest.mark.parametrize(
    ("file", "name"), [("spack/package.py", "Ropewalk"), ("spack/python/package.py", "PyRopewalk")]
)
def test_spack(file, name):
    tree = ast.parse((PACKAGING / file).read_text())
    (package,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert package.name == name
    calls = [node.value for node in package.body if isinstance(node, ast.Expr)]
    named = {call.func.id for call in calls if isinstance(call, ast.Call)}
    assert {"version", "variant", "depends_on", "license"} <= named


def names_required():
    """What pip installs together with the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {re.match(r"[\w-]+", one).group() for one in project["dependencies"]}


def test_recipes_bring_what_the_package_requires():
    spack = (PACKAGING / "spack/python/package.py").read_text()
    assert set(re.findall(r'depends_on\("py-([\w-]+)', spack)) >= names_required()
    easybuild = (PACKAGING / "easybuild/ropewalk.eb").read_text()
    assert names_required() == {"numpy", "rich"}  # NumPy is in SciPy-bundle
    assert "('SciPy-bundle'" in easybuild
    assert "('rich'" in easybuild


def test_easybuild():
    constants = {"PYPI_SOURCE": "the package index"}
    exec(compile((PACKAGING / "easybuild/ropewalk.eb").read_text(), "eb", "exec"), constants)
    wanted = ("easyblock", "name", "version", "homepage", "description", "toolchain", "moduleclass")
    assert all(constants.get(one) for one in wanted)
    assert set(constants["toolchain"]) == {"name", "version"}
    assert all(len(one) >= 2 for one in constants["dependencies"])


def test_modulefile():
    text = (PACKAGING / "modulefile/ropewalk.lua").read_text()
    if compiler := shutil.which("luac"):
        subprocess.run([compiler, "-p", "-"], input=text, text=True, check=True)
    code = re.sub(r"\[\[.*?\]\]|--[^\n]*|\"[^\"\n]*\"", "''", text, flags=re.DOTALL)
    assert code.count("(") == code.count(")")
    for line in filter(None, code.replace(",\n", ", ").splitlines()):
        assert re.fullmatch(r"(local \w+ = )?(\w+\(.*\)|'')", line), line
    for name in re.findall(r"\$(\w+)", text):
        assert f'setenv("{name}",' in text
    preload = dict(re.findall(r'"(libropewalk-(\w+)\.so)"', text))
    assert sorted(preload.values()) == ["malloc", "mpi"]


def test_dockerfile():
    text = re.sub(r"^#.*\n", "", (PACKAGING / "containers/Dockerfile").read_text(), flags=re.M)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert lines[0].startswith("FROM ")
    assert {line.split()[0] for line in lines} <= known
    for line in lines:
        if line.startswith("RUN "):
            subprocess.run(["sh", "-n", "-c", line.removeprefix("RUN ")], check=True)


def test_apptainer():
    text = (PACKAGING / "containers/ropewalk.def").read_text()
    header, *sections = re.split(r"^%", text, flags=re.MULTILINE)
    assert re.findall(r"^(\w+): \S", header, re.MULTILINE) == ["Bootstrap", "From"]
    bodies = dict(section.split("\n", 1) for section in sections)
    assert set(bodies) == {"files", "post", "environment", "runscript", "test", "labels", "help"}
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n"], input=bodies[name], text=True, check=True)


def test_debian():
    paragraphs = (PACKAGING / "debian/control").read_text().strip().split("\n\n")
    fields = [dict(re.findall(r"^([\w-]+): (.*)", one, re.MULTILINE)) for one in paragraphs]
    assert fields[0]["Source"] == "ropewalk"
    for package in fields[1:]:
        assert {"Package", "Architecture", "Depends", "Description"} <= set(package)
        assert (PACKAGING / f"debian/{package['Package']}.install").is_file()
    manual = (PACKAGING / "debian/ropewalk.manpages").read_text().strip()
    assert manual == "debian/tmp/usr/share/man/man1/ropewalk.1"
    assert manual.replace("debian/tmp/usr", "$(prefix)") in (PACKAGING / "debian/rules").read_text()
    if shutil.which("dpkg-parsechangelog"):
        command = ["dpkg-parsechangelog", "-l", PACKAGING / "debian/changelog", "-S", "Version"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        spec = importlib.util.spec_from_file_location("v", ROOT / "python/ropewalk/_version.py")
        version = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(version)
        assert told.strip() == version.__version__
