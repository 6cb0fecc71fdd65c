"""Reference implementation of gradient boosting that tries every cut."""

from __future__ import annotations

import numpy as np


def squared_error(y, f):
    return f - y, np.ones_like(f)


def log_loss(y, f):
    p = 1 / (1 + np.exp(-f))
    return p - y, p * (1 - p)


def soft_threshold(g, l1):
    return np.sign(g) * max(abs(g) - l1, 0.0)


class SlowTree:
    """A tree that is grown best-first."""

    def __init__(self, X, g, h, w, *, l2, l1, gamma, min_rows, max_leaves, max_depth):
        self.X, self.g, self.h = X, w * g, w * h
        self.l2, self.l1, self.gamma, self.min_rows = l2, l1, gamma, min_rows
        root = {"rows": np.arange(len(g)), "depth": 0}
        leaves = [root]
        self.root = root
        for _ in range(max_leaves - 1):
            best = None
            for leaf in leaves:
                if "split" not in leaf:
                    leaf["split"] = self.find(leaf["rows"]) if leaf["depth"] < max_depth else None
                if leaf["split"] and (best is None or leaf["split"][0] > best["split"][0]):
                    best = leaf
            if best is None:
                break
            _, f, cut, missing_left = best["split"]
            x = X[best["rows"], f]
            left = np.where(np.isnan(x), bool(missing_left), x <= cut)
            best["left"] = {"rows": best["rows"][left], "depth": best["depth"] + 1}
            best["right"] = {"rows": best["rows"][~left], "depth": best["depth"] + 1}
            leaves.remove(best)
            leaves += [best["left"], best["right"]]
        for leaf in leaves:
            leaf["weight"] = self.weight(leaf["rows"])

    def score(self, rows):
        return soft_threshold(self.g[rows].sum(), self.l1) ** 2 / (self.h[rows].sum() + self.l2)

    def weight(self, rows):
        return -soft_threshold(self.g[rows].sum(), self.l1) / (self.h[rows].sum() + self.l2)

    def find(self, rows):
        best = None
        for f in range(self.X.shape[1]):
            x = self.X[rows, f]
            missing = np.isnan(x)
            # Bin edges lie between neighbouring values of all rows, not only of the node's.
            values = np.unique(self.X[~np.isnan(self.X[:, f]), f])
            cuts = list((values[:-1] + values[1:]) / 2) + ([np.inf] if missing.any() else [])
            for missing_left in (False, True) if missing.any() else (None,):
                for cut in cuts:
                    left = np.where(missing, bool(missing_left), x <= cut)
                    a, b = rows[left], rows[~left]
                    if min(len(a), len(b)) < max(self.min_rows, 1):
                        continue
                    gain = 0.5 * (self.score(a) + self.score(b) - self.score(rows)) - self.gamma
                    if gain > 1e-12 and (best is None or gain > best[0] * (1 + 1e-9)):
                        best = (gain, f, cut, missing_left)
        return best

    def predict(self, X):
        values = np.empty(len(X))
        for i, row in enumerate(X):
            node = self.root
            while "left" in node:
                _, f, cut, missing_left = node["split"]
                goes_left = missing_left if np.isnan(row[f]) else row[f] <= cut
                node = node["left"] if goes_left else node["right"]
            values[i] = node["weight"]
        return values


def boost(X, y, loss, *, n_rounds, learning_rate, w=None, **limits):
    """Return the raw scores of the rows after each round."""
    w = np.ones(len(y)) if w is None else w
    mean = np.average(y, weights=w)
    start = mean if loss is squared_error else np.log(mean / (1 - mean))
    scores = np.full(len(y), start)
    history = []
    for _ in range(n_rounds):
        g, h = loss(y, scores)
        tree = SlowTree(X, g, h, w, **limits)
        scores = scores + learning_rate * tree.predict(X)
        history.append(scores)
    return history
