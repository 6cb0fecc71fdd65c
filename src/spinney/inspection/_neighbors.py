"""Training rows behind a prediction: leaf neighbours or nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.boosting.base import BaseBoosting
from spinney.forest.classifier import ForestClassifier
from spinney.forest.regressor import ForestRegressor
from spinney.tree.base import BaseTree

__all__ = ["LeafNeighbors", "leaf_neighbors"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeafNeighbors:
    """Training rows behind predictions.

    Attributes
    ----------
    weights : csr_array of shape (n_queries, n_train_rows)
        The weight of each training row; the weights of a query add up to one.
    kind : {"prediction", "proximity", "nearest"}
        The kind of weights.
    """

    weights: Any
    kind: str

    def nearest(self, n: int = 5) -> tuple[list[NDArray[np.intp]], list[Floats]]:
        """Return for each query the n rows with the largest weights, and their weights.

        Parameters
        ----------
        n : int, default=5
            The number of rows; a query gets fewer if fewer rows have a weight. Ties are broken by
            row number.
        """
        if n < 1:
            raise ValueError(f"n: expected a positive number, got {n}")
        rows, weights = [], []
        for q in range(self.weights.shape[0]):
            some = slice(self.weights.indptr[q], self.weights.indptr[q + 1])
            found, values = self.weights.indices[some], self.weights.data[some]
            order = np.lexsort([found, -values])[:n]
            rows.append(found[order].astype(np.intp))
            weights.append(values[order])
        return rows, weights


def leaf_neighbors(model: Any, X_train: Any, X: Any, *, kind: str = "prediction") -> LeafNeighbors:
    """Return the training rows behind each prediction, and their weights.

    Parameters
    ----------
    model : fitted tree, forest, booster or nearest-neighbour model
        The model. A forest's prediction is a weighted mean of training targets, with the weights
        returned here; rows in the same leaves as a query are similar to the forest.
    X_train : array, sparse matrix or frame of shape (n_train_rows, n_features)
        The training rows, in the order passed to `fit`.
    X : array, sparse matrix or frame of shape (n_queries, n_features)
        The rows whose predictions are explained.
    kind : {"prediction", "proximity"}, default="prediction"
        "prediction": weights with which the mean of the training targets is the prediction of a
        forest or tree; each tree distributes a weight of one over its training rows in the leaf.
        "proximity": the share of trees in which a training row and a query are in the same leaf,
        normalised to a sum of one. Boosters support only "proximity". A nearest-neighbour model
        returns its neighbours for either kind.

    Returns
    -------
    LeafNeighbors
        A sparse matrix of weights, and a method for the rows with the largest weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import RandomForestRegressor
    >>> from spinney.inspection import leaf_neighbors
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(random_state=0).fit(X[:400], y[:400])
    >>> neighbors = leaf_neighbors(forest, X[:400], X[400:])
    >>> bool(np.allclose(neighbors.weights @ y[:400], forest.predict(X[400:])))
    True
    """
    check_is_fitted(model)
    if kind not in ("prediction", "proximity"):
        raise ValueError(f"kind: expected 'prediction' or 'proximity', got {kind!r}")
    if hasattr(model, "kneighbors"):
        return _nearest_rows(model, X)
    if not isinstance(model, BaseTree | ForestClassifier | ForestRegressor | BaseBoosting):
        raise ValueError(
            "model: expected a Spinney tree, forest, booster or nearest-neighbour model, got "
            f"{type(model).__name__}"
        )
    if kind == "prediction" and isinstance(model, BaseBoosting):
        raise ValueError(
            "kind: expected 'proximity' for a booster, because its prediction is not a mean of "
            "targets; got 'prediction'"
        )
    train, queries = _leaves(model, X_train), _leaves(model, X)
    n_train, n_trees = train.shape
    counts = np.ones_like(train, dtype=np.float64)
    if kind == "prediction" and not isinstance(model, BaseTree):
        samples = model.tree_samples
        if n_train != samples.n_rows:
            raise ValueError(f"X_train: expected the {samples.n_rows} training rows, got {n_train}")
        if samples.weights is not None or getattr(model, "class_weight", None) is not None:
            raise ValueError(
                "kind: expected 'proximity' for a forest fitted to weighted rows, got 'prediction'"
            )
        if model.bootstrap:
            for t in range(n_trees):
                counts[:, t] = np.bincount(samples.rows_of_tree(t), minlength=n_train)
    # One column for every leaf of any tree that holds a training row.
    offsets = np.arange(n_trees) * (max(int(train.max()), int(queries.max())) + 1)
    known, train_leaves = np.unique(train + offsets, return_inverse=True)
    train_leaves = train_leaves.reshape(train.shape)
    query_leaves = np.searchsorted(known, queries + offsets)
    query_leaves = np.minimum(query_leaves, len(known) - 1)
    is_known = known[query_leaves] == queries + offsets
    members = np.bincount(train_leaves.ravel(), counts.ravel(), minlength=len(known))
    shares = counts
    if kind == "prediction":
        shares = counts / np.maximum(members[train_leaves], 1)
    left = _matrix(query_leaves, is_known.astype(np.float64), len(known))
    right = _matrix(train_leaves, shares, len(known))
    weights = sp.csr_array(left @ right.T)
    weights.eliminate_zeros()
    total = weights.sum(axis=1)
    weights = sp.csr_array(weights.multiply(1 / np.where(total > 0, total, 1)[:, np.newaxis]))
    weights.sort_indices()
    return LeafNeighbors(weights, kind)


def _leaves(model: Any, X: Any) -> NDArray[np.int64]:
    leaves = np.asarray(model.apply(X), dtype=np.int64)
    return leaves.reshape(len(leaves), -1)


def _matrix(columns: NDArray[np.intp], values: Floats, n_columns: int) -> Any:
    n_rows, n_each = columns.shape
    starts = np.arange(0, n_rows * n_each + 1, n_each)
    return sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_rows, n_columns))


def _nearest_rows(model: Any, X: Any) -> LeafNeighbors:
    """Return the neighbours that a nearest-neighbour model uses, with their weights."""
    distances, rows = model.kneighbors(X)
    weigh = getattr(model, "weights", "uniform")
    if weigh == "distance":
        with np.errstate(divide="ignore"):
            weights = 1 / distances
        exact = np.isinf(weights)
        weights = np.where(exact.any(axis=1, keepdims=True), exact, weights)
    elif callable(weigh):
        weights = np.asarray(weigh(distances), dtype=np.float64)
    else:
        weights = np.ones_like(distances)
    weights = weights / weights.sum(axis=1, keepdims=True)
    found = _matrix(rows, weights, int(model.n_samples_fit_))
    found.sort_indices()
    return LeafNeighbors(found, "nearest")
