"""These tests check that the page of `ropewalk report` can be read: texts do not overlap, contrast
is sufficient, and it fits screens of all widths. Without a browser they go by the coordinates of
the drawings, and with Chromium by what it lays out."""

import html
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from ropewalk import command
from ropewalk.report import page, svg

DATA = pathlib.Path(__file__).resolve().parents[2] / "docs/results/data"
# These results have pictures of every kind, and the longest names.
FILES = [DATA / f"{name}.jsonl" for name in (
    "collectives", "nodes", "comms", "dropin", "gradient", "itt", "lattice", "malloc", "memory",
    "overlap",
)]  # fmt: skip
_TEXT, _SHAPE = 4.5, 3.0  # the least contrasts of WCAG 2.1, level AA


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    again = DATA / "memory.jsonl"
    words = ["report", *map(str, FILES), "--compare", str(again), str(again), "-o", str(path)]
    assert command.main(words) == 0
    return path


def drawings(text):
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


# ---- without a browser ---------------------------------------------------------------------------


def box(element):
    """Returns left, top, right and bottom of a text that is as wide as it may become."""
    x, y = float(element.get("x")), float(element.get("y"))
    bold = 1.08 if "strong" in element.get("class", "") else 1.0
    width = bold * svg.text_width(element.text)
    left = x - {"start": 0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
    return left, y - 0.75 * svg.FONT, left + width, y + 0.22 * svg.FONT


def overlap(a, b):
    return min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1


def test_texts_of_drawings_lie_inside_and_apart(written):
    found = drawings(written.read_text())
    assert len(found) > 30
    for drawing in found:
        width, height = map(float, drawing.get("viewBox").split()[2:])
        boxes = [(box(one), one.text) for one in drawing.iter("text")]
        for (left, top, right, bottom), words in boxes:
            assert left >= -1 and top >= 0 and right <= width + 1 and bottom <= height, words
        for (a, first), (b, second) in itertools.combinations(boxes, 2):
            assert not overlap(a, b), (drawing[0].text, first, second)


def test_shapes_of_drawings_lie_inside(written):
    for drawing in drawings(written.read_text()):
        width, height = map(float, drawing.get("viewBox").split()[2:])
        for path in drawing.iter("path"):
            for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d")):
                assert 0 <= float(x) <= width and 0 <= float(y) <= height, path.get("d")


def test_drawings_have_names_and_points_tell_their_values(written):
    names = [one.get("aria-labelledby") for one in drawings(written.read_text())]
    assert len(names) == len(set(names))
    for drawing in drawings(written.read_text()):
        assert drawing.get("role") == "img"
        assert drawing[0].get("id") == drawing.get("aria-labelledby")
        marks = [one for one in drawing.iter("path") if len(one)]
        assert marks and all(mark[0].tag == "title" and mark[0].text for mark in marks)


def test_the_page_needs_nothing_else(written):
    text = written.read_text()
    for word in ("<script", "http:", "https:", "src=", "url(", "@import", "<link"):
        assert word not in text, word


def test_words_of_rows_are_no_markup(tmp_path):
    row = {"bench": "<i>x", "op": "a<b>&\"c'", "bytes": 8, "time_us": 1.0, "plain_us": 2.0}
    rows = tmp_path / "a.json"
    rows.write_text(json.dumps(row) + "\n")
    assert command.main(["report", str(rows), "-o", str(tmp_path / "a.html")]) == 0
    text = (tmp_path / "a.html").read_text()
    assert "<b>" not in text and "<i>" not in text
    assert html.escape(row["op"]) in text
    drawings(text)


def schemes():
    """Returns {scheme: {variable: colour}} of the style sheet."""
    light, dark = re.findall(r":root \{(.*?)\}", page.style(), re.DOTALL)
    colours = re.compile(r"--([a-z0-9]+): (#[0-9a-f]{6})")
    return {"light": dict(colours.findall(light)), "dark": dict(colours.findall(dark))}


def luminance(rgb):
    parts = [c / 255 for c in rgb]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def rgb(colour):
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_the_style_sheet(scheme):
    colours = schemes()[scheme]
    grounds = [rgb(colours["page"]), rgb(colours["card"])]
    for name in ("ink", "soft", "link"):
        assert min(contrast(rgb(colours[name]), ground) for ground in grounds) >= _TEXT, name
    for name in ("own", "own1", "own2", "limit", "axis", *(f"p{k}" for k in range(6))):
        assert contrast(rgb(colours[name]), rgb(colours["card"])) >= _SHAPE, name


def test_both_schemes_have_the_same_colours():
    both = schemes()
    assert both["light"].keys() == both["dark"].keys()
    assert set(re.findall(r"var\(--([a-z0-9]+)\)", page.style())) <= both["light"].keys()


# ---- in Chromium ---------------------------------------------------------------------------------

# This script writes what the browser has laid out into the page, as JSON.
_MEASURE = """<script>
function solid(element) {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).map(Number);
    if (colour.length < 4 || colour[3] === 1) return colour.slice(0, 3);
  }
  return [255, 255, 255];
}
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => one.open = true);
  const texts = [], drawings = [];
  document.querySelectorAll("h1,h2,h3,p,a,dt,dd,th,td,summary,strong").forEach(one => {
    const colour = getComputedStyle(one).color.match(/[\\d.]+/g).map(Number).slice(0, 3);
    const at = one.getBoundingClientRect();
    texts.push({words: one.textContent.slice(0, 40), colour, ground: solid(one), right: at.right,
                scrolls: !!one.closest(".scroll")});
  });
  document.querySelectorAll("svg").forEach(one => {
    const at = one.getBoundingClientRect();
    const words = [...one.querySelectorAll("text")].map(text => {
      const r = text.getBoundingClientRect();
      const fill = getComputedStyle(text).fill.match(/[\\d.]+/g).map(Number).slice(0, 3);
      return {words: text.textContent, box: [r.left, r.top, r.right, r.bottom], fill,
              ground: solid(one), size: r.height};
    });
    drawings.push({box: [at.left, at.top, at.right, at.bottom], words});
  });
  const told = {wide: document.documentElement.scrollWidth, inner: innerWidth, texts, drawings};
  const outer = parent.document;
  outer.body.innerHTML = "<pre id=told></pre>";
  outer.getElementById("told").textContent = JSON.stringify(told);
});
</script></body>"""


def browser():
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    return found or pytest.skip("no Chromium here: apt install chromium-headless-shell")


def laid_out(path, width, scheme, folder):
    """Returns what a browser has laid out in that width. The page lies in a frame, because windows
    of some browsers have at least 500 points."""
    page_in_frame = html.escape(path.read_text().replace("</body>", _MEASURE))
    measured = folder / "measured.html"
    measured.write_text(
        '<!doctype html><meta charset="utf-8">'
        f'<body><iframe style="border:0;width:{width}px;height:2000px" srcdoc="{page_in_frame}">'
        "</iframe></body>"
    )
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={folder / 'profile'}", "--window-size=1700,2000"]
    command += [f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"]
    done = subprocess.run(
        [*command, "--dump-dom", measured.as_uri()], capture_output=True, text=True, timeout=120
    )
    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 900, 1600])
def test_in_chromium(written, width, scheme, tmp_path):
    told = laid_out(written, width, scheme, tmp_path)
    assert told["inner"] == width
    assert told["wide"] <= width
    for text in told["texts"]:
        assert contrast(text["colour"], text["ground"]) >= _TEXT, text
        assert text["scrolls"] or text["right"] <= width, text
    grounds = {tuple(text["ground"]) for text in told["texts"]}
    assert {rgb(schemes()[scheme][name]) for name in ("page", "card")} == grounds
    assert len(told["drawings"]) > 30
    for drawing in told["drawings"]:
        left, top, right, bottom = drawing["box"]
        assert right - left >= 290
        for one in drawing["words"]:
            x1, y1, x2, y2 = one["box"]
            # The widths of texts are estimates: fonts differ by some pixels.
            assert left - 2 <= x1 and x2 <= right + 2 and top - 2 <= y1 and y2 <= bottom + 2, one
            assert contrast(one["fill"], one["ground"]) >= _TEXT, one
        for a, b in itertools.combinations(drawing["words"], 2):
            assert not overlap(a["box"], b["box"]), (a, b)
