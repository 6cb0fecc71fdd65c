"""Draws the figures of the page on AdaBoost.

    python docs/guide/figures/adaboost.py

The data are made by scikit-learn from fixed seeds.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from spinney.ensemble import AdaBoostClassifier, BaggingClassifier
from spinney.model_selection import bias_variance
from spinney.tree import DecisionTreeClassifier

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def boundaries(X, y, model):
    """Moons with stumps: what the first rounds say together."""
    figure, axes = plt.subplots(1, 4, figsize=(11, 3), sharex=True, sharey=True)
    across, up = np.meshgrid(np.linspace(-2, 3, 101), np.linspace(-1.5, 2, 81))
    grid = np.c_[across.ravel(), up.ravel()]
    wanted = {1, 3, 10, 100}
    plots = iter(axes)
    for t, scores in enumerate(model.staged_decision_function(grid), 1):
        if t not in wanted:
            continue
        axis = next(plots)
        axis.contourf(
            across,
            up,
            scores.reshape(across.shape) > 0,
            levels=[-0.5, 0.5, 1.5],
            colors=["#f6d5c3", "#c9dcef"],
        )
        for label, colour in ((1, "#1f5a94"), (0, "#b4511f")):
            axis.plot(*X[y == label].T, ".", color=colour, markersize=3)
        axis.set_title(f"{t} round{'s' if t > 1 else ''}", fontsize=10)
    save(figure, "adaboost_boundaries")


def bound(X, y, X_test, y_test, model):
    """Training error below its bound, and the test error."""
    figure, axis = plt.subplots(figsize=(6, 3.4))
    rounds = np.arange(1, len(model.estimators_) + 1)
    axis.plot(rounds, model.training_error_bound_, "--", color="#888", label="bound ∏ Z")
    for name, rows, target, colour in (
        ("training error", X, y, "#1f5a94"),
        ("test error", X_test, y_test, "#b4511f"),
    ):
        errors = [1 - accuracy for accuracy in model.staged_score(rows, target)]
        axis.plot(rounds, errors, color=colour, label=name)
    axis.set_xscale("log")
    axis.set_xlabel("round")
    axis.set_ylim(0, 0.6)
    axis.legend(frameon=False)
    save(figure, "adaboost_bound")


def margins(X, y):
    """How the margins of the training rows grow with the rounds."""
    figure, axis = plt.subplots(figsize=(6, 3.4))
    for n, colour in ((5, "#c9dcef"), (50, "#6fa3d6"), (500, "#1f5a94")):
        told = np.sort(AdaBoostClassifier(n_estimators=n).fit(X, y).margins(X, y))
        share = np.arange(1, len(told) + 1) / len(told)
        axis.plot(told, share, color=colour, label=f"{n} rounds")
    axis.axvline(0, color="#888", linewidth=0.8)
    axis.set_xlabel("margin")
    axis.set_ylabel("share of rows at or below")
    axis.legend(frameon=False)
    save(figure, "adaboost_margins")


def bias_and_variance():
    """Where the errors of four models come from, over training sets of moons."""
    X_test, y_test = make_moons(2000, noise=0.25, random_state=1)

    def moons(rng):
        return make_moons(200, noise=0.25, random_state=rng.integers(2**31))

    models = {
        "stump": DecisionTreeClassifier(max_depth=1),
        "boosted\nstumps": AdaBoostClassifier(n_estimators=50),
        "tree": DecisionTreeClassifier(),
        "bagged\ntrees": BaggingClassifier(n_estimators=50),
    }
    figure, axis = plt.subplots(figsize=(6, 3.4))
    for place, model in enumerate(models.values()):
        told = bias_variance(model, moons, X_test, y_test, n_repeats=50, random_state=0)
        axis.bar(
            place - 0.2, told.bias, 0.38, color="#1f5a94", label="bias" if place == 0 else None
        )
        axis.bar(
            place + 0.2,
            told.variance,
            0.38,
            color="#b4511f",
            label="variance" if place == 0 else None,
        )
        axis.plot(place, told.error, "k_", markersize=24, label="error" if place == 0 else None)
    axis.set_xticks(range(len(models)), models)
    axis.legend(frameon=False)
    save(figure, "adaboost_bias_variance")


def main():
    X, y = make_moons(300, noise=0.25, random_state=0)
    X_test, y_test = make_moons(5000, noise=0.25, random_state=1)
    model = AdaBoostClassifier(n_estimators=500).fit(X, y)
    boundaries(X, y, model)
    bound(X, y, X_test, y_test, model)
    margins(X, y)
    bias_and_variance()


if __name__ == "__main__":
    main()
