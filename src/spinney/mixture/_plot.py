"""Plots of classifiers by Bayes' rule with two features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney.tree.export.colors import DOTS, FILLS, label_colours

__all__ = ["plot_rule"]

_STEPS = 200  # grid points per axis
_MARGIN = 0.1  # margin around the training rows, as a share of their range
# Levels of the lines of equal density, as shares of the largest density.
_HEIGHTS = (0.01, 0.1, 0.5)


def plot_rule(model: Any, X: Any, y: Any, ax: Any) -> Any:
    """Plot a classifier with two features; see `BayesRule.plot`."""
    check_is_fitted(model)
    if model.n_features_in_ != 2:
        raise ValueError(f"plot: expected a model of 2 features, got {model.n_features_in_}")
    if y is not None and X is None:
        raise ValueError("y: expected X together with y, got X=None")
    low, high = model._range
    span = np.where(high > low, high - low, 1.0)
    across, up = np.linspace(low - _MARGIN * span, high + _MARGIN * span, _STEPS).T
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    joint = model._log_joint(grid)
    predicted = joint.argmax(axis=1).reshape(_STEPS, _STEPS)

    # matplotlib is an optional dependency.
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap

    ax = plt.gca() if ax is None else ax
    n_classes = len(model.classes_)
    fills = ListedColormap([FILLS[c % len(FILLS)] for c in range(n_classes)])
    ax.pcolormesh(across, up, predicted, cmap=fills, vmin=-0.5, vmax=n_classes - 0.5, zorder=0)
    for c in range(n_classes):
        others = np.delete(joint, c, axis=1)
        if n_classes > 1:
            lead = (joint[:, c] - others.max(axis=1)).reshape(_STEPS, _STEPS)
            if lead.min() < 0 < lead.max():
                ax.contour(across, up, np.clip(lead, -1, 1), [0.0], colors="#333333", linewidths=1)
        if hasattr(model, "score_samples"):
            density = joint[:, c] - joint[:, c].max()
            ax.contour(
                across,
                up,
                np.maximum(density, -20).reshape(_STEPS, _STEPS),
                np.log(_HEIGHTS),
                colors=DOTS[c % len(DOTS)],
                linewidths=0.8,
                linestyles="solid",
            )
    if X is not None:
        points = np.asarray(X, dtype=np.float64)
        colours = "#333333" if y is None else label_colours(DOTS, model.classes_, y)
        ax.scatter(
            points[:, 0], points[:, 1], s=8, c=colours, linewidths=0.3, edgecolors="white", zorder=2
        )
    if hasattr(model, "feature_names_in_"):
        ax.set_xlabel(model.feature_names_in_[0])
        ax.set_ylabel(model.feature_names_in_[1])
    return ax
