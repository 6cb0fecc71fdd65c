"""Draws the figures of the page on mixtures, plug-in rules and whitening.

    python docs/guide/figures/mixture.py

The data are made from a fixed seed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.neighbors import KernelDensity

from spinney.mixture import MixtureClassifier, PlugInClassifier
from spinney.neighbors import LocalRegression
from spinney.preprocessing import Whitener

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams["path.simplify_threshold"] = 1.0


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def rules():
    X, y = make_moons(150, noise=0.25, random_state=0)
    titles = {
        "a mixture a class, BIC": MixtureClassifier(),
        "kernel densities": PlugInClassifier(KernelDensity(bandwidth=0.2)),
        "log-odds by local regression": PlugInClassifier(
            regressor=LocalRegression(n_neighbors=50), step="bounded"
        ),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
    for ax, (title, rule) in zip(axes, titles.items(), strict=True):
        rule.fit(X, y).plot(ax=ax, X=X, y=y)
        ax.collections[0].set_rasterized(True)  # many small cells
        ax.set_title(title, fontsize=9)
    save(figure, "mixture_rules")


def whitening():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) @ [[2.0, 1.2], [0.0, 0.4]]
    along = X[:, 0]
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
    shown = {"as they come": X} | {
        method: Whitener(method).fit_transform(X) for method in ("cholesky", "pca", "zca")
    }
    for ax, (title, rows) in zip(axes, shown.items(), strict=True):
        ax.scatter(rows[:, 0], rows[:, 1], s=5, c=along, cmap="viridis")
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_title(title, fontsize=9)
    save(figure, "mixture_whitening")


if __name__ == "__main__":
    rules()
    whitening()
