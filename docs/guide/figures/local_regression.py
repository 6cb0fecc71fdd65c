"""Draws the figures of the page on local regression.

    python docs/guide/figures/local_regression.py

The data are made from a fixed seed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from spinney.neighbors import LocalRegression

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})

KERNELS = [
    ["uniform", "triangular", "cosine"],
    ["epanechnikov", "biweight", "triweight", "tricube"],
    ["gaussian", "logistic"],
]


def save(figure, name):
    figure.tight_layout()
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def kernel_values(kernel, u):
    """Read a kernel off the model: the weights of two rows decide a mean of 0 and 1.

    One row is at the place, with weight 1, the other at distance u.
    """
    out = []
    for distance in u:
        model = LocalRegression(0, kernel=kernel, bandwidth=1.0).fit([[0.0], [distance]], [0, 1])
        share = model.predict([[0.0]])[0]
        out.append(share / (1 - share))
    return out


def draw_kernels():
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.4), sharey=True)
    for axis, names in zip(axes, KERNELS, strict=True):
        end = 5 if "gaussian" in names else 1.4
        u = np.linspace(1e-9, end, 281)
        for name in names:
            axis.plot(u, kernel_values(name, u), label=name)
        axis.set_xlabel("distance / bandwidth")
        axis.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("weight")
    save(figure, "local_regression_kernels")


def draw_degrees():
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(120))[:, None]
    places = np.linspace(0, 1, 201)[:, None]

    def curve(x):
        return np.sin(8 * x[:, 0] ** 2)

    y = curve(x) + rng.normal(scale=0.25, size=len(x))
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True)
    for degree, axis in enumerate(axes):
        model = LocalRegression(degree, bandwidth=0.12).fit(x, y)
        values, errors = model.predict(places, return_std=True)
        axis.plot(x, y, ".", color="0.7", markersize=4)
        axis.plot(places, curve(places), color="0.4", linewidth=1, linestyle="--")
        axis.fill_between(places[:, 0], values - 2 * errors, values + 2 * errors, alpha=0.25)
        axis.plot(places, values, color="C0")
        axis.set_title(f"degree {degree}", fontsize=10)
    save(figure, "local_regression_degrees")


if __name__ == "__main__":
    draw_kernels()
    draw_degrees()
