"""These tests check the links and pages of the site that scripts/docs_pages.py makes."""

import pathlib
import re
import subprocess
import sys

import ropewalk

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_links_of_the_site_lead_somewhere(tmp_path):
    folder = tmp_path / "docs"
    command = [sys.executable, str(ROOT / "scripts/docs_pages.py"), str(folder)]
    assert subprocess.run(command, timeout=60).returncode == 0
    pages = sorted(folder.rglob("*.md"))
    assert len(pages) > 50
    for page in pages:
        text = re.sub(r"(`{3,}).*?\1", "", page.read_text(), flags=re.DOTALL)  # Code has no links.
        for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text):
            if "sources" not in page.relative_to(folder).parts:  # Copies of sources lead on.
                assert (page.parent / target).exists(), (page, target)


def test_every_public_header_has_a_page(tmp_path):
    folder = tmp_path / "docs"
    command = [sys.executable, str(ROOT / "scripts/docs_pages.py"), str(folder)]
    assert subprocess.run(command, timeout=60).returncode == 0
    for header in (ROOT / "include/ropewalk").glob("*.h*"):
        page = folder / f"interfaces/{header.name}.md"
        code = page.read_text().split("```cpp\n")[1].split("\n```")[0]
        assert code in header.read_text()
        assert page.read_text().startswith(f"# ropewalk/{header.name}\n")


def made_pages(folder):
    command = [sys.executable, str(ROOT / "scripts/docs_pages.py"), str(folder)]
    assert subprocess.run(command, timeout=60).returncode == 0
    return folder


def test_tables_and_lists_begin_behind_empty_lines(tmp_path):
    page = made_pages(tmp_path / "docs") / "reference/command.md"
    assert "```\n\n| option | meaning |\n|---" in page.read_text()
    assert "\n\n- In an allgather" in (tmp_path / "docs/explanation/collectives.md").read_text()
    for page in (tmp_path / "docs").rglob("*.md"):
        text = re.sub(r"(`{3,}).*?\1", "```", page.read_text(), flags=re.DOTALL)
        assert not re.search(r"\n[^|\n][^\n]*\n\|", text), page


def test_every_public_name_of_python_has_a_place(tmp_path):
    page = (made_pages(tmp_path / "docs") / "interfaces/python.md").read_text()
    shown = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    objects = [getattr(ropewalk, name) for name in ropewalk.__all__]
    assert {one.__module__ for one in objects if hasattr(one, "__module__")} <= shown
    assert "ropewalk.torch" in shown
