"""Draws the figure of the page on neighbours.

    python docs/guide/figures/neighbors.py

The data are drawn from a fixed seed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from spinney.neighbors import BruteForce, KDTree

HERE = Path(__file__).resolve().parent
# The same file for the same numbers: no dates, no random identifiers.
mpl.rcParams.update({"svg.hashsalt": "spinney", "font.size": 9, "svg.fonttype": "none"})
mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})

N_ROWS, N_QUERIES, LEAF = 16_384, 300, 32
DIMENSIONS = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20]


def leaves_needed(tree, queries, nearest):
    """The fewest leaves that find the nearest row of 95 % of the queries."""
    n_leaves = 1
    while True:
        found, _ = tree.query(queries, 1, max_leaves=n_leaves)
        if (found == nearest).mean() >= 0.95:
            return n_leaves
        n_leaves = max(n_leaves + 1, int(n_leaves * 1.1))


def main():
    rng = np.random.default_rng(0)
    ratios, shares = [], []
    for d in DIMENSIONS:
        X, Q = rng.random((N_ROWS, d)), rng.random((N_QUERIES, d))
        nearest, _ = BruteForce(X).query(Q, 1)
        some = np.linalg.norm(Q[:, None, :] - X[None, :200, :], axis=2).mean(axis=1)
        ratios.append((nearest[:, 0] / some).mean())
        tree = KDTree(X, leaf_size=LEAF)
        exact, _ = tree.query(Q, 1)
        shares.append(leaves_needed(tree, Q, exact) / (N_ROWS / (0.75 * LEAF)))
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
    left.plot(DIMENSIONS, ratios, "o-", color="#0072b2")
    left.set(xlabel="columns", ylabel="nearest / average distance", ylim=(0, 1))
    right.plot(DIMENSIONS, np.minimum(shares, 1), "o-", color="#d55e00")
    right.set(xlabel="columns", ylabel="share of leaves to look at", ylim=(0, 1))
    figure.tight_layout()
    figure.savefig(HERE / "neighbors_curse.svg", metadata={"Date": None})
    plt.close(figure)
    for d, ratio, share in zip(DIMENSIONS, ratios, shares, strict=True):
        print(f"{d:3d} {ratio:.3f} {share:.3f}")


if __name__ == "__main__":
    main()
