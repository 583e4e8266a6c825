"""These tests check the links and pages of the site that scripts/docs_pages.py makes."""

import pathlib
import re
import subprocess
import sys

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
