"""Runs the gallery's scripts and writes their pictures to docs/gallery/figures.

    python docs/gallery/draw.py [NAME …]

Without names all of them.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "svg.fonttype": "none", "figure.dpi": 110})


def scripts():
    """The gallery's scripts, by name."""
    return sorted(path for path in HERE.glob("*.py") if path.name != Path(__file__).name)


def main(names):
    for script in scripts():
        if names and script.stem not in names:
            continue
        runpy.run_path(str(script))
        plt.gcf().savefig(HERE / "figures" / f"{script.stem}.svg", metadata={"Date": None})
        plt.close("all")
        print(script.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
