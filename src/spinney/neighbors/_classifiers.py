"""Classification by the nearest neighbours."""

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
from spinney.models.neighbor_rows import NeighborModel
from spinney.models.outcomes import SeveralShares, Shares
from spinney.neighbors._gower import GowerIndex
from spinney.neighbors._weights import weigh, weigh_ragged
from spinney.neighbors.search import (
    KNeighborPredictor,
    RadiusNeighborSearch,
    extend_constraints,
    flatten,
)

__all__ = ["KNeighborsClassifier", "RadiusNeighborsClassifier"]


class KNeighborsClassifier(  # type: ignore[misc]
    SetMixin, KNeighborPredictor, neighbors.KNeighborsClassifier
):
    """Predict the majority class of the k nearest training rows.

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
    classes_ : ndarray of shape (n_classes,), or a list of such arrays
        The classes, ascending; a list with several outputs.
    outputs_2d_ : bool
        Whether y had several columns.
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
        """Predict classes; if classes have equal weight, the first one.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each training row from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The classes.
        """
        return _most_voted(self, self._votes(X))

    def predict_proba(self, X: Any) -> Any:
        """Predict the class probabilities, which are shares of the neighbours' weights.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each training row from the others.

        Returns
        -------
        ndarray of shape (n_queries, n_classes), or a list of them
            The probabilities; one array for each output if there are several outputs.
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
                raise ValueError(
                    "predict_set: expected a model with one output, got several outputs"
                )
            # Leave-one-out predictions take one query per row, so they are computed on demand.
            rows: Any = subsample_rows(len(self._y))
            if len(self._y) > int(self.n_neighbors):
                shares = np.asarray(self.predict_proba(None))[rows]
            else:  # too few other rows
                rows, shares = slice(0), np.empty((0, len(self.classes_)))
            codes = np.asarray(self._y[rows]).astype(np.int32)
            own = self._own_categories()
            own = None if own is None else own.take(rows)
            self._held_out = HeldOut("rows, each by the others", codes, shares, categories=own)
        return super()._held_out_rows()

    def _own_categories(self) -> RowCategories | None:
        """Return the categories of the training rows."""
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
        """Return for each output the summed weights, (n_queries, n_classes)."""
        check_is_fitted(self, "_fit_method")
        distances, rows = self._finite_neighbors(X)
        weights = weigh(self.weights, distances)
        if weights is not None and (weights == 0).all(axis=1).any():
            # The texts of errors that scikit-learn raises too are the same.
            raise ValueError(
                "All neighbors of some sample is getting zero weights. Please modify 'weights' to "
                "avoid this case if you are using a user-defined function."
            )
        query = np.repeat(np.arange(len(rows)), rows.shape[1])
        flat = None if weights is None else weights.ravel()
        return _count_votes(self, rows.ravel(), query, flat, len(rows))


class RadiusNeighborsClassifier(  # type: ignore[misc]
    SetMixin, RadiusNeighborSearch, neighbors.RadiusNeighborsClassifier
):
    """Predict the majority class of the training rows within a radius.

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
    outlier_label : label, array-like of labels, "most_frequent" or None, default=None
        The prediction for rows without neighbours. If None, such rows raise an error.
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
    classes_ : ndarray of shape (n_classes,), or a list of such arrays
        The classes, ascending; a list with several outputs.
    outputs_2d_ : bool
        Whether y had several columns.
    outlier_label_ : list or None
        The prediction for rows without neighbours, for each output.
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
    >>> from spinney.neighbors import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(1.0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.4]])
    array([0])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.RadiusNeighborsClassifier._parameter_constraints
    )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes; if classes have equal weight, the first one.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each training row from the others.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The classes; `outlier_label` for rows without neighbours.
        """
        shares = self.predict_proba(X)
        shares = shares if self.outputs_2d_ else [shares]
        out = _most_voted(self, shares).reshape(len(shares[0]), -1)
        for k, share in enumerate(shares):
            is_alone = (share == 0).all(axis=1)
            if is_alone.any():
                out[is_alone, k] = self.outlier_label_[k]
        return out if self.outputs_2d_ else out.ravel()

    def predict_proba(self, X: Any) -> Any:
        """Predict the class probabilities, which are shares of the neighbours' weights.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, or None
            The queries. None predicts each training row from the others.

        Returns
        -------
        ndarray of shape (n_queries, n_classes), or a list of them
            The probabilities; all zero for rows without neighbours if `outlier_label` is not one of
            the classes.
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
                raise ValueError(
                    "predict_set: expected a model with one output, got several outputs"
                )
            # Leave-one-out predictions take one query per row, so they are computed on demand.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shares, is_alone = self._shares(None)
            # Without an outlier label, rows without neighbours have no prediction.
            counted = np.flatnonzero(~is_alone) if self.outlier_label_ is None else slice(None)
            predicted = shares[0][counted]
            rows = subsample_rows(len(predicted))
            codes = np.asarray(self._y[counted][rows]).astype(np.int32).ravel()
            if len(codes):
                self._held_out = HeldOut("rows, each by the others", codes, predicted[rows])
        return super()._held_out_rows()

    def _reason_without_rows(self) -> str:
        return " (no training row has a neighbour within the radius)"

    def _shares(self, X: Any) -> tuple[list[NDArray[Any]], NDArray[np.bool_]]:
        """Return the class shares for each output, and which queries have no neighbours."""
        check_is_fitted(self, "_fit_method")
        distances, found = self.radius_neighbors(X)
        rows, query = flatten(found)
        is_alone = np.bincount(query, minlength=len(found)) == 0
        weights = weigh_ragged(self.weights, distances, query, self.radius)
        shares = []
        for k, votes in enumerate(_count_votes(self, rows, query, weights, len(found))):
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


def _count_votes(
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


def _most_voted(model: Any, votes: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the class with the most votes for each output; the first one of a tie."""
    classes = model.classes_ if model.outputs_2d_ else [model.classes_]
    out = np.empty((len(votes[0]), len(classes)), dtype=classes[0].dtype)
    for k, (names, share) in enumerate(zip(classes, votes, strict=True)):
        out[:, k] = names[share.argmax(axis=1)]
    return out if model.outputs_2d_ else out.ravel()
