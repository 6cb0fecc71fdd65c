"""Documentation: gallery scripts run, links resolve, the contents are complete."""

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from spinney import plot

mpl.use("agg")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SCRIPTS = sorted(path for path in (DOCS / "gallery").glob("*.py") if path.stem != "draw")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_gallery_script_draws_a_figure(script):
    plt.close("all")
    runpy.run_path(str(script))
    (number,) = plt.get_fignums()
    (first, *_) = plt.figure(number).axes
    assert first.has_data() or first.texts
    plt.close("all")


def test_gallery_uses_every_plot_function():
    code = "\n".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    for name in plot.__all__:
        assert f"plot.{name}(" in code, name


@pytest.mark.parametrize("page", ["gallery/index.md", "guide/plots.md"])
def test_pages_contain_every_gallery_figure(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for script in SCRIPTS:
        assert f"figures/{script.stem}.svg" in text, script.stem
        assert (DOCS / "gallery" / "figures" / f"{script.stem}.svg").exists()


def links_of(page):
    """Return the links and images of a page that refer to files, outside of code."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def anchors_of(page):
    """Return the anchors of a page's headings, as GitHub and MyST name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = sorted([*ROOT.glob("*.md"), *(p for p in DOCS.rglob("*.md") if "api" not in p.parts)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), link


def test_links_are_found():
    assert len(links_of(ROOT / "README.md")) > 20


def test_contents_and_readme_list_every_guide_page():
    contents = (DOCS / "guide" / "index.md").read_text(encoding="utf-8").split()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in (DOCS / "guide").glob("*.md"):
        if page.stem != "index":
            assert page.stem in contents, page.stem
            assert f"docs/guide/{page.name}" in readme, page.stem


def test_gallery_contains_every_guide_figure():
    gallery = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    for figure in (DOCS / "guide" / "figures").glob("*.svg"):
        assert f"guide/figures/{figure.name}" in gallery, figure.name


INTERNAL_PAGES = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *(DOCS / "internals").glob("*.md"),
]
BASES = [ROOT, ROOT / "src" / "spinney", ROOT / "cpp" / "spinney"]


@pytest.mark.parametrize("page", INTERNAL_PAGES, ids=lambda path: path.name)
def test_files_named_in_internal_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|cpp|h|md|txt|toml))`", text))
    missing = {
        name
        for name in named
        if not name.startswith("build/") and not any((base / name).exists() for base in BASES)
    }
    assert missing == set()
