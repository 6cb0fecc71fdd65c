"""Draws the figures of the page on partitions.

    python docs/guide/figures/partitions.py

The data are made by scikit-learn from fixed seeds.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from spinney.tree import PartitionClassifier, QuadTreeClassifier, plot_partition

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw(name, models, X, y, X_test, y_test):
    """Draw models side by side, with their test accuracies."""
    figure, axes = plt.subplots(1, len(models), figsize=(3.6 * len(models), 3), sharey=True)
    for axis, (title, model) in zip(axes, models.items(), strict=True):
        model.fit(X, y)
        plot_partition(model, X, y, ax=axis)
        axis.set_title(f"{title}: {model.score(X_test, y_test):.2f}", fontsize=10)
    save(figure, name)


def main():
    data = (
        *make_moons(400, noise=0.2, random_state=0),
        *make_moons(5000, noise=0.2, random_state=1),
    )
    grids = {f"{n} × {n} cells": PartitionClassifier(cells=n) for n in (3, 8, 20)}
    draw("partitions_grid", grids, *data)
    quads = {
        f"split at {where}s": QuadTreeClassifier(split=where, random_state=0)
        for where in ("midpoint", "point")
    }
    draw("partitions_quad", quads, *data)


if __name__ == "__main__":
    main()
