"""Figures of the guide on linear regression: ``python docs/guide/figures/linear.py``."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from spinney.linear_model import PolynomialRegression

HERE = Path(__file__).resolve().parent
plt.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})


def degrees():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 3, 40))
    y = np.sin(2 * x) + 0.25 * rng.normal(size=40)
    places = np.linspace(0, 3, 300)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    left.plot(x, y, "o", color="0.6", markersize=3)
    for degree, colour in ((1, "#d95f02"), (5, "#1b9e77"), (15, "#7570b3")):
        model = PolynomialRegression(degree).fit(x[:, None], y)
        left.plot(places, model.predict(places[:, None]), color=colour, label=f"degree {degree}")
    left.set(ylim=(-2, 2), xlabel="x", ylabel="y")
    left.legend(frameon=False)
    auto = PolynomialRegression(max_degree=15).fit(x[:, None], y)
    steps = np.arange(len(auto.cv_errors_))
    on_points = [
        np.mean((y - PolynomialRegression(int(d)).fit(x[:, None], y).predict(x[:, None])) ** 2)
        for d in steps
    ]
    right.semilogy(steps, on_points, "o-", color="0.5", markersize=3, label="on the points")
    right.semilogy(
        steps, auto.cv_errors_, "o-", color="#1b9e77", markersize=3, label="on points left out"
    )
    right.set(xlabel="degree", ylabel="mean squared error")
    right.legend(frameon=False)
    figure.savefig(HERE / "linear_degrees.svg", metadata={"Date": None})


if __name__ == "__main__":
    degrees()
