"""Numbers by a mean of neighbours."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import neighbors

from spinney.conformal.group_scale import learn_group_scale
from spinney.conformal.mixins import HeldOut, IntervalMixin, subsample_rows
from spinney.data.table import read_table
from spinney.models.form import Numbers
from spinney.models.neighbor_rows import NeighborModel
from spinney.neighbors._gower import GowerIndex
from spinney.neighbors._search import (
    KNeighborPredictor,
    RadiusNeighborSearch,
    extend_constraints,
    flatten,
)
from spinney.neighbors._weights import weigh, weigh_ragged

__all__ = ["KNeighborsRegressor", "RadiusNeighborsRegressor"]

_PRIOR_ROWS = 5  # what the usual error counts beside the neighbours' variance


class KNeighborsRegressor(  # type: ignore[misc]
    IntervalMixin, KNeighborPredictor, neighbors.KNeighborsRegressor
):
    """The mean of the targets of the k nearest rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours decide.
    weights : str, callable or None, default="uniform"
        "uniform" (or None): all count the same. "distance": one over the distance; where some
        neighbours are at distance 0, only they count. A kernel, of distance / distance of the
        farthest of the k: "triangular", "epanechnikov", "biweight", "triweight", "tricube",
        "cosine", "gaussian", "logistic"; the farthest counts nothing then (but for the last two),
        and where nobody would count, all count the same. Or a function that makes weights of an
        array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" takes what is expected to cost least, by the number of rows and columns,
        the metric and k (`spinney.neighbors.choose_algorithm`). "hnsw" walks a graph (`HNSW`) and
        misses a neighbour now and then.
    leaf_size : int, default=30
        Rows in a leaf of a tree. Changes the time, not the result.
    p : float, default=2
        The power of ``metric="minkowski"``: 1 is "manhattan", 2 "euclidean".
    metric : str, callable or DistanceMetric, default="minkowski"
        Whatever scikit-learn takes; "mahalanobis" and "seuclidean" estimate from the rows of fit
        what `metric_params` does not have. "precomputed": X has distances. "edit" and "hamming"
        for X of strings. "gower" for tables with categories and missing values. "kernel": the
        distance in the space of ``metric_params["kernel"]``, a name or a function of two rows.
    metric_params : dict or None, default=None
        Parameters of the metric; with "gower" ``weights``, a number for each column, ``scale``,
        whether numbers are divided by their "range" (default) or their standard deviation
        ("std"), and ``categorical_features``, which columns are categories: "from_dtype"
        (default), or a mask, indices or names.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    effective_metric_ : str or callable
        The metric that is used, for instance "euclidean" for "minkowski" with p = 2.
    effective_metric_params_ : dict
        Its parameters.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are strings.
    n_samples_fit_ : int
        Number of rows of fit.

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
            The queries. None predicts each row of fit from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The means.
        """
        targets, weights = self._near(X)
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

    def _near(self, X: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Targets of the neighbours, (n_queries, k, n_outputs), and their weights."""
        distances, rows = self.kneighbors(X)
        return self._y.reshape(len(self._y), -1)[rows], weigh(self.weights, distances)

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            # Each row by the others: asked for when it is first needed, as it costs many queries.
            told, variance = self._by_the_others()
            truth = np.asarray(self._y[: len(told)], dtype=np.float64).reshape(told.shape)
            rows = subsample_rows(len(truth))
            self._usual_square = np.sum((truth - told) ** 2, axis=0) / max(len(truth), 1)
            scale = self._scale(variance) * self._learn_groups(truth, told, self._scale(variance))
            shape = (-1,) if self._y.ndim == 1 else (-1, told.shape[1])
            parts = [part[rows].reshape(shape) for part in (truth, told, scale)]
            self._held_out = HeldOut("rows, each by the others", *parts)
        return super()._held_out_rows()

    def _predict_with_scale(self, X: Any) -> tuple[Any, Any]:
        self._held_out_rows()  # which finds the usual error
        told, variance = self._mean_and_variance(X)
        scale = self._scale(variance)
        groups, index = (vars(self).get(name) for name in ("_group_scale", "_index"))
        if groups is not None and isinstance(index, GowerIndex):
            scale = scale * groups.of(read_table(self, X, index.schema))[:, None]
        return (told[:, 0], scale[:, 0]) if self._y.ndim == 1 else (told, scale)

    def _learn_groups(self, truth: Any, told: Any, scale: Any) -> Any:
        """Learn how large errors are for each category; return it for the rows of fit."""
        self._group_scale: Any = None
        index = vars(self).get("_index")
        if not isinstance(index, GowerIndex) or truth.shape[1] > 1:
            return 1.0
        sizes = np.abs(truth - told)[:, 0] / scale[:, 0]
        learned = learn_group_scale(index.coded_table(), index.schema, sizes)
        if learned is None:
            return 1.0
        self._group_scale, own = learned
        return own[:, None]

    def _by_the_others(self) -> tuple[Any, Any]:
        """Return the same of each row of fit; of none, if there are too few others to ask."""
        if len(self._y) <= int(self.n_neighbors):
            none = np.empty((0, self._y[:1].size))
            return none, none
        return self._mean_and_variance(None)

    def _mean_and_variance(self, X: Any) -> tuple[Any, Any]:
        targets, weights = self._near(X)
        told = np.asarray(_mean_of(targets, weights), dtype=np.float64)
        return told, _mean_of((targets - told[:, None, :]) ** 2, weights)

    def _scale(self, variance: Any) -> Any:
        """Size of the errors: few neighbours say little of it, so the usual one counts as well."""
        k = float(min(int(self.n_neighbors), len(self._y)))
        square = (k * variance + _PRIOR_ROWS * self._usual_square) / (k + _PRIOR_ROWS)
        return np.sqrt(square) + np.finfo(np.float64).tiny


