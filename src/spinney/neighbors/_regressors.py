"""Regression by the nearest neighbours."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import neighbors

from spinney.conformal.group_scale import learn_group_scale
from spinney.conformal.mixins import HeldOut, IntervalMixin, subsample_rows
from spinney.data.table import read_table
from spinney.models.neighbor_rows import NeighborModel
from spinney.models.outcomes import Numbers
from spinney.neighbors._gower import GowerIndex
from spinney.neighbors._weights import weigh, weigh_ragged
from spinney.neighbors.search import (
    KNeighborPredictor,
    RadiusNeighborSearch,
    extend_constraints,
    flatten,
)

__all__ = ["KNeighborsRegressor", "RadiusNeighborsRegressor"]

_PRIOR_WEIGHT = 5  # rows that the mean squared error counts as, beside the neighbours' variance


class KNeighborsRegressor(  # type: ignore[misc]
    IntervalMixin, KNeighborPredictor, neighbors.KNeighborsRegressor
):
    """Predict the mean target of the k nearest training rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours.
    weights : str, callable or None, default="uniform"
        Weights of the neighbours. "uniform" (or None): all weights are equal. "distance": one over
        the distance; if neighbours have distance 0, only these have weight. A kernel of
        distance / distance of the k-th neighbour: "triangular", "epanechnikov", "biweight",
        "triweight", "tricube", "cosine", "gaussian" or "logistic". Except for the last two, the
        k-th neighbour has weight 0. If all weights would be 0, all are 1. A function computes
        weights from an array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" selects the lowest expected cost, which depends on the numbers of rows
        and columns, the metric and k (`spinney.neighbors.choose_algorithm`). "hnsw" is an
        approximate index (`HNSW`), which may miss neighbours.
    leaf_size : int, default=30
        Number of rows in a leaf of a tree. It affects the speed, not the result.
    p : float, default=2
        Power of ``metric="minkowski"``: 1 is "manhattan", 2 is "euclidean".
    metric : str, callable or DistanceMetric, default="minkowski"
        Any metric of scikit-learn. "mahalanobis" and "seuclidean" estimate the parameters that
        `metric_params` lacks from the training rows. "precomputed": X contains distances. "edit"
        and "hamming": X may contain strings. "gower": X may contain categories and missing values.
        "kernel": the distance in the feature space of ``metric_params["kernel"]``, a name or a
        function of two rows.
    metric_params : dict or None, default=None
        Parameters of the metric. For "gower": ``weights``, a number for each column; ``scale``,
        which divides numeric differences by the "range" of the column (default) or by its
        standard deviation ("std"); ``categorical_features``: "from_dtype" (default), or a mask,
        indices or names of the categorical columns.
    n_jobs : int or None, default=None
        Number of threads; None means the value of `spinney.set_num_threads`. The result does not
        depend on it.

    Attributes
    ----------
    effective_metric_ : str or callable
        The metric in use, for instance "euclidean" for "minkowski" with p = 2.
    effective_metric_params_ : dict
        Its parameters.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.
    n_samples_fit_ : int
        Number of training rows.

    Examples
    --------
    >>> from spinney.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(2).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.5]])
    array([0.5])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.KNeighborsRegressor._parameter_constraints
    )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each training row from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The means.
        """
        targets, weights = self._neighbor_targets(X)
        out = _mean_of(targets, weights)
        return out.ravel() if self._y.ndim == 1 else out

    def fitted_model(self) -> NeighborModel:
        """Return the fitted model as a value, without scikit-learn's API.

        Returns
        -------
        NeighborModel
            The training rows and their targets, one column for each output.

        Raises
        ------
        NotExpressible
            The metric is not Euclidean, `weights` is a function or a kernel, the index is
            approximate, or there are fewer rows than `n_neighbors`.
        """
        rows = self._expressible_rows()
        targets = np.asarray(self._y)
        return NeighborModel(
            rows,
            targets.reshape(len(targets), -1).astype(np.float64),
            k=int(self.n_neighbors),
            by_distance=self.weights == "distance",
            outcome=Numbers(flat=targets.ndim == 1),
        )

    def _neighbor_targets(self, X: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the neighbours' targets, (n_queries, k, n_outputs), and weights."""
        distances, rows = self._finite_neighbors(X)
        return self._y.reshape(len(self._y), -1)[rows], weigh(self.weights, distances)

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            # Leave-one-out predictions take one query per row, so they are computed on demand.
            predicted, variance = self._leave_one_out()
            truth = np.asarray(self._y[: len(predicted)], dtype=np.float64).reshape(predicted.shape)
            rows = subsample_rows(len(truth))
            self._usual_square = np.sum((truth - predicted) ** 2, axis=0) / max(len(truth), 1)
            scale = self._scale(variance)
            scale = scale * self._fit_group_scale(truth, predicted, scale)
            shape = (-1,) if self._y.ndim == 1 else (-1, predicted.shape[1])
            arrays = [array[rows].reshape(shape) for array in (truth, predicted, scale)]
            self._held_out = HeldOut("rows, each by the others", *arrays)
        return super()._held_out_rows()

    def _predict_with_scale(self, X: Any) -> tuple[Any, Any]:
        self._held_out_rows()  # sets _usual_square
        predicted, variance = self._mean_and_variance(X)
        scale = self._scale(variance)
        groups, index = (vars(self).get(name) for name in ("_group_scale", "_index"))
        if groups is not None and isinstance(index, GowerIndex):
            scale = scale * groups.of(read_table(self, X, index.schema))[:, None]
        return (predicted[:, 0], scale[:, 0]) if self._y.ndim == 1 else (predicted, scale)

    def _fit_group_scale(self, truth: Any, predicted: Any, scale: Any) -> Any:
        """Fit the size of the errors by category; return the factors of the training rows."""
        self._group_scale: Any = None
        index = vars(self).get("_index")
        if not isinstance(index, GowerIndex) or truth.shape[1] > 1:
            return 1.0
        sizes = np.abs(truth - predicted)[:, 0] / scale[:, 0]
        fitted = learn_group_scale(index.coded_table(), index.schema, sizes)
        if fitted is None:
            return 1.0
        self._group_scale, of_rows = fitted
        return of_rows[:, None]

    def _leave_one_out(self) -> tuple[Any, Any]:
        """Return leave-one-out means and variances; empty if there are too few rows."""
        if len(self._y) <= int(self.n_neighbors):
            empty = np.empty((0, self._y[:1].size))
            return empty, empty
        return self._mean_and_variance(None)

    def _mean_and_variance(self, X: Any) -> tuple[Any, Any]:
        """Return mean and variance of the neighbours' targets."""
        targets, weights = self._neighbor_targets(X)
        mean = np.asarray(_mean_of(targets, weights), dtype=np.float64)
        return mean, _mean_of((targets - mean[:, None, :]) ** 2, weights)

    def _scale(self, variance: Any) -> Any:
        """Estimate the size of the errors from the variance of few neighbours and a prior."""
        k = float(min(int(self.n_neighbors), len(self._y)))
        square = (k * variance + _PRIOR_WEIGHT * self._usual_square) / (k + _PRIOR_WEIGHT)
        return np.sqrt(square) + np.finfo(np.float64).tiny


