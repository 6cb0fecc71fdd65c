"""Draws the figures of the page on the theory.

    python docs/guide/figures/theory.py

The data are made from fixed seeds.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from spinney import theory
from spinney.linear_model import HalfspaceClassifier, Perceptron
from spinney.neighbors import KNeighborsClassifier

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_sample_size():
    rng = np.random.default_rng(0)
    d, delta = 5, 0.05
    sizes = np.array([10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
    new = rng.normal(size=(20_000, d))
    worst = []
    for n in sizes:
        errors = []
        for _ in range(20):
            X = rng.normal(size=(n, d))
            model = HalfspaceClassifier().fit(X, X.sum(axis=1) > 0)
            errors.append(np.mean(model.predict(new) != (new.sum(axis=1) > 0)))
        worst.append(max(errors))
    epsilons = np.geomspace(0.02, 0.9, 30)
    dimension = theory.vc_dimension_of_halfspaces(d)
    figure, axis = plt.subplots(figsize=(6, 3))
    axis.plot(sizes, worst, "o-", label="largest error of 20 separating halfspaces")
    for realizable, name in ((True, "realizable"), (False, "agnostic")):
        needed = [
            theory.vc_sample_size(e, delta, dimension, realizable=realizable) for e in epsilons
        ]
        axis.plot(needed, epsilons, "--", label=f"guaranteed with 95 %, {name}")
    axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="error", ylim=(5e-4, 1))
    axis.legend(frameon=False, fontsize=8)
    save(figure, "theory_sample_size")


def draw_perceptron():
    rng = np.random.default_rng(0)
    margins = np.geomspace(0.02, 2, 15)
    figure, axis = plt.subplots(figsize=(6, 3))
    bounds = []
    for margin in margins:
        X = rng.normal(size=(300, 2))
        y = X[:, 0] > 0
        X[:, 0] += np.where(y, margin, -margin)
        bounds.append(theory.perceptron_bound(X, y, [1, 0]))
        runs = [Perceptron(random_state=r, tol=None).fit(X, y) for r in range(10)]
        mistakes = [run.n_mistakes_[0] for run in runs]
        axis.plot([margin] * 10, mistakes, ".", color="C0", alpha=0.5)
    axis.plot(margins, bounds, "--", color="C1", label="(R/γ)²")
    axis.plot([], [], ".", color="C0", label="mistakes, ten orders of the rows")
    axis.set(xscale="log", yscale="log", xlabel="distance added to the border", ylabel="mistakes")
    axis.legend(frameon=False, fontsize=8)
    save(figure, "theory_perceptron")


def draw_neighbours():
    # The probability of the second class is the mean of the two coordinates.
    rng = np.random.default_rng(0)
    new = rng.random((20_000, 2))
    posterior = new.mean(axis=1)
    best = theory.bayes_error(posterior)
    sizes = np.geomspace(10, 100_000, 13).astype(int)
    errors = []
    for n in sizes:
        wrong = []
        for _ in range(max(1, 20_000 // n)):
            X = rng.random((n, 2))
            y = rng.random(n) < X.mean(axis=1)
            if y.all() or not y.any():
                continue
            said = KNeighborsClassifier(1).fit(X, y).predict(new)
            wrong.append(np.mean(np.where(said, 1 - posterior, posterior)))
            if len(wrong) == 40:
                break
        errors.append(np.mean(wrong))
    bounds = [theory.nearest_neighbor_bound(best, 2**-0.5, 2, int(n)) for n in sizes]
    figure, axis = plt.subplots(figsize=(6, 3))
    axis.plot(sizes, errors, "o-", label="1-NN")
    axis.plot(sizes, bounds, "--", label="2R* + 4c√d n^(−1/(d+1))")
    limit = theory.nearest_neighbor_error(posterior)
    for value, name, style in (
        (best, "Bayes error R*", "-"),
        (limit, "limit of 1-NN", ":"),
        (theory.cover_hart_bound(best), "Cover and Hart", "-."),
    ):
        axis.axhline(value, color="0.4", linestyle=style, linewidth=1, label=name)
    axis.set(xscale="log", xlabel="rows", ylabel="error", ylim=(0.25, 1))
    axis.legend(frameon=False, fontsize=8)
    save(figure, "theory_neighbours")


if __name__ == "__main__":
    draw_sample_size()
    draw_perceptron()
    draw_neighbours()
