"""Graphs of neighbours, as steps of pipelines."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors

from spinney.neighbors._search import KNeighborSearch, RadiusNeighborSearch, extend_constraints

__all__ = ["KNeighborsTransformer", "RadiusNeighborsTransformer"]


class KNeighborsTransformer(  # type: ignore[misc]
    KNeighborSearch, neighbors.KNeighborsTransformer
):
    """A sparse graph of the k nearest rows, for estimators that take distances.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether the graph has distances, or ones.
    n_neighbors : int, default=5
        How many neighbours decide.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" takes what is expected to cost least, by the number of rows and columns,
        the metric and k (`spinney.neighbors.choose_algorithm`). "hnsw" walks a graph (`HNSW`) and
        misses a neighbour now and then.
    leaf_size : int, default=30
        Rows in a leaf of a tree. Changes the time, not the result.
    metric : str, callable or DistanceMetric, default="minkowski"
        Whatever scikit-learn takes; "mahalanobis" and "seuclidean" estimate from the rows of fit
        what `metric_params` does not have. "precomputed": X has distances. "edit" and "hamming"
        for X of strings. "gower" for tables with categories and missing values. "kernel": the
        distance in the space of ``metric_params["kernel"]``, a name or a function of two rows.
    p : float, default=2
        The power of ``metric="minkowski"``: 1 is "manhattan", 2 "euclidean".
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
    >>> from spinney.neighbors import KNeighborsTransformer
    >>> graph = KNeighborsTransformer(n_neighbors=1).fit_transform([[0.0], [1.0], [3.0]])
    >>> graph.toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 2., 0.]])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.KNeighborsTransformer._parameter_constraints
    )


class RadiusNeighborsTransformer(  # type: ignore[misc]
    RadiusNeighborSearch, neighbors.RadiusNeighborsTransformer
):
    """A sparse graph of the rows within a radius, for estimators that take distances.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether the graph has distances, or ones.
    radius : float, default=1.0
        How far neighbours may be.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" takes what is expected to cost least, by the number of rows and columns,
        the metric and k (`spinney.neighbors.choose_algorithm`). "hnsw" is of no use here: it
        finds the k nearest.
    leaf_size : int, default=30
        Rows in a leaf of a tree. Changes the time, not the result.
    metric : str, callable or DistanceMetric, default="minkowski"
        Whatever scikit-learn takes; "mahalanobis" and "seuclidean" estimate from the rows of fit
        what `metric_params` does not have. "precomputed": X has distances. "edit" and "hamming"
        for X of strings. "gower" for tables with categories and missing values. "kernel": the
        distance in the space of ``metric_params["kernel"]``, a name or a function of two rows.
    p : float, default=2
        The power of ``metric="minkowski"``: 1 is "manhattan", 2 "euclidean".
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
    >>> from spinney.neighbors import RadiusNeighborsTransformer
    >>> graph = RadiusNeighborsTransformer(radius=1.5).fit_transform([[0.0], [1.0], [3.0]])
    >>> graph.toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.RadiusNeighborsTransformer._parameter_constraints
    )