def _mean_of(targets: NDArray[Any], weights: NDArray[Any] | None) -> Any:
    """Return the mean over neighbours, (n_queries, n_outputs)."""
    if weights is None:
        return targets.mean(axis=1)
    total = weights.sum(axis=1, keepdims=True)
    return np.einsum("ijk,ij->ik", targets, weights, dtype=np.float64) / total


class RadiusNeighborsRegressor(  # type: ignore[misc]
    IntervalMixin, RadiusNeighborSearch, neighbors.RadiusNeighborsRegressor
):
    """Predict the mean target of the training rows within a radius.

    Parameters
    ----------
    radius : float, default=1.0
        Largest distance of a neighbour.
    weights : str, callable or None, default="uniform"
        Weights of the neighbours. "uniform" (or None): all weights are equal. "distance": one over
        the distance; if neighbours have distance 0, only these have weight. A kernel of
        distance / radius: "triangular", "epanechnikov", "biweight", "triweight", "tricube",
        "cosine", "gaussian" or "logistic"; if all weights would be 0, all are 1. A function
        computes weights from an array of arrays of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" selects the lowest expected cost, which depends on the numbers of rows
        and columns and the metric (`spinney.neighbors.choose_algorithm`). "hnsw" is not supported:
        it only finds the k nearest rows.
    leaf_size : int, default=30
        Number of rows in a leaf of a tree. It affects the speed, not the result.
    p : float, default=2
        Power of ``metric="minkowski"``: 1 is "manhattan", 2 is "euclidean".
    metric : str, callable or DistanceMetric, default="minkowski"
        Any metric of scikit-learn. "mahalanobis" and "seuclidean" estimate the parameters that
        `metric_params` lacks from the training rows. "precomputed": X contains distances. "edit"
        and "hamming": X may contain strings. "gower": X may contain categories and missing values.
        "kernel": the distance in the feature space of ``metric_params["kernel"]``, a name or a
        function of two rows.
    metric_params : dict or None, default=None
        Parameters of the metric. For "gower": ``weights``, a number for each column; ``scale``,
        which divides numeric differences by the "range" of the column (default) or by its
        standard deviation ("std"); ``categorical_features``: "from_dtype" (default), or a mask,
        indices or names of the categorical columns.
    n_jobs : int or None, default=None
        Number of threads; None means the value of `spinney.set_num_threads`. The result does not
        depend on it.

    Attributes
    ----------
    effective_metric_ : str or callable
        The metric in use, for instance "euclidean" for "minkowski" with p = 2.
    effective_metric_params_ : dict
        Its parameters.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.
    n_samples_fit_ : int
        Number of training rows.

    Examples
    --------
    >>> from spinney.neighbors import RadiusNeighborsRegressor
    >>> model = RadiusNeighborsRegressor(1.0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.5]])
    array([0.5])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.RadiusNeighborsRegressor._parameter_constraints
    )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each training row from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The means; NaN for rows without neighbours.
        """
        distances, found = self.radius_neighbors(X)
        rows, query = flatten(found)
        weights = weigh_ragged(self.weights, distances, query, self.radius)
        weights = np.ones(len(rows)) if weights is None else weights
        targets = self._y.reshape(len(self._y), -1)
        total = np.bincount(query, weights, minlength=len(found))
        out = np.empty((len(found), targets.shape[1]))
        for j in range(targets.shape[1]):
            sums = np.bincount(query, weights * targets[rows, j], minlength=len(found))
            with np.errstate(invalid="ignore"):
                out[:, j] = sums / total
        if np.isnan(out).any():
            warnings.warn(
                "One or more samples have no neighbors within specified radius; predicting NaN.",
                stacklevel=2,
            )
        return out.ravel() if self._y.ndim == 1 else out

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            # Leave-one-out predictions take one query per row, so they are computed on demand.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted = np.asarray(self.predict(None), dtype=np.float64)
            # Rows without neighbours do not count: their interval is always infinite.
            has_prediction = np.isfinite(predicted.reshape(len(predicted), -1)).all(axis=1)
            rows = np.flatnonzero(has_prediction)
            rows = rows[subsample_rows(len(rows))]
            truth = np.asarray(self._y, dtype=np.float64).reshape(predicted.shape)
            if len(rows):
                self._held_out = HeldOut("rows, each by the others", truth[rows], predicted[rows])
        return super()._held_out_rows()

    def _reason_without_rows(self) -> str:
        return " (no training row has a neighbour within the radius)"

    def _clip(self, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        ends[np.isnan(ends).any(axis=-1)] = [-np.inf, np.inf]
        return ends
