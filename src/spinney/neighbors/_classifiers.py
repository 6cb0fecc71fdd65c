"""Classes by a vote of neighbours."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import neighbors
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.group_limits import RowCategories, categories_of
from spinney.conformal.mixins import HeldOut, SetMixin, subsample_rows
from spinney.data.table import read_table
from spinney.models.form import SeveralShares, Shares
from spinney.models.neighbor_rows import NeighborModel
from spinney.neighbors._gower import GowerIndex
from spinney.neighbors._search import (
    KNeighborPredictor,
    RadiusNeighborSearch,
    extend_constraints,
    flatten,
)
from spinney.neighbors._weights import weigh, weigh_ragged

__all__ = ["KNeighborsClassifier", "RadiusNeighborsClassifier"]


class KNeighborsClassifier(  # type: ignore[misc]
    SetMixin, KNeighborPredictor, neighbors.KNeighborsClassifier
):
    """The class that most of the k nearest rows have.

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
    classes_ : ndarray of shape (n_classes,), or a list of such arrays
        The classes, ascending; a list with several outputs.
    outputs_2d_ : bool
        Whether y had several columns.
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
    >>> from spinney.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(3).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.1]])
    array([0])
    >>> model.predict_proba([[0.9]]).round(2)
    array([[0.67, 0.33]])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.KNeighborsClassifier._parameter_constraints
    )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes; of classes with as many votes the first.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each row of fit from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The classes.
        """
        return _winners(self, self._votes(X))

    def predict_proba(self, X: Any) -> Any:
        """Share of the votes of each class.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None asks about each row of fit by the others.

        Returns
        -------
        ndarray of shape (n_queries, n_classes), or a list of them
            The shares; one array for each output where there are several.
        """
        shares = [votes / votes.sum(axis=1, keepdims=True) for votes in self._votes(X)]
        return shares if self.outputs_2d_ else shares[0]

    def fitted_model(self) -> NeighborModel:
        """Return the fitted model as a value, without scikit-learn's API.

        Returns
        -------
        NeighborModel
            The training rows and their class indicators, one column for each class of each output.
            Its scores are the shares of the classes.

        Raises
        ------
        NotExpressible
            The metric is not Euclidean, `weights` is a function or a kernel, the index is
            approximate, or there are fewer rows than `n_neighbors`.
        """
        rows = self._expressible_rows()
        codes = np.asarray(self._y)
        outcome: SeveralShares | Shares
        if self.outputs_2d_:
            indicators = [np.eye(len(c))[codes[:, k]] for k, c in enumerate(self.classes_)]
            values = np.concatenate(indicators, axis=1)
            outcome = SeveralShares(self.classes_, divisor=1.0)
        else:
            values = np.eye(len(self.classes_))[codes]
            outcome = Shares(self.classes_, divisor=1.0)
        return NeighborModel(
            rows,
            values,
            k=int(self.n_neighbors),
            by_distance=self.weights == "distance",
            outcome=outcome,
        )

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            if self.outputs_2d_:
                raise ValueError("predict_set: expected a model of one output, got several")
            # Each row by the others: asked for when it is first needed, as it costs many queries.
            rows: Any = subsample_rows(len(self._y))
            if len(self._y) > int(self.n_neighbors):
                shares = np.asarray(self.predict_proba(None))[rows]
            else:  # there are too few others to ask
                rows, shares = slice(0), np.empty((0, len(self.classes_)))
            codes = np.asarray(self._y[rows]).astype(np.int32)
            own = self._own_categories()
            own = None if own is None else own.take(rows)
            self._held_out = HeldOut("rows, each by the others", codes, shares, categories=own)
        return super()._held_out_rows()

    def _own_categories(self) -> RowCategories | None:
        """Return the categories of the rows of fit."""
        index = vars(self).get("_index")
        if not isinstance(index, GowerIndex):
            return None
        return categories_of(index.coded_table(), index.schema)

    def _categories_of(self, X: Any) -> RowCategories | None:
        index = vars(self).get("_index")
        if not isinstance(index, GowerIndex) or not index.schema.has_categories:
            return None
        return categories_of(read_table(self, X, index.schema), index.schema)

    def _votes(self, X: Any) -> list[NDArray[Any]]:
        check_is_fitted(self, "_fit_method")
        distances, rows = self.kneighbors(X)
        weights = weigh(self.weights, distances)
        if weights is not None and (weights == 0).all(axis=1).any():
            raise ValueError(
                "All neighbors of some sample is getting zero weights. Please modify 'weights' to "
                "avoid this case if you are using a user-defined function."
            )
        query = np.repeat(np.arange(len(rows)), rows.shape[1])
        flat = None if weights is None else weights.ravel()
        return _count(self, rows.ravel(), query, flat, len(rows))


class RadiusNeighborsClassifier(  # type: ignore[misc]
    SetMixin, RadiusNeighborSearch, neighbors.RadiusNeighborsClassifier
):
    """The class that most of the rows within a radius have.

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
    outlier_label : label, array-like of labels, "most_frequent" or None, default=None
        What is predicted where nobody is within the radius; None raises an error.
    metric_params : dict or None, default=None
        Parameters of the metric; with "gower" ``weights``, a number for each column, ``scale``,
        whether numbers are divided by their "range" (default) or their standard deviation
        ("std"), and ``categorical_features``, which columns are categories: "from_dtype"
        (default), or a mask, indices or names.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of such arrays
        The classes, ascending; a list with several outputs.
    outputs_2d_ : bool
        Whether y had several columns.
    outlier_label_ : list or None
        What is predicted where nobody is near, for each output.
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
    >>> from spinney.neighbors import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(1.0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.4]])
    array([0])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.RadiusNeighborsClassifier._parameter_constraints
    )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes; of classes with as many votes the first.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each row of fit from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The classes; `outlier_label` where nobody is within the radius.
        """
        shares = self.predict_proba(X)
        shares = shares if self.outputs_2d_ else [shares]
        out = _winners(self, shares).reshape(len(shares[0]), -1)
        for k, share in enumerate(shares):
            is_alone = (share == 0).all(axis=1)
            if is_alone.any():
                out[is_alone, k] = self.outlier_label_[k]
        return out if self.outputs_2d_ else out.ravel()

    def predict_proba(self, X: Any) -> Any:
        """Share of the votes of each class.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None asks about each row of fit by the others.

        Returns
        -------
        ndarray of shape (n_queries, n_classes), or a list of them
            The shares; all zero where nobody is within the radius and `outlier_label` is no class.
        """
        shares, is_alone = self._shares(X)
        if is_alone.any() and self.outlier_label_ is None:
            raise ValueError(
                f"No neighbors found for test samples {np.flatnonzero(is_alone)!r}, you can try "
                "using larger radius, giving a label for outliers, or considering removing them "
                "from your dataset."
            )
        return shares if self.outputs_2d_ else shares[0]

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            if self.outputs_2d_:
                raise ValueError("predict_set: expected a model of one output, got several")
            # Each row by the others: asked for when it is first needed, as it costs many queries.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shares, is_alone = self._shares(None)
            # Without a label for them, rows that nobody is near get no prediction either.
            counted = np.flatnonzero(~is_alone) if self.outlier_label_ is None else slice(None)
            told = shares[0][counted]
            rows = subsample_rows(len(told))
            codes = np.asarray(self._y[counted][rows]).astype(np.int32).ravel()
            if len(codes):
                self._held_out = HeldOut("rows, each by the others", codes, told[rows])
        return super()._held_out_rows()

    def _why_none(self) -> str:
        return " (no row has another within the radius)"

    def _shares(self, X: Any) -> tuple[list[NDArray[Any]], NDArray[np.bool_]]:
        """Shares of votes for each output, and which rows have no neighbours."""
        check_is_fitted(self, "_fit_method")
        distances, found = self.radius_neighbors(X)
        rows, query = flatten(found)
        is_alone = np.bincount(query, minlength=len(found)) == 0
        weights = weigh_ragged(self.weights, distances, query, self.radius)
        shares = []
        for k, votes in enumerate(_count(self, rows, query, weights, len(found))):
            classes = self.classes_[k] if self.outputs_2d_ else self.classes_
            if is_alone.any() and self.outlier_label_ is not None:
                is_label = classes == self.outlier_label_[k]
                votes[np.ix_(is_alone, is_label)] = 1
                if not is_label.any():
                    warnings.warn(
                        f"Outlier label {self.outlier_label_[k]} is not in training classes. All "
                        "class probabilities of outliers will be assigned with 0.",
                        stacklevel=3,
                    )
            total = votes.sum(axis=1, keepdims=True)
            shares.append(votes / np.where(total == 0, 1, total))
        return shares, is_alone


def _count(
    model: Any,
    rows: NDArray[Any],
    query: NDArray[Any],
    weights: NDArray[Any] | None,
    n_queries: int,
) -> list[NDArray[Any]]:
    """Sum the weights of neighbours by query and class, for each output."""
    targets = model._y.reshape(len(model._y), -1)
    classes = model.classes_ if model.outputs_2d_ else [model.classes_]
    out = []
    for k, names in enumerate(classes):
        cell = query * len(names) + targets[rows, k]
        votes = np.bincount(cell, weights, minlength=n_queries * len(names))
        out.append(votes.reshape(n_queries, len(names)))
    return out


def _winners(model: Any, votes: list[NDArray[Any]]) -> NDArray[Any]:
    classes = model.classes_ if model.outputs_2d_ else [model.classes_]
    out = np.empty((len(votes[0]), len(classes)), dtype=classes[0].dtype)
    for k, (names, share) in enumerate(zip(classes, votes, strict=True)):
        out[:, k] = names[share.argmax(axis=1)]
    return out if model.outputs_2d_ else out.ravel()