def _mean_of(targets: NDArray[Any], weights: NDArray[Any] | None) -> Any:
    """Mean over neighbours, (n_queries, n_outputs)."""
    if weights is None:
        return targets.mean(axis=1)
    total = weights.sum(axis=1, keepdims=True)
    return np.einsum("ijk,ij->ik", targets, weights, dtype=np.float64) / total


class RadiusNeighborsRegressor(  # type: ignore[misc]
    IntervalMixin, RadiusNeighborSearch, neighbors.RadiusNeighborsRegressor
):
    """The mean of the targets of the rows within a radius.

    Parameters
    ----------
    radius : float, default=1.0
        How far neighbours may be.
    weights : str, callable or None, default="uniform"
        "uniform" (or None): all count the same. "distance": one over the distance; where some
        neighbours are at distance 0, only they count. A kernel, of distance / radius:
        "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine", "gaussian",
        "logistic"; where nobody would count, all count the same. Or a function that makes weights
        of an array of arrays of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" takes what is expected to cost least, by the number of rows and columns,
        the metric and k (`spinney.neighbors.choose_algorithm`). "hnsw" is of no use here: it
        finds the k nearest.
    leaf_size : int, default=30
        Rows in a leaf of a tree. Changes the time, not the result.
    p : float, default=2
        The power of ``metric="minkowski"``: 1 is "manhattan", 2 "euclidean".
    metric : str, callable or DistanceMetric, default="minkowski"
        Whatever scikit-learn takes; "mahalanobis" and "seuclidean" estimate from the rows of fit
        what `metric_params` does not have. "precomputed": X has distances. "edit" and "hamming"
        for X of strings. "gower" for tables with categories and missing values. "kernel": the
        distance in the space of ``metric_params["kernel"]``, a name or a function of two rows.
    metric_params : dict or None, default=None
        Parameters of the metric; with "gower" ``weights``, a number for each column, ``scale``,
        whether numbers are divided by their "range" (default) or their standard deviation
        ("std"), and ``categorical_features``, which columns are categories: "from_dtype"
        (default), or a mask, indices or names.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    effective_metric_ : str or callable
        The metric that is used, for instance "euclidean" for "minkowski" with p = 2.
    effective_metric_params_ : dict
        Its parameters.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are strings.
    n_samples_fit_ : int
        Number of rows of fit.

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
            The queries. None predicts each row of fit from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The means; NaN where nobody is within the radius.
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
            # Each row by the others: asked for when it is first needed, as it costs many queries.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                told = np.asarray(self.predict(None), dtype=np.float64)
            # Of new rows those without neighbours get all numbers: here they do not count.
            known = np.isfinite(told.reshape(len(told), -1)).all(axis=1)
            rows = np.flatnonzero(known)
            rows = rows[subsample_rows(len(rows))]
            truth = np.asarray(self._y, dtype=np.float64).reshape(told.shape)
            if len(rows):
                self._held_out = HeldOut("rows, each by the others", truth[rows], told[rows])
        return super()._held_out_rows()

    def _why_none(self) -> str:
        return " (no row has another within the radius)"

    def _clip(self, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        ends[np.isnan(ends).any(axis=-1)] = [-np.inf, np.inf]
        return ends
