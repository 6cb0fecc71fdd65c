"""Draws the figure of the page on ID3 and C4.5.

python docs/guide/figures/c45.py
"""

from __future__ import annotations

from pathlib import Path

from spinney.datasets import load_play_tennis
from spinney.tree import ID3Classifier, export_svg

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    tennis = load_play_tennis(as_frame=True)
    model = ID3Classifier().fit(tennis.data, tennis.target)
    export_svg(model, out_file=HERE / "c45_tennis.svg")
