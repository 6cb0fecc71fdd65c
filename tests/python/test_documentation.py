"""The scripts of the gallery run, each draws one figure, and the pages show all of them."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from spinney import plot

mpl.use("agg")

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPTS = sorted(path for path in (DOCS / "gallery").glob("*.py") if path.stem != "draw")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_draws_a_figure(script):
    plt.close("all")
    runpy.run_path(str(script))
    (number,) = plt.get_fignums()
    (first, *_) = plt.figure(number).axes
    assert first.has_data() or first.texts
    plt.close("all")


def test_every_plot_is_shown():
    code = "\n".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    for name in plot.__all__:
        assert f"plot.{name}(" in code, name


@pytest.mark.parametrize("page", ["gallery/index.md", "guide/plots.md"])
def test_pages_show_every_picture(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for script in SCRIPTS:
        assert f"figures/{script.stem}.svg" in text, script.stem
        assert (DOCS / "gallery" / "figures" / f"{script.stem}.svg").exists()
