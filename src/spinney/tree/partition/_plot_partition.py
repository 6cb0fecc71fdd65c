"""Pictures of partitions of the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.tree.export.colors import DOTS, FILLS, colours_of
from spinney.tree.partition._partition import BasePartition
from spinney.tree.partition._quad_tree import BaseQuadTree

__all__ = ["plot_partition"]

Floats = NDArray[np.float64]


def plot_partition(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Draw the cells of a model of two features, coloured by what it predicts there.

    Parameters
    ----------
    model : fitted Partition* or QuadTree*
        The model: a grid or a quad tree. Outermost cells of a grid, which have no end, are drawn up
        to the range of the data.
    X : array or frame of shape (n_rows, 2), default=None
        Points to draw on top.
    y : array-like of shape (n_rows,), default=None
        Targets that colour the points.
    ax : matplotlib Axes, default=None
        Where to draw; None: the current axes.

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
        raise ValueError(f"model: expected one of 2 features, got {model.n_features_in_}")
    if y is not None and X is None:
        raise ValueError("y: expected X with it, got None")
    low, high = _grid_boxes(model) if isinstance(model, BasePartition) else _quad_boxes(model)
    told = model._predict_rows(high)  # the upper corner belongs to its cell: (low, high]
    flat = low.min(axis=0) == high.max(axis=0)  # constant columns get some width to be seen
    low, high = low - 0.5 * flat, high + 0.5 * flat
    seen = (low < high).all(axis=1)
    low, high, told = low[seen], high[seen], told[seen]

    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection

    ax = plt.gca() if ax is None else ax
    corners = np.stack([low, np.c_[high[:, 0], low[:, 1]], high, np.c_[low[:, 0], high[:, 1]]], 1)
    drawn = PolyCollection(list(corners), edgecolors="#666666", linewidths=0.5)
    if is_classifier(model):
        drawn.set_facecolor(colours_of(FILLS, model.classes_, told))
    else:
        drawn.set_array(np.ma.masked_invalid(told))
        drawn.set_cmap("viridis")
        shown = told[np.isfinite(told)]
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
            style["c"] = colours_of(DOTS, model.classes_, y)
        else:
            style |= {"c": np.asarray(y), "cmap": drawn.cmap, "norm": drawn.norm}
        ax.scatter(points[:, 0], points[:, 1], **style)
    ax.autoscale_view()
    if hasattr(model, "feature_names_in_"):
        ax.set_xlabel(model.feature_names_in_[0])
        ax.set_ylabel(model.feature_names_in_[1])
    return ax


def _grid_boxes(model: Any) -> tuple[Floats, Floats]:
    """All cells of a grid, (n_cells, 2) twice."""
    if model.edges_ is None:
        raise ValueError("model: expected a grid, got one with a callable for cells")
    ends = []
    for edges, (low, high) in zip(model.edges_, model.range_, strict=True):
        outer = np.r_[low, edges, high]
        ends.append(np.r_[outer.min(), edges, outer.max()])
    across, up = ends
    low = np.stack(np.meshgrid(across[:-1], up[:-1], indexing="ij"), axis=-1).reshape(-1, 2)
    high = np.stack(np.meshgrid(across[1:], up[1:], indexing="ij"), axis=-1).reshape(-1, 2)
    return low, high


def _quad_boxes(model: Any) -> tuple[Floats, Floats]:
    """All leaves, and the children without rows that inner nodes answer for."""
    tree = model.tree_
    leaves = np.flatnonzero(tree.is_leaf)
    node, slot = np.nonzero((tree.children < 0) & ~tree.is_leaf[:, np.newaxis])
    above = (slot[:, np.newaxis] >> np.arange(2)) & 1 == 1
    real = ~(above & (tree.center[node] == tree.high[node])).any(axis=1)  # nothing is above those
    node, above = node[real], above[real]
    low = np.where(above, tree.center[node], tree.low[node])
    high = np.where(above, tree.high[node], tree.center[node])
    return np.r_[tree.low[leaves], low], np.r_[tree.high[leaves], high]
