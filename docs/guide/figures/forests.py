"""Draws the figures of the page on bagging and forests, on data that come with the libraries.

    python docs/guide/figures/forests.py

Writes forests_variance.svg, forests_out_of_bag.svg and forests_importances.svg beside itself.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from spinney.datasets import load_spam
from spinney.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

mpl.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "axes.spines.top": False})
mpl.rcParams.update({"axes.spines.right": False, "legend.frameon": False, "svg.fonttype": "none"})


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / name, metadata={"Date": None})
    print(name)


def variance():
    """Variance over training samples, and test error, by number of trees."""
    X, y = load_diabetes(return_X_y=True)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    numbers = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 2.9))
    for title, cls, options in (
        ("bagging", BaggingRegressor, {}),
        ("random forest, a third of the columns", RandomForestRegressor, {"max_features": 1 / 3}),
        ("extra trees", ExtraTreesRegressor, {}),
    ):
        spread, error = [], []
        for n in numbers:
            predictions = []
            for seed in range(20):
                rows = np.random.default_rng(seed).choice(len(X_fit), 150, replace=False)
                model = cls(n_estimators=n, random_state=seed, **options)
                predictions.append(model.fit(X_fit[rows], y_fit[rows]).predict(X_test))
            spread.append(np.var(predictions, axis=0).mean())
            error.append(np.mean((np.array(predictions) - y_test) ** 2))
        left.plot(numbers, spread, "o-", ms=3, label=title)
        right.plot(numbers, error, "o-", ms=3, label=title)
    for axes, what in ((left, "variance of the prediction"), (right, "mean squared test error")):
        axes.set(xscale="log", xlabel="trees", title=what, ylim=(0, None))
        axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    right.legend(loc="lower right")
    save(figure, "forests_variance.svg")


def out_of_bag():
    """Out-of-bag and test error by number of trees, on spam."""
    X, y = load_spam(return_X_y=True, split="train")
    X_test, y_test = load_spam(return_X_y=True, split="test")
    forest = RandomForestClassifier(300, oob_score=True, random_state=0).fit(X, y)
    votes = np.cumsum([tree.predict_proba(X_test) for tree in forest.estimators_], axis=0)
    right = forest.classes_[votes.argmax(axis=2)] == np.asarray(y_test)
    test_error = 1 - right.mean(axis=1)
    figure, axes = plt.subplots(figsize=(5, 2.9))
    numbers = np.arange(1, 301)
    axes.plot(numbers, 100 * (1 - forest.oob_curve_), label="out of bag")
    axes.plot(numbers, 100 * test_error, label="test")
    axes.set(xlabel="trees", ylabel="error, %", ylim=(0, 16), title="random forest on spam")
    axes.legend()
    save(figure, "forests_out_of_bag.svg")


def importances():
    """The three kinds of importance, on spam with a useless column of many values."""
    data = load_spam(split="train")
    X = np.column_stack([data.data, np.random.default_rng(0).normal(size=len(data.data))])
    names = [*data.feature_names, "NOISE"]
    kinds = ("impurity", "corrected", "permutation")
    values = [
        RandomForestClassifier(300, importance_type=kind, random_state=0)
        .fit(X, data.target)
        .feature_importances_
        for kind in kinds
    ]
    shown = [*np.argsort(-values[0])[:12], len(names) - 1]
    figure, axes = plt.subplots(1, 3, figsize=(8, 3.2), sharey=True)
    for axis, kind, value in zip(axes, kinds, values, strict=True):
        colours = ["C3" if names[f] == "NOISE" else "C0" for f in shown]
        axis.barh(range(len(shown)), value[shown] / value.max(), color=colours)
        axis.set(title=kind, xlim=(-0.02, 1.05), xticks=[0, 0.5, 1])
    rank = int((values[0] > values[0][-1]).sum()) + 1
    axes[0].set_yticks(range(len(shown)), [names[f] for f in shown])
    axes[0].invert_yaxis()
    axes[0].annotate(
        f"rank {rank}",
        (values[0][-1] / values[0].max() + 0.03, len(shown) - 1),
        va="center",
        fontsize=8,
    )
    save(figure, "forests_importances.svg")


if __name__ == "__main__":
    variance()
    out_of_bag()
    importances()
