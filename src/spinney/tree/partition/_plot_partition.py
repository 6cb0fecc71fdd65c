"""Plots of partitions of the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.tree.export.colors import DOTS, FILLS, label_colours
from spinney.tree.partition._partition import BasePartition
from spinney.tree.partition._quad_tree import BaseQuadTree

__all__ = ["plot_partition"]

Floats = NDArray[np.float64]


def plot_partition(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Plot the cells of a model with two features, coloured by prediction.

    Parameters
    ----------
    model : fitted Partition* or QuadTree*
        A fitted grid or quad tree. The outermost cells of a grid are unbounded; they are drawn up
        to the range of the data.
    X : array or frame of shape (n_rows, 2), default=None
        Points to draw on top.
    y : array-like of shape (n_rows,), default=None
        Targets that colour the points.
    ax : matplotlib Axes, default=None
        Axes to plot to; None means the current axes.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import make_moons
    >>> from spinney.tree import QuadTreeClassifier, plot_partition
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> axes = plot_partition(QuadTreeClassifier().fit(X, y), X, y, ax=plt.figure().gca())
    """
    if not isinstance(model, BasePartition | BaseQuadTree):
        raise TypeError(
            "model: expected a PartitionClassifier, PartitionRegressor, QuadTreeClassifier or "
            f"QuadTreeRegressor, got {type(model).__name__}"
        )
    check_is_fitted(model)
    if model.n_features_in_ != 2:
        raise ValueError(f"model must have 2 features; got {model.n_features_in_}")
    if y is not None and X is None:
        raise ValueError("y needs X, the points that it colours; got X=None")
    low, high = _grid_boxes(model) if isinstance(model, BasePartition) else _quad_boxes(model)
    predicted = model._predict_rows(high)  # the upper corner belongs to its cell: (low, high]
    flat = low.min(axis=0) == high.max(axis=0)  # constant columns get a width to be visible
    low, high = low - 0.5 * flat, high + 0.5 * flat
    visible = (low < high).all(axis=1)
    low, high, predicted = low[visible], high[visible], predicted[visible]

    # Imported here because matplotlib is an optional dependency.
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection

    ax = plt.gca() if ax is None else ax
    corners = np.stack([low, np.c_[high[:, 0], low[:, 1]], high, np.c_[low[:, 0], high[:, 1]]], 1)
    drawn = PolyCollection(list(corners), edgecolors="#666666", linewidths=0.5)
    if is_classifier(model):
        drawn.set_facecolor(label_colours(FILLS, model.classes_, predicted))
    else:
        drawn.set_array(np.ma.masked_invalid(predicted))
        drawn.set_cmap("viridis")
        shown = predicted[np.isfinite(predicted)]
        if y is not None:
            shown = np.r_[shown, np.asarray(y, dtype=np.float64)]
        if len(shown):
            drawn.set_clim(shown.min(), shown.max())
    ax.add_collection(drawn)
    if X is not None:
        points = np.asarray(X, dtype=np.float64)
        style: dict[str, Any] = {"s": 8, "linewidths": 0.3, "edgecolors": "white", "zorder": 2}
        if y is None:
            style["c"] = "#333333"
        elif is_classifier(model):
            style["c"] = label_colours(DOTS, model.classes_, y)
        else:
            style |= {"c": np.asarray(y), "cmap": drawn.cmap, "norm": drawn.norm}
        ax.scatter(points[:, 0], points[:, 1], **style)
    ax.autoscale_view()
    if hasattr(model, "feature_names_in_"):
        ax.set_xlabel(model.feature_names_in_[0])
        ax.set_ylabel(model.feature_names_in_[1])
    return ax


def _grid_boxes(model: Any) -> tuple[Floats, Floats]:
    """Return the lower and upper corners of all cells of a grid, each (n_cells, 2)."""
    if model.edges_ is None:
        raise ValueError("model must be a grid or a quad tree; its `cells` is a callable")
    ends = []
    for edges, (low, high) in zip(model.edges_, model.range_, strict=True):
        outer = np.r_[low, edges, high]
        ends.append(np.r_[outer.min(), edges, outer.max()])
    across, up = ends
    low = np.stack(np.meshgrid(across[:-1], up[:-1], indexing="ij"), axis=-1).reshape(-1, 2)
    high = np.stack(np.meshgrid(across[1:], up[1:], indexing="ij"), axis=-1).reshape(-1, 2)
    return low, high


def _quad_boxes(model: Any) -> tuple[Floats, Floats]:
    """Return the corners of all leaves and of the empty children of inner nodes."""
    tree = model.tree_
    leaves = np.flatnonzero(tree.is_leaf)
    node, slot = np.nonzero((tree.children < 0) & ~tree.is_leaf[:, np.newaxis])
    above = (slot[:, np.newaxis] >> np.arange(2)) & 1 == 1
    real = ~(above & (tree.center[node] == tree.high[node])).any(axis=1)  # drop boxes without width
    node, above = node[real], above[real]
    low = np.where(above, tree.center[node], tree.low[node])
    high = np.where(above, tree.high[node], tree.center[node])
    return np.r_[tree.low[leaves], low], np.r_[tree.high[leaves], high]
