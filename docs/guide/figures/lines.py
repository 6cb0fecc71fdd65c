"""Draws the figures of the page on halfspaces, perceptrons and least absolute deviations.

    python docs/guide/figures/lines.py

The data are made from fixed seeds.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from spinney.linear_model import HalfspaceClassifier, LADRegressor, Perceptron

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_border(axis, model, level, **style):
    x = np.array([-4.0, 5.0])
    (a, b), c = model.coef_[0], model.intercept_[0]
    axis.plot(x, (level - c - a * x) / b, **style)


def draw_halfspaces():
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    for axis, distance in zip(axes, (2.2, 1.2), strict=True):
        rng = np.random.default_rng(1)
        X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + distance * 1.3])
        y = np.repeat([0, 1], 30)
        model = HalfspaceClassifier().fit(X, y)
        for label, marker in ((0, "o"), (1, "s")):
            axis.scatter(*X[y == label].T, s=16, marker=marker, color=f"C{label}", alpha=0.7)
        draw_border(axis, model, 0, color="0.3")
        if model.separable_:
            for side in (-1, 1):
                nearest = side * np.abs(model.decision_function(X)).min()
                draw_border(axis, model, nearest, color="0.6", linestyle="--", linewidth=1)
            axis.set_title(f"separable, margin {model.margin_:.2f}", fontsize=10)
        else:
            proof = model.certificate_ > 0
            axis.scatter(*X[proof].T, s=90, facecolors="none", edgecolors="k")
            for label in (0, 1):
                rows = X[proof & (y == label)]
                if len(rows) > 1:
                    axis.fill(*rows.T, color=f"C{label}", alpha=0.15)
                    axis.plot(*rows.T, color=f"C{label}", linewidth=1)
            axis.set_title(f"not separable, sum of slacks {model.slack_:.1f}", fontsize=10)
        axis.set_xlim(X[:, 0].min() - 0.5, X[:, 0].max() + 0.5)
        axis.set_ylim(X[:, 1].min() - 0.5, X[:, 1].max() + 0.5)
        axis.set_aspect("equal")
    save(figure, "lines_halfspaces")


def draw_perceptron():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = X.sum(axis=1) + rng.normal(size=1000) > 0
    new = rng.normal(size=(10_000, 5))
    truth = new.sum(axis=1) > 0
    passes = np.arange(1, 31)
    figure, axis = plt.subplots(figsize=(6, 2.8))
    for variant in ("last", "average", "pocket"):
        right = [
            Perceptron(variant=variant, max_iter=int(n), tol=None).fit(X, y).score(new, truth)
            for n in passes
        ]
        axis.plot(passes, right, label=variant)
    axis.set_xlabel("passes over the rows")
    axis.set_ylabel("right on new rows")
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, "lines_perceptron")


def draw_lad():
    rng = np.random.default_rng(0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    x = rng.uniform(0, 3, 60)
    y = 1 + x + rng.normal(scale=0.3, size=60)
    y[x > 2.6] += 12
    ends = np.array([[0.0], [3.0]])
    axes[0].plot(x, y, ".", color="0.6")
    line = LADRegressor().fit(x[:, None], y)
    axes[0].plot(ends, line.predict(ends), label="least absolute deviations")
    axes[0].plot(ends, np.polyval(np.polyfit(x, y, 1), ends), "--", label="least squares")
    axes[0].legend(frameon=False, fontsize=8)
    x = rng.uniform(0, 3, 400)
    y = x + rng.normal(size=400) * (0.2 + x)
    axes[1].plot(x, y, ".", color="0.75", markersize=3)
    for quantile in (0.1, 0.25, 0.5, 0.75, 0.9):
        line = LADRegressor(quantile=quantile).fit(x[:, None], y)
        axes[1].plot(ends, line.predict(ends), label=f"{quantile}")
    axes[1].legend(frameon=False, fontsize=8, title="quantile")
    save(figure, "lines_lad")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    draw_halfspaces()
    draw_perceptron()
    draw_lad()
